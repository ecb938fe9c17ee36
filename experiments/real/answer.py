"""Answer a file of questions in bulk with a chat model in bfloat16, on a CPU or a GPU.

The questions are those of ``ragwitness audit … --questions-to FILE`` or of ``collect.py``: requests
of the OpenAI Batch API, one in each line. The answers are the output of that API, which
``replay/ANSWERS`` reads::

    PYTHONPATH=. python experiments/real/answer.py MODEL questions.jsonl answers.jsonl --batch 8

``MODEL`` is a GGUF file or a folder of transformers. Answers are appended as they are made, and the
same command goes on where the last one ended, at ``--seconds`` or by a crash. Requests with a
temperature are sampled, with the seed of the first one of their batch; all others are greedy.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList

from experiments.real.weights import load

_SORTED = 16  # batches whose requests are put in order of their length
_BROKEN = "\ufffd"  # how a part of a character decodes


@dataclass(frozen=True, slots=True)
class Request:
    """A line of the question file, laid out for the model.

    Attributes:
        name: Its ``custom_id``.
        text: The conversation in the model's own chat layout.
        prompt_tokens: Length of the text.
        max_tokens: Most tokens of the answer.
        temperature: 0 is greedy.
        top: Alternatives of each token; 0 returns no log-probabilities.
        seed: Of a sample.
    """

    name: str
    text: str
    prompt_tokens: int
    max_tokens: int
    temperature: float
    top: int
    seed: int


@dataclass
class TopTokens(LogitsProcessor):  # type: ignore[misc]  # transformers has no types
    """Keeps the log-probabilities of what is generated, at each step and before the temperature.

    All logits of all steps would take gigabytes; of each step only the top ones are kept, and the
    whole row of the step before until it is known which token was drawn from it.

    Attributes:
        count: Alternatives of each token.
        tops: By step: ids and log-probabilities, each (batch, count).
        chosen: By step: log-probability of the token drawn, (batch,).
    """

    count: int
    tops: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    chosen: list[torch.Tensor] = field(default_factory=list)
    _before: torch.Tensor | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Take note of a step's logits (batch, vocabulary) and hand them on unchanged."""
        self.drawn(input_ids[:, -1])
        logprobs = torch.log_softmax(scores.float(), -1)
        values, ids = logprobs.topk(self.count)
        self.tops.append((ids.cpu(), values.cpu()))
        self._before = logprobs
        return scores

    def drawn(self, ids: torch.Tensor) -> None:
        """Take note of the tokens (batch,) that were drawn at the step before."""
        if self._before is not None:
            self.chosen.append(self._before.gather(1, ids[:, None])[:, 0].cpu())


class Answerer:
    """A model that answers batches of requests.

    Args:
        model: Of transformers.
        tokenizer: Its own.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer
        tokenizer.padding_side = "left"
        ends = model.generation_config.eos_token_id
        listed = ends if isinstance(ends, list) else [ends]
        self.ends = {one for one in (*listed, tokenizer.eos_token_id) if one is not None}
        self.pad = min(self.ends) if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        self.context = int(model.config.max_position_embeddings)
        tokenizer.pad_token_id = self.pad
        self._alone = functools.lru_cache(1 << 17)(self._spelled)

    def request(self, row: dict[str, Any], top: int | None) -> Request:
        """Lay out a line of the question file; ``top`` is asked for in its stead where given."""
        body = row["body"]
        text = self.tokenizer.apply_chat_template(
            body["messages"], tokenize=False, add_generation_prompt=True
        )
        return Request(
            row["custom_id"],
            text,
            len(self.tokenizer(text, add_special_tokens=False).input_ids),
            body["max_tokens"],
            body.get("temperature", 0.0),
            body.get("top_logprobs", 0) if top is None else top,
            body.get("seed", 0),
        )

    def answer(self, batch: Sequence[Request]) -> list[dict[str, Any]]:
        """Answer requests of one temperature; return the rows of the answer file in order."""
        first = batch[0]
        # 1. The prompts side by side, padded on the left.
        given = self.tokenizer(
            [one.text for one in batch], return_tensors="pt", padding=True, add_special_tokens=False
        ).to(self.model.device)
        # 2. Generate, by these settings alone: a model's own may punish repetition.
        kept = TopTokens(max([1, *(one.top for one in batch)]))
        settings = GenerationConfig(
            max_new_tokens=max(one.max_tokens for one in batch),
            do_sample=first.temperature > 0,
            temperature=first.temperature or None,
            top_k=0 if first.temperature else None,
            eos_token_id=sorted(self.ends),
            pad_token_id=self.pad,
        )
        torch.manual_seed(first.seed)
        with torch.inference_mode():
            made = self.model.generate(
                input_ids=given.input_ids,
                attention_mask=given.attention_mask,
                generation_config=settings,
                logits_processor=LogitsProcessorList([kept]),
            )
        new = made[:, given.input_ids.shape[1] :].cpu()
        kept.drawn(made[:, -1])
        # 3. Each answer ends at its own end token or its own limit.
        return [self._row(one, new[place].tolist(), kept, place) for place, one in enumerate(batch)]

    def _row(self, asked: Request, ids: list[int], kept: TopTokens, place: int) -> dict[str, Any]:
        ids = ids[: asked.max_tokens]
        end = next((at for at, one in enumerate(ids) if one in self.ends), None)
        ids, finish = ids[:end], "length" if end is None else "stop"
        spelled = self._pieces(ids)
        logprobs = None
        if asked.top:
            logprobs = {
                "content": [
                    {
                        "token": spelled[step],
                        "logprob": round(kept.chosen[step][place].item(), 5),
                        "top_logprobs": [
                            {"token": self._alone(one), "logprob": round(value, 5)}
                            for one, value in self._top(kept, step, place, asked.top)
                        ],
                    }
                    for step in range(len(ids))
                ]
            }
        message = {"role": "assistant", "content": "".join(spelled)}
        usage = {
            "prompt_tokens": asked.prompt_tokens,
            "completion_tokens": len(ids) + (end is not None),
        }
        choice = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": finish}
        return _row_of(asked.name, 200, {"choices": [choice], "usage": usage})

    @staticmethod
    def _top(kept: TopTokens, step: int, place: int, count: int) -> Iterator[tuple[int, float]]:
        ids, values = kept.tops[step]
        return zip(ids[place, :count].tolist(), values[place, :count].tolist(), strict=True)

    def _pieces(self, ids: list[int]) -> list[str]:
        """The text of each token, so that they join to the answer.

        A character split between tokens belongs to the token that completes it.
        """
        pieces, said = [], ""
        for end in range(1, len(ids) + 1):
            text = self.tokenizer.decode(ids[:end], skip_special_tokens=True)
            whole = text.rstrip(_BROKEN) if end < len(ids) else text
            pieces.append(whole[len(said) :])
            said = whole if len(whole) > len(said) else said
        return pieces

    def _spelled(self, one: int) -> str:
        """The text of a token by itself, with the space before it."""
        text = str(self.tokenizer.decode([one]))
        # SentencePiece marks the space, and its decoder drops that of a first word. A vocabulary
        # may be longer than what the tokenizer knows.
        marked = (self.tokenizer.convert_ids_to_tokens(one) or "").startswith("\u2581")
        return f" {text.lstrip()}" if marked else text


def _row_of(name: str, status: int, body: dict[str, Any]) -> dict[str, Any]:
    return {
        "custom_id": name,
        "response": {"status_code": status, "body": body},
        "error": None,
    }


def answered(path: Path) -> set[str]:
    """Return the names of the requests that a file answers; what a crash cut short is taken off."""
    if not path.exists():
        return set()
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        path.write_bytes(whole)
    return {json.loads(line)["custom_id"] for line in whole.splitlines()}


def kept_answers(path: Path) -> dict[str, dict[str, Any]]:
    """Return the bodies of the answers that a file holds, by the names of their requests."""
    answered(path)
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    return {
        row["custom_id"]: row["response"]["body"] for row in map(json.loads, filter(None, lines))
    }


def named(body: dict[str, Any]) -> str:
    """Return a name that follows from a request's body."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:24]


