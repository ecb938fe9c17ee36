"""Retrieval with noise against the same scan without: latency of one query, in one run.

    python benchmarks/noisy_retrieval.py [--slots 100000] [--dimension 384] [--rounds 200]

Rounds alternate between noise-then-select, the same integer scan and selection without noise,
and a plain scan of the float vectors. Keys are derived inside the timed part, as a service does.
Set OMP_NUM_THREADS to the threads that BLAS may use.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ragwitness.privacy.mechanism import mechanism_for
from ragwitness.privacy.release import (
    SlotIndex,
    quantise,
    release,
    scores,
    select,
)
from ragwitness.privacy.streams import NoiseRecord, record_key, sub_seed

_TOP = 10
_SIGMA = 0.2
_TOGETHER = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--rounds", type=int, default=200)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((given.slots, given.dimension), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    mechanism = mechanism_for(given.dimension, given.slots, _TOP, _SIGMA)
    index = SlotIndex(quantise(vectors, mechanism), mechanism)
    floats = rng.standard_normal((given.rounds, given.dimension), np.float32)
    queries = quantise(floats, mechanism)
    _check_exact(queries[:2], index.rows[:1000], index.inner_products(queries[:2]))
    digest, seed = mechanism.digest, bytes(32)

    def key(i: int) -> bytes:
        query = hashlib.sha256(str(i).encode()).hexdigest()
        record = NoiseRecord("w", "t", "a", i, str(i), "c", query, digest)
        return record_key(sub_seed(seed, "w", i), record)

    def noisy(i: int) -> object:
        return release(queries[i], index, key(i), mechanism)

    def without(i: int) -> object:
        return select(scores(queries[i : i + 1], index, mechanism)[0], _TOP)

    def plain(i: int) -> object:
        found = vectors @ floats[i]
        near = np.argpartition(-found, _TOP)[:_TOP]
        return near[np.argsort(-found[near])]

    times = np.array([[_seconds(call, i) for call in (noisy, without, plain)]
                      for i in range(given.rounds)])  # fmt: skip
    print(f"{given.slots:,} slots of dimension {given.dimension}, top {_TOP}, n = {given.rounds}")
    for name, column in zip(("with noise", "without", "float scan"), times.T, strict=True):
        p50, p95 = np.quantile(column, [0.5, 0.95])
        print(f"  {name}: p50 {1e3 * p50:.1f} ms, p95 {1e3 * p95:.1f} ms")
    print(f"  p50 with noise over p50 without: {_ratio(times[:, 0], times[:, 1])}")
    print(f"  p50 with noise over p50 of the float scan: {_ratio(times[:, 0], times[:, 2])}")
    many = min(_TOGETHER, given.rounds)
    alone = _cpu(lambda: [noisy(i) for i in range(many)]) / many
    print(f"  CPU per query: {1e3 * alone:.1f} ms")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  peak memory {peak:.2f} GiB, float and integer vectors among it")


def _check_exact(
    queries: NDArray[np.int16], rows: NDArray[np.int16], found: NDArray[np.int32]
) -> None:
    """The scan must agree with sums of 64-bit integers, number by number."""
    exact = queries.astype(np.int64) @ rows.astype(np.int64).T
    if not (found[:, : len(rows)] == exact).all():
        raise SystemExit("The scan is not exact on this machine.")


def _seconds(call: Callable[[int], object], i: int) -> float:
    start = time.perf_counter()
    call(i)
    return time.perf_counter() - start


def _cpu(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _ratio(first: NDArray[np.float64], second: NDArray[np.float64]) -> str:
    """Of the medians, with a bootstrap interval over rounds."""
    draws = np.random.default_rng(1).integers(0, len(first), (2000, len(first)))
    ratios = np.median(first[draws], axis=1) / np.median(second[draws], axis=1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return f"{np.median(first) / np.median(second):.2f} (95 % {low:.2f} to {high:.2f})"


if __name__ == "__main__":
    main()
