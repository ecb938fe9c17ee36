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
from numpy.typing import NDArray

from ragwitness.models.base import ChatPrompt
from ragwitness.models.reader.model import PACKAGED_WEIGHTS, Reader
from ragwitness.types import Message, Role
from research.reader import forms as prompts
from research.reader.turns import CORE, STOP_WORDS

Floats = NDArray[np.float64]


class Scorer:
    """An exported folder run by the package's own engine: what is measured is what users get.

    Args:
        folder: an exported reader.
    """

    def __init__(self, folder: Path) -> None:
        self.reader = Reader.load(folder)

    def prompt(
        self, documents: list[str], request: str, system: str = prompts.SYSTEM[0]
    ) -> ChatPrompt:
        """System turn with the documents, then the user's request."""
        told = Message(Role.SYSTEM, system + "\n\n".join(documents))
        return ChatPrompt((told, Message(Role.USER, request)))

    def word_probabilities(self, prompt: ChatPrompt | None, words: list[str]) -> Floats:
        """Probability of each word (product over its tokens) when all words follow ``prompt``.

        Without a prompt the words follow nothing.
        """
        after = None if prompt is None else [prompt]
        scored = self.reader.score([" ".join(words)], after=after)[0]
        ends = np.cumsum([len(word) + 1 for word in words])
        sums = np.zeros(len(words))
        for (_, end), logprob in zip(scored.offsets, scored.logprobs, strict=True):
            sums[np.searchsorted(ends, max(end, 1))] += logprob
        return np.exp(sums)

    def generate(self, prompt: ChatPrompt, limit: int) -> str:
        """Greedy answer of at most ``limit`` tokens."""
        return self.reader.generate([prompt], max_tokens=limit)[0].text.strip()

    def yes_margin(self, prompt: ChatPrompt) -> float:
        """Log-odds of "Yes" against "No" as the answer's first word."""
        yes, no = self.reader.score(["Yes", "No"], after=[prompt, prompt])
        return float(yes.logprobs.sum() - no.logprobs.sum())

    def says_yes(self, prompt: ChatPrompt) -> bool:
        """Whether "Yes" is more probable than "No" as the answer's first word."""
        return self.yes_margin(prompt) > 0


ABILITIES = (
    "copying", "edited", "wordings", "parts", "obey",
    "questions", "replies", "roles", "patients",
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


def hardest(alone: Floats, half: int) -> list[int]:
    """The hardest quarter of the suffix words, by probability without any context."""
    order = np.argsort(alone[half:])[: max(1, (len(alone) - half) // 4)]
    return sorted(half + int(place) for place in order)


def _masks(words: list[str], alone: Floats, count: int) -> list[int]:
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
    words = scorer.generate(scorer.prompt(context, request), 60).split()
    right = 0
    while right < min(len(words), len(wanted)) and words[right] == wanted[right]:
        right += 1
    return right / len(wanted)


def _edited(words: list[str], rng: random.Random) -> list[str]:
    place = rng.choice([index for index in range(len(words)) if len(words[index]) > 3] or [0])
    other = rng.choice([word for word in words if word != words[place]] or ["not"])
    return [*words[:place], other, *words[place + 1 :]]


def _measure(
    scorer: Scorer,
    example: Example,
    probes: int,
    masks: int,
    rng: random.Random,
    conditions: Sequence[str],
) -> dict[str, float]:
    """All abilities on one target, keyed ``ability/condition``."""
    words, half = example.target, len(example.target) // 2
    alone = scorer.word_probabilities(None, words)
    hard = hardest(alone, half)
    places = _masks(words, alone, masks)
    first = rng.sample(hard, min(probes, len(hard)))
    seen: dict[str, float] = {}
    for condition in conditions:
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


def _interval(values: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Bootstrap 95% interval of the mean over documents."""
    means = rng.choice(values, (2000, len(values))).mean(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def copying(
    scorer: Scorer,
    documents: Sequence[str],
    count: int,
    k: int,
    probes: int,
    masks: int,
    seed: int,
    conditions: Sequence[str] = CONDITIONS,
) -> dict[str, tuple[float, float, float, int]]:
    """Mean, interval and n of every ability over ``count`` targets."""
    rng = random.Random(seed)
    rows = [
        _measure(scorer, one, probes, masks, rng, conditions)
        for one in examples(documents, count, k, seed)
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
    parser.add_argument("--files", nargs="*", help="only these file names")
    parser.add_argument("--count", type=int, default=50, help="targets per file")
    parser.add_argument("-k", type=int, default=4, help="documents in the context")
    parser.add_argument(
        "--probes", type=int, default=3, help="single-word requests per target and condition"
    )
    parser.add_argument("--conditions", nargs="*", default=list(CONDITIONS), choices=CONDITIONS)
    parser.add_argument("--masks", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    from research.reader import abilities

    only = set(options.only)
    scorer = Scorer(options.model)
    if only & {"questions", "replies", "roles", "patients"}:
        print("\nquestions, replies and roles")
        for table in abilities.one_corpus_abilities(
            scorer, options.data, options.count, options.seed, only
        ):
            _show(table)
    if not only & {"copying", "edited", "wordings", "parts", "obey"}:
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
                    options.seed, options.conditions,
                )
            )  # fmt: skip
        _show(
            abilities.corpus_abilities(
                scorer, documents, options.count, options.k, options.seed, only
            )
        )


def _show(table: dict[str, tuple[float, float, float, int]]) -> None:
    for key, (mean, low, high, number) in table.items():
        print(f"  {key:58s} {mean:.3f}  [{low:.3f}, {high:.3f}]  n={number}", flush=True)


if __name__ == "__main__":
    main()
