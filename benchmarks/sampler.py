"""The table sampler against the exact one: time per draw in one run, and the fit of both.

    python benchmarks/sampler.py [--rounds 15] [--draws 10000000]

Rounds alternate, each with a key of its own, and CPU time is counted. Draws are made as the
mechanism makes them: one stream per slot for the exact sampler, one per 4,096 for the table.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Callable

import numpy as np
from scipy.stats import chisquare

from ragwitness.privacy.mechanism import Mechanism
from ragwitness.privacy.release import slot_noise
from ragwitness.privacy.table import gaussian_table
from tests.support.gaussian import exact_pmf

_SIGMAS = (8, 256, 4096)
_EXACT, _TABLE = 4_000, 100_000
_PART = 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--draws", type=int, default=10_000_000)
    given = parser.parse_args()
    for sigma in _SIGMAS:
        exact, table = (_mechanism(sigma, sampler) for sampler in ("exact", "table"))
        gaussian_table(table.variance)  # made once per window
        times = np.array([_round(number, exact, table) for number in range(given.rounds)])
        ratios = np.quantile(times[:, 0] / times[:, 1], [0.5, 0.25, 0.75])
        print(
            f"sigma {sigma}: exact {1e6 * np.median(times[:, 0]):.2f} us per draw,"
            f" table {1e9 * np.median(times[:, 1]):.0f} ns;"
            f" median ratio {ratios[0]:.0f} (quartiles {ratios[1]:.0f} to {ratios[2]:.0f}),"
            f" {given.rounds} rounds of {_EXACT:,} and {_TABLE:,}"
        )
        distance = float(gaussian_table(table.variance).distance)
        print(
            f"  chi-square against the exact pmf: table p = {_fit(table, given.draws):.3f}"
            f" on {given.draws:,}, exact sampler p = {_fit(exact, 50_000):.3f} on 50,000;"
            f" distance of the table 2^{np.log2(distance):.1f}"
        )


def _mechanism(sigma: int, sampler: str) -> Mechanism:
    return Mechanism(384, 1, 1, sigma**2, 13, sampler=sampler)  # type: ignore[arg-type]


def _key(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()


def _round(number: int, exact: Mechanism, table: Mechanism) -> tuple[float, float]:
    """Seconds of CPU per draw of each."""
    key = _key(number)
    slow = _seconds(lambda: slot_noise(exact, key, 0, _EXACT)) / _EXACT
    return slow, _seconds(lambda: slot_noise(table, key, 0, _TABLE)) / _TABLE


def _seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _fit(mechanism: Mechanism, draws: int) -> float:
    """P-value of chi-square; neighbouring values share a cell of twenty expected draws or more."""
    half = np.array([float(p) for p in exact_pmf(mechanism.variance)])
    expected = draws * np.concatenate([half[:0:-1], half])
    counts = np.zeros(len(expected), np.int64)
    for start in range(0, draws, _PART):
        noise = slot_noise(mechanism, _key(-1), start, min(start + _PART, draws))
        counts += np.bincount(noise + len(half) - 1, minlength=len(counts))
    cells = (np.cumsum(expected) / 20).astype(np.int64)
    cells = np.minimum(cells, cells[-1] - 2)  # what is left over at the end joins the last
    _, cells = np.unique(cells, return_inverse=True)
    observed, wanted = np.bincount(cells, counts), np.bincount(cells, expected)
    return float(chisquare(observed, wanted * draws / wanted.sum()).pvalue)


if __name__ == "__main__":
    main()
