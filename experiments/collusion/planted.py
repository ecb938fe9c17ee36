"""Epsilon from below: a document is planted in the service's own mechanisms, or it is not.

    PYTHONPATH=. python experiments/collusion/planted.py [--placements 500000] [--runs 10000]

The attacker knows every other document and sees the ids of answers alone. A bound above the promise
would be a fault. The control beside it is a mechanism that keeps half of what it promises: where
even that stays below the promise, so many runs could not have found the fault.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from ragwitness.privacy.codes import Placement
from ragwitness.privacy.mechanism import Mechanism
from ragwitness.privacy.release import SlotIndex, quantise, release
from ragwitness.privacy.sampler import system_bits, uniform
from ragwitness.service.policy import Claim, make_policy
from research.lower_bounds import epsilon_clopper_pearson

Scores = NDArray[np.float64]
EPSILONS = (1.0, 3.0, 10.0)
_SLOTS, _TOP, _ASKED = 256, 10, 4
_DIMENSION, _FEW, _QUERIES = 64, 32, 10


def placed(placement: Placement, runs: int) -> dict[str, tuple[Scores, Scores]]:
    """Return scores with the document, and without it, by what stands in its stead.

    For life every answer follows from the slot's group, so that a run is one placement. The
    attacker asks for each of the document's near words four times, and the score is the most
    answers of one word that hold the slot.
    """
    words = _words(placement, 2 * placement.near)
    mine, others = words[: placement.near], words[placement.near :]
    mine_near, other_near = (placement.near_groups(" ".join(text)) for text in (mine, others))
    bits = system_bits()
    codes = np.array([uniform(placement.groups, bits) for _ in range(_SLOTS)], np.int32)

    @cache
    def score(code: int) -> int:
        codes[0] = code
        asked = [[f"{'of ' * at}{word}" for at in range(_ASKED)] for word in mine]
        return max(sum(0 in placement.answer(one, codes) for one in same) for same in asked)

    def run(draw: Callable[[], int]) -> Scores:
        return np.array([score(draw()) for _ in range(runs)], np.float64)

    inside = run(lambda: placement.draw(mine_near, bits))
    return {
        "another document": (inside, run(lambda: placement.draw(other_near, bits))),
        "an empty slot": (inside, run(lambda: uniform(placement.groups, bits))),
    }


def _words(placement: Placement, count: int) -> list[str]:
    """Return words that no list has, each of a group of its own, while there are groups."""
    found: dict[int, str] = {}
    at = 0
    while len(found) < min(count, placement.groups):
        found.setdefault(placement.groups_of([f"planted{at}"])[0], f"planted{at}")
        at += 1
    return [*found.values()]


def noised(mechanism: Mechanism, queries: int, runs: int) -> tuple[Scores, Scores]:
    """Return scores of runs with the document in its slot, and with its opposite there.

    The attacker asks for the document all the times that an account may, and every answer ranks
    all slots. The score adds up the ranks of the slot, as normal quantiles.
    """
    axes = np.eye(mechanism.dimension)[: mechanism.capacity]
    quantiles = norm.isf((np.arange(mechanism.capacity) + 0.5) / mechanism.capacity)
    asked = quantise(axes[0], mechanism)

    def run(first: NDArray[np.float64]) -> Scores:
        index = SlotIndex(quantise(np.vstack([first, axes[1:]]), mechanism), mechanism)
        found = np.zeros(runs)
        for at in range(runs):
            for _ in range(queries):
                ids = release(asked, index, os.urandom(32), mechanism).ids
                found[at] += quantiles[ids.index(0)]
        return found

    return run(axes[0]), run(-axes[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--placements", type=int, default=500_000)
    parser.add_argument("--runs", type=int, default=10_000)
    options = parser.parse_args()
    print(
        "| mechanism | promise | in its stead | runs of each world | epsilon from below | control |"
    )
    print("|---|---|---|---|---|---|")
    for epsilon in EPSILONS:
        placement = Placement.of(_SLOTS, _TOP, epsilon)
        broken = placed(replace(placement, epsilon=2 * epsilon), options.placements)
        for stead, scores in placed(placement, options.placements).items():
            row = f"codes | ({epsilon:g}, 0) | {stead} | {options.placements:,}"
            print(f"| {row} | {_bound(scores)} | {_bound(broken[stead])} |", flush=True)
    for epsilon in EPSILONS:
        claim = Claim(
            mechanism="noise",
            epsilon=epsilon,
            queries=_QUERIES,
            accounts=1,
            top=_FEW,
            capacity=_FEW,
            embedder=f"hashing:{_DIMENSION}",
        )
        mechanism = make_policy(claim, _DIMENSION).mechanism
        half = replace(mechanism, variance=mechanism.variance / 4)
        scores = [noised(one, _QUERIES, options.runs) for one in (mechanism, half)]
        row = f"noise, {_QUERIES} questions | ({epsilon:g}, {claim.delta:g}) | its opposite"
        bounds = " | ".join(_bound(pair, claim.delta) for pair in scores)
        print(f"| {row} | {options.runs:,} | {bounds} |", flush=True)


def _bound(scores: tuple[Scores, Scores], delta: float = 1e-15) -> str:
    """The bound at 95 %, and the most that so many runs could have shown."""
    floor = epsilon_clopper_pearson(*scores, delta)
    most = -math.log(-math.expm1(math.log(0.025) / (len(scores[1]) - len(scores[1]) // 2)))
    return f"{floor.value:.2f} (of {most:.1f})"


if __name__ == "__main__":
    main()
