"""What the index's meter costs per query, and how far real questions are from its worst case.

    python benchmarks/odometer.py [--questions FILE.jsonl --field question] [--limit 1000] \
        [--documents answer] [--embedder hashing:384]

First part: CPU time of a charge, of a refusal and of a flat float scan of 100,000 x 384, taken in
turns. Second part, with --questions: vectors of the questions; the largest eigenvalue of
the sum of v v^T over their number (1 is the worst case, 1/384 the best), as it is and without the
questions' mean. Third part, with --documents too: what each question's own document, in that field
of the file, has told of itself after all questions, as a share of the worst document's; and how
long questions find their documents where the index closes with its budget spent, and where each
document leaves with its own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from ragwitness.privacy.odometer.documents import DocumentMeter, limit_of

from ragwitness.privacy.mechanism.config import mechanism_for
from ragwitness.privacy.mechanism.release import quantise, scores, slot_index
from ragwitness.privacy.odometer.spectral import Odometer, Terms
from ragwitness.stats.intervals import proportion_interval

_SCALE, _DIMENSION, _SLOTS, _ROUNDS = 4096, 384, 100_000, 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions")
    parser.add_argument("--field")
    parser.add_argument("--documents")
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument("--limit", type=int, default=1000)
    given = parser.parse_args()
    _costs()
    if given.questions:
        asked = _vectors(given.questions, given.field, given.embedder)[: given.limit]
        _spread(given.questions, asked)
        if given.documents:
            held = _vectors(given.questions, given.documents, given.embedder)[: given.limit]
            _shares(asked, held)
            _lives(asked, held)


def _costs() -> None:
    rng = np.random.default_rng(0)
    rows = _whole(rng.normal(size=(2000, _DIMENSION)))
    documents = rng.standard_normal((_SLOTS, _DIMENSION), np.float32)
    open_meter, full = (Odometer(Terms(_DIMENSION, _SCALE, 20.0, mu)) for mu in (1.0, 0.09))
    open_meter.add(rows[:1000])
    slots = DocumentMeter()
    names = [str(slot) for slot in range(_SLOTS)]
    slots.admit(dict.fromkeys(names, 1 << 60))
    slots.seat(range(_SLOTS), names)
    scores = rng.integers(-4096, 4096, _SLOTS)
    taken: dict[str, list[float]] = {}
    for row in rows[1000 : 1000 + _ROUNDS]:
        vector = row.astype(np.float32)
        calls: dict[str, Callable[[], object]] = {
            "charge": lambda row=row: open_meter.charge(row),
            "refusal": lambda row=row: full.charge(row),
            "documents' meter": lambda: slots.charge(scores),
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
    from ragwitness.models.registry import load_embedder
    from ragwitness.text.documents import load_documents

    texts = [document.text for document in load_documents(source, text_field=field).documents]
    vectors = load_embedder(embedder).embed(texts).astype(np.float64)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def _shares(asked: NDArray[np.float64], held: NDArray[np.float64]) -> None:
    meter = Odometer(Terms(asked.shape[1], _SCALE, 20.0, 1e3, "add-remove"))
    meter.add(_whole(asked))
    shares = meter.mu_of_documents(_whole(held)) / meter.mu()
    counted = meter.mu() / meter.terms.worst_mu(len(asked))
    levels = " ".join(f"{value:.3f}" for value in np.quantile(shares, (0.1, 0.5, 0.9, 1.0)))
    print(f"{len(held)} documents, {len(asked)} questions: mu of a document over the worst's,")
    print(f"10 %, 50 %, 90 %, most: {levels}; the worst's over that of as many equal questions:")
    print(f"{counted:.3f}")


def _lives(asked: NDArray[np.float64], held: NDArray[np.float64], worst: int = 500) -> None:
    """Ask questions drawn with replacement until long after an index would have closed.

    Args:
        asked: Of each question, shape (questions, dimension).
        held: Of its document.
        worst: Equal questions that the budget is for, as a claim would have it.
    """
    mechanism = mechanism_for(asked.shape[1], len(held), 10, 20.0)
    sigma = mechanism.gaussian_sigma
    terms = Terms.of(mechanism, 1.0)
    budget = terms.worst_mu(worst)
    index, queries = slot_index(held, mechanism), quantise(asked, mechanism)
    whole = Odometer(replace(terms, budget=budget))
    meter, names = DocumentMeter(), [str(at) for at in range(len(held))]
    # Replacing a document costs twice what its own meter says.
    meter.admit(dict.fromkeys(names, limit_of(budget / 2, sigma)))
    meter.seat(range(len(held)), names)
    rng, closed, first, answered = np.random.default_rng(0), 0, 0, []
    while not closed or len(answered) < 100 * closed:
        one = int(rng.integers(len(queries)))
        [exact] = scores(queries[one : one + 1], index, mechanism)
        kept = meter.charge(exact)
        answered.append(bool(kept[one] == exact[one]))
        if not first and (kept != exact).any():
            first = len(answered)
        if not closed and not whole.charge(queries[one].astype(np.int64)):
            closed = len(answered) - 1
    print(f"a budget for {worst} equal questions: the index answers {closed} and closes;")
    print(f"by documents the first leaves at question {first}; the question's own still takes part")
    for times in (1, 3, 10, 30, 100):
        part = answered[closed * times * 9 // 10 : closed * times]
        low, high = proportion_interval(sum(part), len(part))
        print(f"  at {times:3} times as many: {sum(part)} of {len(part)} [{low:.3f}, {high:.3f}]")
    total = sum(answered)
    print(f"  answered with its own document in all: {total} of {len(answered)}")


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