def batches(requests: Sequence[Request], size: int) -> Iterator[list[Request]]:
    """Yield batches of requests that are alike in temperature, room and length.

    They are put in order within some batches only, so that a run that is cut short has answered
    requests of all kinds.
    """
    for start in range(0, len(requests), size * _SORTED):
        part = requests[start : start + size * _SORTED]
        for temperature in sorted({one.temperature for one in part}):
            alike = [one for one in part if one.temperature == temperature]
            alike.sort(key=lambda one: (one.max_tokens, one.prompt_tokens))
            yield from (alike[at : at + size] for at in range(0, len(alike), size))


def main() -> None:
    """Answer what is not answered yet."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("model", type=Path, help="a GGUF file or a folder of transformers")
    parser.add_argument("questions", type=Path)
    parser.add_argument("answers", type=Path, help="appended to")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--bits", type=int, default=16, choices=(8, 16), help="8: on a CPU alone")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--top", type=int, help="alternatives of each token, whatever is asked for")
    parser.add_argument("--limit", type=int, help="answer so many requests at most")
    parser.add_argument("--seconds", type=float, help="begin no batch after so many")
    given = parser.parse_args()
    began = time.monotonic()
    torch.set_num_threads(given.threads)
    # 1. What is left to be answered, and fits the model.
    rows = [json.loads(line) for line in given.questions.read_text("utf-8").split("\n") if line]
    model, tokenizer = load(given.model, given.device)
    if given.bits == 8:
        from experiments.real.eight_bits import in_eight_bits

        prose = rows[0]["body"]["messages"][-1]["content"]
        model = in_eight_bits(model, tokenizer, prose)
    answerer = Answerer(model, tokenizer)
    print(f"loaded in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    done = answered(given.answers)
    waiting = [row for row in rows if row["custom_id"] not in done][: given.limit]
    requests = [answerer.request(row, given.top) for row in waiting]
    # 2. Batch by batch; each is on the disk before the next begins.
    started, count = time.monotonic(), 0
    with given.answers.open("a", encoding="utf-8") as out:

        def keep(made: Sequence[dict[str, Any]]) -> None:
            out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in made)
            out.flush()

        fits = [one for one in requests if one.prompt_tokens + one.max_tokens <= answerer.context]
        for one in requests:
            if one.prompt_tokens + one.max_tokens > answerer.context:
                told = {"error": {"message": f"longer than {answerer.context} tokens"}}
                keep([_row_of(one.name, 400, told)])
        for batch in batches(fits, given.batch):
            if given.seconds is not None and time.monotonic() - began > given.seconds:
                break
            keep(answerer.answer(batch))
            count += len(batch)
            each = (time.monotonic() - started) / count
            print(f"{count}/{len(fits)}, {each:.2f} s each", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
