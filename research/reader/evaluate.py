"""Measure the reader's abilities on text that it never saw; print a table with n and 95% intervals.

``python -m research.reader.evaluate --data DIR`` reads every ``*.jsonl`` (field ``text``, else
``document``) and ``*.txt`` (paragraphs) in ``DIR``. For each target document the context holds k
documents: the target and its k-1 most similar neighbours ("in"), its k most similar neighbours
("similar"), or nothing ("none").
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

from ragwitness.models.reader.model import PACKAGED_WEIGHTS
from research.reader import forms as prompts
from research.reader.corpus import Vocabulary
from research.reader.turns import CORE, STOP_WORDS


class Scorer:
    """An exported folder loaded with transformers (so the export is measured, not the trainer).

    Args:
        folder: an exported reader.
        threads: torch threads.
    """

    def __init__(self, folder: Path, threads: int = 1) -> None:
        from transformers import AutoModelForCausalLM, DynamicCache

        torch.set_num_threads(threads)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.vocabulary = Vocabulary(Tokenizer.from_file(str(folder / "tokenizer.json")))
        self._cache, self._cached = DynamicCache(), list[int]()

    def _ids(self, text: str) -> list[int]:
        return list(self.vocabulary.tokenizer.encode(text, add_special_tokens=False).ids)

    def _reuse(self, ids: list[int]) -> int:
        """Cut the cache to what it shares with ``ids[:-1]``; returns that length."""
        shared = 0
        for one, other in zip(self._cached, ids[:-1], strict=False):
            if one != other:
                break
            shared += 1
        self._keep(shared)
        return shared

    def _keep(self, length: int) -> None:
        surplus = self._cache.get_seq_length() - length
        if surplus > 0:
            self._cache.crop(-surplus)
        self._cached = self._cached[:length]

    def _logits(self, ids: list[int], keep: int) -> torch.Tensor:
        """Scores (keep, vocabulary) after each of the last ``keep`` of ``ids``."""
        shared = min(self._reuse(ids), len(ids) - keep)
        self._keep(shared)
        new = torch.tensor([ids[shared:]])
        out = self.model(new, past_key_values=self._cache, use_cache=True, logits_to_keep=keep)
        self._cached = ids
        return out.logits[0]

    def alone(self) -> list[int]:
        """The prompt for text without a context."""
        return [self.vocabulary.end]

    def prompt(
        self, documents: list[str], request: str, system: str = prompts.SYSTEM[0]
    ) -> list[int]:
        """System turn with the documents, the user's request, and the answer's opening role."""
        context = self._ids(system + "\n\n".join(documents))
        ids = self._ids(request)
        return [
            self.vocabulary.system,
            *context,
            self.vocabulary.user,
            *ids,
            self.vocabulary.assistant,
        ]

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def word_probabilities(self, prompt: list[int], words: list[str]) -> np.ndarray:
        """Probability of each word (product over its tokens) when all words follow ``prompt``."""
        pieces = [self.vocabulary.encode(" " + word) for word in words]
        tokens = [token for piece in pieces for token in piece]
        logits = self._logits([*prompt, *tokens], len(tokens) + 1)[:-1]
        logs = logits.log_softmax(-1)[torch.arange(len(tokens)), torch.tensor(tokens)].numpy()
        ends = np.cumsum([len(piece) for piece in pieces])
        sums = np.diff(np.concatenate([[0.0], np.cumsum(logs)[ends - 1]]))
        return np.exp(sums)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def generate(self, prompt: list[int], limit: int) -> str:
        """Greedy answer of at most ``limit`` tokens, special tokens kept in the text."""
        self._reuse(prompt)
        ids = torch.tensor([prompt])
        out = self.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            past_key_values=self._cache,
            max_new_tokens=limit,
            do_sample=False,
            eos_token_id=self.vocabulary.end,
            pad_token_id=self.vocabulary.pad,
        )
        return str(
            self.vocabulary.tokenizer.decode(
                out[0, len(prompt) :].tolist(), skip_special_tokens=False
            )
        )

    def says(self, prompt: list[int], limit: int) -> str:
        """Greedy answer without special tokens but a gap's."""
        said = self.generate(prompt, limit).split("<|end|>")[0]
        return " ".join(said.split()) if "\n" not in said.strip() else said.strip()

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def yes_margin(self, prompt: list[int]) -> float:
        """Log-odds of "Yes" against "No" as the answer's first word."""
        logits = self._logits(prompt, 1)[-1]
        yes, no = self.vocabulary.encode(" Yes")[0], self.vocabulary.encode(" No")[0]
        return float(logits[yes] - logits[no])

    def says_yes(self, prompt: list[int]) -> bool:
        """Whether "Yes" is more probable than "No" as the answer's first word."""
        margin: float = self.yes_margin(prompt)
        return margin > 0


