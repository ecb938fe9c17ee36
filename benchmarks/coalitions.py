"""How often ``collusion estimate`` accuses a benign log, and how often it finds a coalition.

    python -m benchmarks.coalitions benign [--logs 100] [--accounts 60] [--ordinary 300]
    python -m benchmarks.coalitions power [--logs 40] [--sizes 2 4 8 16 32]

Benign logs come in four shapes: interests of each account's own (independent), questions that
all users share (shared), half of the accounts asking about one thing for an hour (bursts), and
one question that a third of the accounts asks (popular). In the last two every window has its own
thing; ``--windows`` gives the ordinary traffic as so many windows, without it as one.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray

from ragwitness.collusion.detectors import DETECTORS, Settings
from ragwitness.collusion.estimate import Estimates, LogComparison, estimate
from ragwitness.privacy.query_log import QueryLog, make_log
from ragwitness.stats.rates import proportion_interval
from research.coalitions import PATTERNS, coalition_probes, unit_rows

_DAY = 86_400.0
_TOPICS = 40
SHAPES = ("independent", "shared", "bursts", "popular")


class World:
    """Topics and questions that all traffic of one seed shares.

    Args:
        dim: Of the vectors.
        queries: Of each account in each window.
        seed: Of topics and shared questions.
    """

    def __init__(self, dim: int, queries: int, seed: int) -> None:
        rng = np.random.default_rng((seed, 0))
        self.dim, self.queries = dim, queries
        self.topics = unit_rows(rng, _TOPICS, dim)
        self.cone = unit_rows(rng, dim)
        weight = 1 / np.arange(1, _TOPICS + 1)
        self.weight = weight / weight.sum()
        self.shared = self._asked(rng, rng.integers(_TOPICS, size=6))

    def _asked(self, rng: np.random.Generator, topics: NDArray[np.int64]) -> NDArray[np.float64]:
        """Questions about topics: the embedder's cone, the topic and what is their own."""
        rows = 0.5 * self.cone + self.topics[topics] + 1.1 * unit_rows(rng, len(topics), self.dim)
        unit: NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def window(
        self, shape: str, names: list[str], rng: np.random.Generator, day: int = 0
    ) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
        """One window of benign traffic: accounts, times and vectors."""
        n, m = len(names), self.queries
        times = rng.uniform(0, _DAY, (n, m))
        vectors = np.empty((n, m, self.dim))
        for at in range(n):
            own = rng.choice(_TOPICS, 3, p=self.weight, replace=False)
            vectors[at] = self._asked(rng, rng.choice(own, m))
        if shape == "shared":
            asks = rng.random((n, m)) < 0.3
            vectors[asks] = self.shared[rng.integers(6, size=int(asks.sum()))]
        if shape == "bursts":
            # Half of the accounts ask two variants of the day's topic within one hour.
            who, hour = rng.permutation(n)[: n // 2], rng.uniform(0, _DAY - 3600)
            thing = self._asked(rng, rng.integers(_TOPICS, size=1))
            for at in who:
                near = thing + 0.5 * unit_rows(rng, 2, self.dim)
                vectors[at, :2] = near / np.linalg.norm(near, axis=1, keepdims=True)
                times[at, :2] = rng.uniform(hour, hour + 3600, 2)
        if shape == "popular":
            question = self._asked(rng, rng.integers(_TOPICS, size=1))[0]
            vectors[rng.permutation(n)[: n // 3], 0] = question
        rows = [name for name in names for _ in range(m)]
        return rows, (times + day * _DAY).ravel(), vectors.reshape(-1, self.dim)

    def traffic(self, shape: str, accounts: int, rng: np.random.Generator, days: int) -> QueryLog:
        """Ordinary traffic of so many accounts, on each of so many days."""
        names = [f"o{at}" for at in range(accounts)]
        parts = [self.window(shape, names, rng, day) for day in range(days)]
        return make_log(
            [name for part in parts for name in part[0]],
            np.concatenate([part[1] for part in parts]),  # type: ignore[arg-type]
            np.concatenate([part[2] for part in parts]),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("benign", "power"))
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--accounts", type=int, default=60)
    parser.add_argument("--ordinary", type=int, default=300)
    parser.add_argument("--queries", type=int, default=10)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--windows", type=int, default=40)
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=SHAPES)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2, 4, 8, 16, 32])
    parser.add_argument("--taus", type=float, nargs="+", default=[0.8, 0.3])
    parser.add_argument("--only", nargs="+", default=list(DETECTORS))
    o = parser.parse_args()
    print(
        f"{o.accounts} accounts of {o.queries} queries, dim {o.dim}; ordinary {o.ordinary} accounts"
        f" in {o.windows} window(s); alpha .05, accounts .01"
    )
    if o.what == "benign":
        for shape in o.shapes:
            benign(o, shape)
        return
    for pattern in PATTERNS:
        for tau in o.taus if pattern != "identical" else [1.0]:
            for size in o.sizes:
                power(o, pattern, size, tau)


