"""What the index's meter costs per query, and how far real questions are from its worst case.

    python benchmarks/odometer.py [--questions FILE.jsonl --field question] [--limit 1000] \
        [--embedder hashing:384]

First part: CPU time of a charge, of a refusal and of a flat float scan of 100,000 x 384, taken in
turns. Second part, with --questions: vectors of the questions; the largest eigenvalue of
the sum of v v^T over their number (1 is the worst case, 1/384 the best), as it is and without the
questions' mean.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ragwitness.privacy.odometer import Odometer, Terms

_SCALE, _DIMENSION, _SLOTS, _ROUNDS = 4096, 384, 100_000, 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions")
    parser.add_argument("--field")
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument("--limit", type=int, default=1000)
    given = parser.parse_args()
    _costs()
    if given.questions:
        asked = _vectors(given.questions, given.field, given.embedder)[: given.limit]
        _spread(given.questions, asked)


def _costs() -> None:
    rng = np.random.default_rng(0)
    rows = _whole(rng.normal(size=(2000, _DIMENSION)))
    documents = rng.standard_normal((_SLOTS, _DIMENSION), np.float32)
    open_meter, full = (Odometer(Terms(_DIMENSION, _SCALE, 20.0, mu)) for mu in (1.0, 0.09))
    open_meter.add(rows[:1000])
    taken: dict[str, list[float]] = {}
    for row in rows[1000 : 1000 + _ROUNDS]:
        vector = row.astype(np.float32)
        calls: dict[str, Callable[[], object]] = {
            "charge": lambda row=row: open_meter.charge(row),
            "refusal": lambda row=row: full.charge(row),
            "scan": lambda vector=vector: documents @ vector,
        }
        for name, call in calls.items():
            start = time.process_time()
            call()
            taken.setdefault(name, []).append((time.process_time() - start) * 1e3)
    scan = np.array(taken["scan"])
    print(f"CPU time, n = {_ROUNDS} each, in turns; scan of {_SLOTS:,} x {_DIMENSION} float32")
    for name, values in taken.items():
        share = np.median(values) / np.median(scan)
        low, high = np.percentile(values, [5, 95])
        print(
            f"{name:17} p50 {np.median(values):8.3f} ms  5-95 % {low:.3f}-{high:.3f}  {share:.4f}"
        )


def _vectors(source: str, field: str | None, embedder: str) -> NDArray[np.float64]:
    from ragwitness.models.model_registry import load_embedder
    from ragwitness.text.documents import load_documents

    texts = [document.text for document in load_documents(source, text_field=field).documents]
    vectors = load_embedder(embedder).embed(texts).astype(np.float64)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def _spread(source: str, vectors: NDArray[np.float64]) -> None:
    draws = np.random.default_rng(0).integers(0, len(vectors), (40, len(vectors)))
    low, high = np.percentile([_top(vectors[draw]) for draw in draws], [2.5, 97.5])
    found, centred = _top(vectors), _top(vectors - vectors.mean(axis=0))
    print(f"{source}: n = {len(vectors)}; lambda/n {found:.4f} [{low:.4f}, {high:.4f}],", end=" ")
    print(f"mu {found**0.5:.3f} of the worst; without the mean {centred:.4f}, {centred**0.5:.3f}")


def _top(vectors: NDArray[np.float64]) -> float:
    return float(np.linalg.norm(vectors, 2) ** 2 / len(vectors))


def _whole(vectors: NDArray[np.float64]) -> NDArray[np.int64]:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.trunc(unit * _SCALE).astype(np.int64)


if __name__ == "__main__":
    main()