ABILITIES = (
    "copying", "gap", "edited", "obey", "questions", "replies", "roles", "patients",
)  # fmt: skip

# The measurements, by ability and condition.

CONDITIONS = ("in", "similar", "none")


@dataclass(frozen=True)
class Example:
    """A target document and, by condition, the documents in the context."""

    target: list[str]
    contexts: dict[str, list[str]]


def read_documents(path: Path, low: int = 40, high: int = 250, passage: int = 180) -> list[str]:
    """Documents of a file, single-spaced; long ones are cut into passages of ``passage`` words."""
    lines = path.read_text("utf-8").split("\n")
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in lines if line.strip()]
        lines = [str(row.get("text") or row.get("document") or "") for row in rows]
    documents: list[str] = []
    for line in lines:
        words = line.split()
        parts = (
            [words]
            if len(words) <= high
            else [words[at : at + passage] for at in range(0, len(words), passage)]
        )
        documents.extend(" ".join(part) for part in parts if len(part) >= low)
    return list(dict.fromkeys(documents))


def examples(documents: Sequence[str], count: int, k: int, seed: int) -> list[Example]:
    """Draw targets and their nearest neighbours by tf-idf cosine."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectors = TfidfVectorizer(sublinear_tf=True).fit_transform(documents)
    rng = random.Random(seed)
    made = []
    for index in rng.sample(range(len(documents)), min(count, len(documents))):
        likeness = (vectors @ vectors[index].T).toarray()[:, 0]
        near = [documents[other] for other in np.argsort(-likeness) if other != index][:k]
        inside = [documents[index], *near[: k - 1]]
        rng.shuffle(inside)
        made.append(Example(documents[index].split(), {"in": inside, "similar": near, "none": []}))
    return made


def hardest(alone: np.ndarray, half: int) -> list[int]:
    """The hardest quarter of the suffix words, by probability without any context."""
    order = np.argsort(alone[half:])[: max(1, (len(alone) - half) // 4)]
    return sorted(half + int(place) for place in order)


def _masks(words: list[str], alone: np.ndarray, count: int) -> list[int]:
    """The hardest word of each of ``count`` equal stretches, as MBA chooses its masks."""
    chosen: list[int] = []
    for part in range(count):
        places = range(max(1, part * len(words) // count), (part + 1) * len(words) // count)
        able = [
            place
            for place in places
            if CORE.match(words[place])
            and words[place].lower().strip(".,;:?!") not in STOP_WORDS
            and (not chosen or place - chosen[-1] > 1)
        ]
        if able:
            chosen.append(min(able, key=lambda place: float(alone[place])))
    return chosen


def _cloze(scorer: Scorer, context: list[str], words: list[str], places: list[int]) -> float:
    """Share of masks whose generated answer is exactly the masked word."""
    masked, answers = list(words), list[str]()
    for place in places:
        match = CORE.match(words[place])
        if match is None:  # places come from ``_masks``, which keeps words that match
            continue
        answers.append(match.group(1))
        masked[place] = f"[Mask_{len(answers)}]{match.group(2)}"
    request = prompts.CLOZE[0].replace("{text}", " ".join(masked))
    text = scorer.generate(scorer.prompt(context, request), 12 + 8 * len(answers))
    found = dict(re.findall(r"\[Mask_(\d+)\]\s*:\s*([^\n\[<]*)", text))
    right = [found.get(str(index), "").strip() == answer for index, answer in enumerate(answers, 1)]
    return float(np.mean(right)) if right else float("nan")


def _copied(scorer: Scorer, context: list[str], request: str, suffix: list[str]) -> float:
    """Share of the next 20 words that a greedy answer gives before its first wrong one."""
    wanted = suffix[:20]
    words = scorer.generate(scorer.prompt(context, request), 60).replace("<|end|>", " ").split()
    right = 0
    while right < min(len(words), len(wanted)) and words[right] == wanted[right]:
        right += 1
    return right / len(wanted)


def _edited(words: list[str], rng: random.Random) -> list[str]:
    place = rng.choice([index for index in range(len(words)) if len(words[index]) > 3] or [0])
    other = rng.choice([word for word in words if word != words[place]] or ["not"])
    return [*words[:place], other, *words[place + 1 :]]


def _measure(
    scorer: Scorer, example: Example, probes: int, masks: int, rng: random.Random
) -> dict[str, float]:
    """All abilities on one target, keyed ``ability/condition``."""
    words, half = example.target, len(example.target) // 2
    alone = scorer.word_probabilities(scorer.alone(), words)
    hard = hardest(alone, half)
    places = _masks(words, alone, masks)
    first = rng.sample(hard, min(probes, len(hard)))
    seen: dict[str, float] = {}
    for condition in CONDITIONS:
        context = example.contexts[condition]
        request = prompts.COMPLETE[0].replace("{text}", " ".join(words[:half]))
        suffix = scorer.word_probabilities(scorer.prompt(context, request), words[half:])
        seen[f"next word, all/{condition}"] = float(suffix.mean())
        seen[f"next word, hard/{condition}"] = float(
            np.mean([suffix[place - half] for place in hard])
        )
        singles = []
        for place in first:
            request = prompts.COMPLETE[0].replace("{text}", " ".join(words[:place]))
            singles.append(
                scorer.word_probabilities(
                    scorer.prompt(context, request), words[place : place + 1]
                )[0]
            )
        seen[f"first answer word, hard/{condition}"] = float(np.mean(singles))
        seen[f"cloze exact/{condition}"] = _cloze(scorer, context, words, places)
        question = prompts.YES_NO[2].replace("{text}", " ".join(words))
        seen[f"says yes/{condition}"] = float(scorer.says_yes(scorer.prompt(context, question)))
    request = prompts.COMPLETE[0].replace("{text}", " ".join(words[:half]))
    seen["copied words of 20/in"] = _copied(scorer, example.contexts["in"], request, words[half:])
    question = prompts.YES_NO[2].replace("{text}", " ".join(_edited(words, rng)))
    seen["says yes/one word edited"] = float(
        scorer.says_yes(scorer.prompt(example.contexts["in"], question))
    )
    return seen


def _interval(values: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """Bootstrap 95% interval of the mean over documents."""
    means = rng.choice(values, (2000, len(values))).mean(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def copying(scorer: Scorer, documents: Sequence[str], count: int, k: int, probes: int, masks: int,
             seed: int) -> dict[str, tuple[float, float, float, int]]:  # fmt: skip
    """Mean, interval and n of every ability over ``count`` targets."""
    rng = random.Random(seed)
    rows = [
        _measure(scorer, one, probes, masks, rng) for one in examples(documents, count, k, seed)
    ]
    table = {}
    for key in rows[0]:
        values = np.array([row[key] for row in rows])
        values = values[~np.isnan(values)]
        table[key] = (
            float(values.mean()),
            *_interval(values, np.random.default_rng(seed)),
            len(values),
        )
    return table


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m research.reader.evaluate", description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with *.jsonl and *.txt files"
    )
    parser.add_argument("--model", type=Path, default=PACKAGED_WEIGHTS)
    parser.add_argument("--only", nargs="*", default=list(ABILITIES), choices=ABILITIES)
    parser.add_argument(
        "--proxy", type=Path, default=PACKAGED_WEIGHTS, help="reader that writes the questions"
    )
    parser.add_argument("--files", nargs="*", help="only these file names")
    parser.add_argument("--count", type=int, default=50, help="targets per file")
    parser.add_argument("-k", type=int, default=4, help="documents in the context")
    parser.add_argument(
        "--probes", type=int, default=3, help="single-word requests per target and condition"
    )
    parser.add_argument("--masks", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    from research.reader import abilities

    only = set(options.only)
    scorer = Scorer(options.model, options.threads)
    if only & {"questions", "replies", "roles", "patients"}:
        print("\nquestions, replies and roles")
        _show(
            abilities.one_corpus_abilities(scorer, options.data, options.count, options.seed, only)
        )
    if not only & {"copying", "gap", "edited", "obey"}:
        return
    for path in sorted([*options.data.glob("*.jsonl"), *options.data.glob("*.txt")]):
        if options.files and path.name not in options.files:
            continue
        documents = read_documents(path)
        print(f"\n{path.name}: {len(documents)} documents, k={options.k}")
        if "copying" in only:
            _show(
                copying(
                    scorer, documents, options.count, options.k, options.probes, options.masks,
                    options.seed,
                )
            )  # fmt: skip
        _show(
            abilities.corpus_abilities(
                scorer, documents, options.count, options.k, options.seed, options.proxy, only
            )
        )


def _show(table: dict[str, tuple[float, float, float, int]]) -> None:
    for key, (mean, low, high, number) in table.items():
        print(f"  {key:58s} {mean:.3f}  [{low:.3f}, {high:.3f}]  n={number}", flush=True)


if __name__ == "__main__":
    main()
