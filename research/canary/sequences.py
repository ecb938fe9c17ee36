"""Batches of prompts and answers through any causal language model of transformers.

Prompts are padded on the left, answers on the right, so that every answer begins in one column.
Log-probabilities are natural, of the tokens as they are drawn at a temperature.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ragwitness.errors import InputError, ModelError

Ids = list[int]

_AT_ONCE = 512  # rows of a batch that needs no gradient


@dataclass(frozen=True, slots=True)
class Rows:
    """Prompts with their answers, as tensors.

    Attributes:
        ids: Token ids, shape (rows, prompt + answer).
        mask: 1 where a token is, same shape.
        width: Columns of the answer, the last ones.
    """

    ids: Any
    mask: Any
    width: int

    @property
    def positions(self) -> Any:
        """Place of each token in its row, same shape."""
        return (self.mask.cumsum(1) - 1).clamp_min(0)

    @property
    def answer(self) -> Any:
        """Token ids of the answers, shape (rows, width)."""
        return self.ids[:, self.ids.shape[1] - self.width :]

    @property
    def answer_mask(self) -> Any:
        """1 where the answer has a token, as floats, shape (rows, width)."""
        return self.mask[:, self.ids.shape[1] - self.width :].float()

    def take(self, places: Any) -> Rows:
        """Return some of the rows."""
        return Rows(self.ids[places], self.mask[places], self.width)


def batch(prompts: Sequence[Ids], answers: Sequence[Ids], pad: int) -> Rows:
    """Pad prompts and answers to one block.

    Raises:
        InputError: There is none, or a prompt is empty.
    """
    import torch

    if not prompts or not all(prompts):
        raise InputError("There is nothing to read: no prompt, or an empty one.")
    left, right = max(map(len, prompts)), max(map(len, answers))
    ids, mask = [], []
    for before, after in zip(prompts, answers, strict=True):
        front, back = left - len(before), right - len(after)
        ids.append([pad] * front + before + after + [pad] * back)
        mask.append([0] * front + [1] * (len(before) + len(after)) + [0] * back)
    return Rows(torch.tensor(ids), torch.tensor(mask), right)


def split_rows(count: int, size: int = _AT_ONCE) -> Iterator[slice]:
    """Yield slices that cover ``count`` rows."""
    for start in range(0, count, size):
        yield slice(start, start + size)


def log_probs(
    model: Any, rows: Rows, *, temperature: float = 1.0, banned: int | None = None
) -> Any:
    """Return the log-probability of every token of the answers, shape (rows, width).

    Where an answer has ended it is 0.

    Args:
        model: Causal language model.
        rows: Prompts and answers.
        temperature: Logits are divided by it.
        banned: Token that is never drawn, such as the padding.
    """
    out = model(
        input_ids=rows.ids,
        attention_mask=rows.mask,
        position_ids=rows.positions,
        logits_to_keep=rows.width + 1,
        use_cache=False,
    )
    logits = _ready(out.logits[:, :-1], temperature, banned)
    chosen = logits.gather(2, rows.answer.unsqueeze(2)).squeeze(2)
    found = chosen - logits.logsumexp(2)
    return found.masked_fill(rows.answer_mask == 0, 0.0)


def generate(
    model: Any,
    prompts: Sequence[Ids],
    *,
    longest: int,
    eos: int,
    pad: int,
    generator: Any = None,
    temperature: float = 1.0,
) -> list[Ids]:
    """Draw an answer to each prompt, its end token included where it got that far.

    The padding is never drawn, unless it is the end token.

    Args:
        model: Causal language model.
        prompts: Token ids.
        longest: Most tokens of an answer.
        eos: End token.
        pad: Padding.
        generator: torch's; None takes the likeliest token each time.
        temperature: Of the draw.

    Raises:
        ModelError: A probability is not a number: training has diverged.
    """
    import torch

    found: list[Ids] = []
    with torch.no_grad():
        for part in split_rows(len(prompts)):
            rows = batch(prompts[part], [[] for _ in prompts[part]], pad)
            banned = None if pad == eos else pad
            drawn = _decode(model, rows, longest, eos, banned, generator, temperature)
            found += [_cut(row, eos) for row in drawn.tolist()]
    return found


def completion_scores(
    model: Any, prompts: Sequence[Ids], answers: Sequence[Ids], pad: int
) -> list[float]:
    """Return log p(answer | prompt) in nats, summed over its tokens (2604.22191, App. C.3)."""
    import torch

    found: list[float] = []
    with torch.no_grad():
        for part in split_rows(len(prompts)):
            scores = log_probs(model, batch(prompts[part], answers[part], pad)).sum(1)
            found += scores.tolist()
    return found


def _ready(logits: Any, temperature: float, banned: int | None) -> Any:
    logits = logits.float() / temperature
    if banned is not None:
        logits = logits.clone()
        logits[..., banned] = -1e9
    return logits


def _decode(model: Any, rows: Rows, longest: int, eos: int, banned: int | None, generator: Any,
            temperature: float) -> Any:  # fmt: skip
    import torch

    mask, taken = rows.mask, []
    out = model(input_ids=rows.ids, attention_mask=mask, position_ids=rows.positions,
                logits_to_keep=1, use_cache=True)  # fmt: skip
    place = rows.positions[:, -1:]
    done = torch.zeros(len(rows.ids), 1, dtype=torch.bool)
    for step in range(longest):
        logits = _ready(out.logits[:, -1], temperature, banned)
        token = _draw(logits, generator)
        taken.append(token)
        done |= token == eos
        if step + 1 == longest or bool(done.all()):
            break
        mask = torch.cat([mask, torch.ones_like(token)], 1)
        place = place + 1
        out = model(input_ids=token, attention_mask=mask, position_ids=place,
                    past_key_values=out.past_key_values, use_cache=True)  # fmt: skip
    return torch.cat(taken, 1)


def _draw(logits: Any, generator: Any) -> Any:
    import torch

    if generator is None:
        return logits.argmax(1, keepdim=True)
    chances = logits.softmax(1)
    if not bool(torch.isfinite(chances).all()):
        raise ModelError(
            "The policy gives probabilities that are not numbers: its training has diverged.",
            "Lower the learning rate.",
        )
    return torch.multinomial(chances, 1, generator=generator)


def _cut(row: Ids, eos: int) -> Ids:
    return row[: row.index(eos) + 1] if eos in row else row
