"""How often an innocent system fails ``assert_not_in``, and how often a leaking one passes.

    PYTHONPATH=. python benchmarks/testing/assertions.py [SYSTEMS]

Each system is asked about five documents, with 99 known to be outside, at alpha .05. The innocent
ones hold none of them and seem to know of each text as much as is drawn for it; the leaking ones
hold one of the five.
"""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

import ragwitness as rw
from ragwitness.stats.rates import proportion_interval
from tests.support.indexed import Chatty, Indexed, made_texts


def innocent_failures(systems: int, alpha: float, runs: Path, known: int = 39) -> int:
    """Return how many of so many systems that hold nothing fail the test."""
    outside = made_texts("null outside", known)
    return sum(
        _fails(Chatty(seed), made_texts(f"null {seed}", 5), outside, alpha, runs / str(seed))
        for seed in range(systems)
    )


def leaks_found(systems: int, alpha: float, runs: Path, known: int = 39) -> int:
    """Return how many of so many systems fail the test that hold one of the five documents."""
    outside, found = made_texts("null outside", known), 0
    for seed in range(systems):
        mine = made_texts(f"null {seed}", 5)
        found += _fails(Indexed(mine[:1]), mine, outside, alpha, runs / f"leak {seed}")
    return found


def _fails(system: object, mine: list[str], outside: list[str], alpha: float, runs: Path) -> bool:
    try:
        rw.assert_not_in(
            system,
            mine,
            outside,
            method="passages",
            runs=runs,
            alpha=alpha,
            inconclusive="skip",
        )
    except AssertionError:
        return True
    except unittest.SkipTest:  # nothing is known to be inside, so that none is said to be out
        return False
    return False


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as folder:
        for name, count in (
            ("innocent systems that fail", innocent_failures(n, 0.05, Path(folder), 99)),
            ("leaking systems that fail", leaks_found(n, 0.05, Path(folder), 99)),
        ):
            low, high = proportion_interval(count, n)
            print(f"{name}: {count} of {n} [{low:.3f}, {high:.3f}]")