def _estimate(
    o: argparse.Namespace, log: QueryLog, ordinary: QueryLog
) -> tuple[Estimates, LogComparison]:
    found = estimate(log, Settings(rounds=1), names=tuple(o.only), ordinary=ordinary)
    if found.comparison is None:
        raise SystemExit("There is ordinary traffic, and yet no comparison.")
    return found, found.comparison


def benign(o: argparse.Namespace, shape: str) -> None:
    """Logs without a coalition: how many are accused, and how many accounts named."""
    began, accused, named, r5 = time.process_time(), 0, 0, 0
    for seed in range(o.logs):
        world, rng = World(o.dim, o.queries, seed), np.random.default_rng((seed, 1))
        ordinary = world.traffic(shape, o.ordinary, rng, o.windows)
        log = make_log(*world.window(shape, [f"a{at}" for at in range(o.accounts)], rng))
        found, against = _estimate(o, log, ordinary)
        accused += against.suspicious
        named += len(against.suspects)
        r5 += any(one.name == "pairs" and one.size > 4 for one in found.estimates)
    print(
        f"{shape:12} accused {_rate(accused, o.logs)}, innocent accounts named {named} of"
        f" {o.logs * o.accounts}; R5 alone finds more than 4 in {_rate(r5, o.logs)};"
        f" {(time.process_time() - began) / o.logs:.1f} s a log",
        flush=True,
    )


def power(o: argparse.Namespace, pattern: str, size: int, tau: float) -> None:
    """Logs with a coalition among accounts that share questions."""
    found_logs, members, innocent = 0, 0, 0
    for seed in range(o.logs):
        world, rng = World(o.dim, o.queries, seed), np.random.default_rng((seed, 1))
        ordinary = world.traffic("shared", o.ordinary, rng, o.windows)
        names = [f"a{at}" for at in range(o.accounts)]
        rows, times, vectors = world.window("shared", names, rng)
        probes = coalition_probes(rng, pattern, (size, o.queries, o.dim), tau)  # type: ignore[arg-type]
        vectors[: size * o.queries] = probes.reshape(-1, o.dim)
        _, against = _estimate(o, make_log(rows, times, vectors), ordinary)
        found_logs += against.suspicious
        told = {one.account for one in against.suspects}
        members += len(told & {*names[:size]})
        innocent += len(told - {*names[:size]})
    print(
        f"{pattern:12} tau {tau:.2f} k {size:2}: found {_rate(found_logs, o.logs)}; members named"
        f" {members} of {o.logs * size}, innocent {innocent} of {o.logs * (o.accounts - size)}",
        flush=True,
    )


def _rate(hits: int, n: int) -> str:
    low, high = proportion_interval(hits, n)
    return f"{hits}/{n} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main()
