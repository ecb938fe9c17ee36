"""One scan against the same index in shards: time, memory, and that the answers are the same.

    python benchmarks/shards.py [--slots 100000,1000000] [--dimension 64] [--shards 2] [--rounds 12]
        [--ray 2]

Rounds alternate, each with a key of its own, so that what else the machine does falls on all.
Times are of the wall; CPU seconds are of the process that asks and of its shards together. Memory
is what each holds by itself and its share of what several have mapped (PSS, Linux alone).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragwitness.privacy.mechanism.config import Mechanism, mechanism_for
from ragwitness.privacy.mechanism.release import (
    Selection,
    SlotIndex,
    best_of,
    quantise,
    release,
    scan_part,
)
from ragwitness.service.shards import Sharding, ShardPool

_TOP, _SIGMA, _CHUNK = 10, 0.2, 65_536
_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", default="100000,1000000")
    parser.add_argument("--dimension", type=int, default=64)
    parser.add_argument("--shards", default="2")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--ray", type=int, default=0)
    parser.add_argument("--mapped-only", action="store_true", help="no index in this process")
    given = parser.parse_args()
    for slots in map(int, given.slots.split(",")):
        _compare(slots, given)


def _compare(slots: int, given: argparse.Namespace) -> None:
    mechanism = mechanism_for(given.dimension, slots, _TOP, _SIGMA)
    queries = quantise(_random(given.rounds, given.dimension, 1), mechanism)
    keys = [hashlib.sha256(f"{slots} {i}".encode()).digest() for i in range(given.rounds)]
    print(f"{slots:,} slots of dimension {given.dimension}, top {_TOP}, n = {given.rounds}")
    ways: dict[str, tuple[Callable[[int], Selection], list[int]]] = {}
    held = []
    for text in [*given.shards.split(","), *([f"ray:{given.ray}"] if given.ray else [])]:
        pool = ShardPool(Sharding.parse(text))
        began, spent = time.perf_counter(), time.process_time()
        index = pool.hold(_blocks(mechanism), mechanism)
        print(
            f"  {text}: cut in {time.perf_counter() - began:.1f} s,"
            f" {time.process_time() - spent:.1f} s of CPU here"
        )
        held.append((text, pool, index))
        ways[text] = (lambda i, index=index: index.release(queries[i], keys[i])), pool.pids
    before = _pss(os.getpid())
    if not given.mapped_only:
        rows = np.concatenate([part for _, part in _blocks(mechanism)])
        whole = SlotIndex(rows, mechanism)
        floats = rows.astype(np.float32)
        del rows
        mine = _pss(os.getpid()) - before
        print(f"  memory of the index in one process: {mine:.0f} MB and its scan's arrays")
        ways["whole"] = (lambda i: release(queries[i], whole, keys[i], mechanism)), []
        ways["one, by blocks"] = (
            (lambda i: best_of([scan_part(queries[i], floats, 0, keys[i], mechanism)], _TOP)),
            [],
        )
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for i in range(given.rounds):
        answers = set()
        for name, (ask, pids) in ways.items():
            cpu, began = _cpu(pids), time.perf_counter()
            answers.add(ask(i))
            seen[name].append((time.perf_counter() - began, _cpu(pids) - cpu))
        if len(answers) != 1:
            raise SystemExit(f"Round {i}: the answers differ.")
    print("  all answers the same, ids and noisy scores")
    base = np.array(seen.get("one, by blocks", seen[next(iter(seen))]))
    for name, pairs in seen.items():
        times = np.array(pairs)
        wall, cpu = np.median(times, axis=0)
        low, high = _interval(base[:, 0], times[:, 0])
        print(
            f"  {name}: {1e3 * wall:.0f} ms, {1e3 * cpu:.0f} ms of CPU;"
            f" {np.median(base[:, 0]) / wall:.2f} times as fast (95 % {low:.2f} to {high:.2f})"
        )
    for name, pool, _ in held:
        sizes = [_pss(pid) for pid in pool.pids]
        if sizes:
            print(f"  {name}: shards hold {', '.join(f'{size:.0f}' for size in sizes)} MB")
        pool.close()


def _blocks(mechanism: Mechanism) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int16]]]:
    """Vectors by the block, the same each time: 10^7 of them never stand in memory at once."""
    for start in range(0, mechanism.capacity, _CHUNK):
        count = min(_CHUNK, mechanism.capacity - start)
        floats = _random(count, mechanism.dimension, 10 + start)
        yield np.arange(start, start + count), quantise(floats, mechanism)


def _random(count: int, dimension: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, dimension), np.float32)


def _interval(base: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[float, float]:
    """Of the ratio of medians, by a bootstrap over rounds."""
    draws = np.random.default_rng(1).integers(0, len(base), (2000, len(base)))
    ratios = np.median(base[draws], axis=1) / np.median(other[draws], axis=1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return float(low), float(high)


def _cpu(pids: list[int]) -> float:
    """CPU seconds of this process and of others, to the tick of the clock for those."""
    found = time.process_time()
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        found += (int(fields[11]) + int(fields[12])) / _TICKS
    return found


def _pss(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return float("nan")


if __name__ == "__main__":
    main()
