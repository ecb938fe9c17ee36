"""How many groups of words: tried on one corpus, then what the rule finds on another.

    python -m benchmarks.groups tried --data DIR
    python -m benchmarks.groups found --data DIR [--draws 3]

``tried`` are 1,000 and 10,000 documents of FairytaleQA, farad and WikiText-2, asked with
FairytaleQA's questions, over a grid of numbers of groups. ``found`` are 10,000 of HealthCareMagic,
PubMedQA, medical-qa and patients, asked with all questions of the first two, at the number that
``Placement.of`` takes from slots and epsilon alone. A question counts as answered if its own
document is among the ten slots returned by the mechanism; nothing is asked over HTTP here.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragwitness.comparison.differences import paired_difference
from ragwitness.privacy.codes import Placement
from ragwitness.privacy.sampler import ShakeBits

_TOP, _LARGE, _WORDS, _ASKED = 10, 10_000, 150, 1000
_TRIED = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)  # groups a slot
_EPSILONS = (3.0, 10.0)

Pairs = list[tuple[int, str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("tried", "found"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    if options.what == "tried":
        print("| documents | epsilon | groups a slot | groups | near | found |")
        print("|---|---|---|---|---|---|")
        for size in (_LARGE // 10, _LARGE):
            texts, pairs = _stories(options.data, size)
            for epsilon in _EPSILONS:
                rule = Placement.of(size, _TOP, epsilon)
                counts = {round(size * part) for part in _TRIED} | {rule.groups}
                for groups in sorted(counts):
                    near = max(1, round(groups / math.exp(epsilon)))
                    placement = replace(rule, groups=groups, near=near)
                    hits = recall(placement, texts, pairs[:_ASKED], 1)
                    mark = " (the rule)" if placement == rule else ""
                    row = f"{size:,} | {epsilon:g} | {groups / size:g} | {groups:,}{mark} | {near}"
                    print(f"| {row} | {_rate(hits)} |", flush=True)
        return
    texts, pairs, corpora = _medicine(options.data)
    print("| questions of | epsilon | groups | questions | found | chance |")
    print("|---|---|---|---|---|---|")
    for epsilon in _EPSILONS:
        placement = Placement.of(len(texts), _TOP, epsilon)
        hits = recall(placement, texts, pairs, options.draws).reshape(options.draws, -1)
        start = 0
        for name, count in corpora.items():
            own = hits[:, start : start + count]
            start += count
            print(
                f"| {name} | {epsilon:g} | {placement.groups:,} | {own.size:,} |"
                f" {_rate(own.mean(axis=0))} | {_TOP / len(texts):g} |",
                flush=True,
            )


def recall(
    placement: Placement, texts: Sequence[str], pairs: Pairs, draws: int
) -> NDArray[np.float64]:
    """Return 1 for each question that is answered, draw by draw: documents are placed anew."""
    near = [placement.near_groups(text) for text in texts]
    found = []
    for draw in range(draws):
        bits = ShakeBits(f"groups {draw}".encode())
        codes = np.array([placement.draw(groups, bits) for groups in near], np.int32)
        found += [own in placement.answer(question, codes) for own, question in pairs]
    return np.array(found, np.float64)


def _rate(hits: NDArray[np.float64]) -> str:
    rate = paired_difference(hits, np.zeros_like(hits), seed=0)
    return f"{rate.value:.4f} [{max(0.0, rate.low):.4f}, {rate.high:.4f}]"


def _rows(data: Path, name: str) -> list[dict[str, str]]:
    lines = (data / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def _cut(texts: Sequence[str]) -> list[str]:
    """Texts in parts of 150 words."""
    parts = []
    for text in texts:
        words = text.split()
        starts = range(0, len(words), _WORDS)
        parts += [" ".join(words[at : at + _WORDS]) for at in starts if at + 40 <= len(words)]
    return parts


def _stories(data: Path, size: int) -> tuple[list[str], Pairs]:
    rng = np.random.default_rng(0)
    asked: dict[str, list[str]] = {}
    for row in _rows(data, "fairytaleqa"):
        asked.setdefault(row["document"], []).append(row["question"])
    others = _cut([row["text"] for row in _rows(data, "farad")])
    others += _cut((data / "wikitext-2-valid.txt").read_text(encoding="utf-8").split("\n"))
    own = [[*asked][at] for at in rng.permutation(len(asked))]
    own = own[: size if size < len(own) else len(own)]
    texts = own + [others[at] for at in rng.permutation(len(others))[: size - len(own)]]
    pairs = [(at, question) for at, text in enumerate(own) for question in asked[text]]
    if len(texts) < size:
        raise SystemExit(f"There are {len(texts)} documents, not {size}.")
    return texts, [pairs[at] for at in rng.permutation(len(pairs))]


def _medicine(data: Path) -> tuple[list[str], Pairs, dict[str, int]]:
    texts: list[str] = []
    pairs: Pairs = []
    corpora: dict[str, int] = {}
    for name, field in (("healthcaremagic", "answer"), ("pubmedqa", "text")):
        rows = _rows(data, name)
        pairs += [(len(texts) + at, row["question"]) for at, row in enumerate(rows)]
        texts += [row[field] for row in rows]
        corpora[name] = len(rows)
    rest = [row["answer"] for row in _rows(data, "medical-qa")]
    rest += [row["text"] for row in _rows(data, "patients")]
    return texts + rest[: _LARGE - len(texts)], pairs, corpora


if __name__ == "__main__":
    main()
