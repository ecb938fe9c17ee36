"""Leak scoring of whole collections against the loop over all pairs, at equal counts.

    python benchmarks/leaks.py [--data DIR] [--transcripts 10000] [--records 100000]

Records are the dialogues in DIR (or the generated corpus), and further ones made of their
sentences up to the number wanted; a third of the outputs repeat a record in full or in part. The
loop is timed on a size on which it ends.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.leakage.score.hits import (
    LeakHits,
    LeakReference,
    facts,
    in_order,
    long_runs,
)
from ragwitness.text.words import word_tokens

_FILES = ("healthcaremagic.jsonl", "medical-qa.jsonl", "pubmedqa.jsonl")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--transcripts", type=int, default=10_000)
    parser.add_argument("--records", type=int, default=100_000)
    options = parser.parse_args()
    rng = random.Random(0)
    texts = _texts(options.data)
    _against_the_loop(*_collections(texts, 40, 200, rng))
    outputs, records = _collections(texts, options.transcripts, options.records, rng)
    started, private = time.perf_counter(), LeakReference(records)
    for name, find in _MEASURES.items():
        begun = time.perf_counter()
        hits = find(outputs, private)
        print(
            f"{name}: {hits.outputs.sum()} of {len(outputs)} outputs,"
            f" {hits.records.sum()} of {len(records)} records,"
            f" {time.perf_counter() - begun:.1f} s"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"all: {time.perf_counter() - started:.1f} s, peak {peak:.2f} GiB")


def _each(find: Callable[[str, LeakReference], NDArray[Any]]) -> Finder:
    """Make a finder of one that reads one output."""

    def found(outputs: list[str], records: LeakReference) -> LeakHits:
        told = np.array([find(output, records) > 0 for output in outputs])
        return LeakHits(told.any(axis=1), told.any(axis=0))

    return found


Finder = Callable[[list[str], LeakReference], LeakHits]
_MEASURES: dict[str, Finder] = {
    "runs of 10": lambda outputs, records: long_runs(outputs, records, 10),
    "runs of 20": lambda outputs, records: long_runs(outputs, records, 20),
    "half of the words in order": _each(in_order),
    "half of the facts": _each(facts),
}


def _texts(data: Path | None) -> list[str]:
    if data is None:
        from ragwitness.text.sample import load_sample

        return [document.text for document in load_sample()]
    rows = [line for name in _FILES for line in (data / name).open(encoding="utf-8")]
    return [json.loads(row)["text"] for row in rows]


def _collections(
    texts: list[str], outputs: int, records: int, rng: random.Random
) -> tuple[list[str], list[str]]:
    sentences = [part for text in texts for part in text.split(". ") if part]

    def made() -> str:
        return ". ".join(rng.sample(sentences, 6))

    corpus = (texts + [made() for _ in range(records - len(texts))])[:records]
    said = []
    for _ in range(outputs):
        kind, one = rng.random(), rng.choice(corpus)
        if kind < 0.2:
            said.append(one[:800])
        elif kind < 0.33:
            said.append(" ".join(word for word in one.split() if rng.random() < 0.7))
        else:
            said.append(made()[:800])
    return said, corpus


def _against_the_loop(outputs: list[str], records: list[str]) -> None:
    loops = {
        "runs of 10": lambda a, b: _shares_run(a, b, 10),
        "runs of 20": lambda a, b: _shares_run(a, b, 20),
    }
    print(f"{len(outputs)} outputs, {len(records)} records:")
    for name, same in loops.items():
        begun = time.perf_counter()
        table = np.array([[same(output, record) for record in records] for output in outputs])
        slow, begun = time.perf_counter() - begun, time.perf_counter()
        hits = _MEASURES[name](outputs, LeakReference(records))
        fast = time.perf_counter() - begun
        equal = np.array_equal(hits.outputs, table.any(1)) and np.array_equal(
            hits.records, table.any(0)
        )
        print(f"{name}: loop {slow:.1f} s, ours {fast:.3f} s, {slow / fast:.0f}x, equal: {equal}")
        if not equal:
            raise SystemExit(f"{name}: the counts differ")


def _shares_run(output: str, record: str, n: int) -> bool:
    """Tokenise both, then every window of one against every window of the other, as published."""
    first, second = word_tokens(output), word_tokens(record)
    windows = {tuple(second[i : i + n]) for i in range(len(second) - n + 1)}
    return any(tuple(first[i : i + n]) in windows for i in range(len(first) - n + 1))


if __name__ == "__main__":
    main()
