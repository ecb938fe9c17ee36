"""Power of several looks at one draw, old test against new, over effects; both on the same scores.

    python benchmarks/canary_power.py [--audits 2000]

Old: evidence that adds up over looks (plans of before). New: outcomes called over all looks. An
effect is what t* gains at each look in deviations between candidates; ``late`` gains it from the
last look on. Looks are of releases that agree with each other (correlation .9) or do not.
A second table sets logits beside log-probabilities of saturated models.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence

import numpy as np

from ragwitness.canary.draw import Design
from ragwitness.canary.rank_test import (
    SlotScores,
    call_outcomes,
    log_evidence,
    outcomes_of,
    rank_of,
)
from ragwitness.canary.verdict import logits
from ragwitness.stats.rates import proportion_interval


def looks(rng: np.random.Generator, m: int, gains: Sequence[float], agree: float) -> np.ndarray:
    """Scores of every look, shape (looks, M); t* is candidate 0."""
    base = rng.normal(size=m)
    found = np.sqrt(agree) * base + np.sqrt(1 - agree) * rng.normal(size=(len(gains), m))
    found[:, 0] += gains
    return found


def decided(slots: Sequence[np.ndarray], releases: int, alpha: float = 0.05) -> tuple[bool, bool]:
    """Whether the old and the new test call the model trained at any look."""
    called: set[int] = set()
    seen: list[list[tuple[int, int]]] = []
    old = new = False
    for look in range(1, slots[0].shape[0] + 1):
        here = [SlotScores(one[look - 1], 0) for one in slots]
        seen.append([(rank_of(one), one.scores.size) for one in here])
        old |= log_evidence(seen, releases) >= np.log(1 / alpha)
        totals, true = outcomes_of(here, seed=1, draws=1999)
        tie = 1e-9 * len(slots)
        called |= set(call_outcomes(totals, called, alpha, look, releases, tie=tie))
        new |= true in called
    return bool(old), bool(new)


def row(label: str, hits: Sequence[tuple[bool, bool]]) -> int:
    """Print a row; return 1 where the new test found fewer than the old."""
    n = len(hits)
    both = [sum(one[at] for one in hits) for at in (0, 1)]
    cells = []
    for count in both:
        low, high = proportion_interval(count, n)
        cells.append(f"{count / n:.3f} [{low:.3f}, {high:.3f}]")
    print(f"| {label} | {cells[0]} | {cells[1]} |", flush=True)
    return int(both[1] < both[0])


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=2000)
    audits = parser.parse_args().audits
    print(f"n = {audits} audits a row, level .05, 95 % intervals\n")
    print("| M, slots, looks, effect, when, releases | old | new |\n|---|---|---|")
    worse = 0
    for m, k, (announced, taken) in itertools.product((128, 512), (1, 3), ((3, 3), (0, 6))):
        for effect, late, agree in itertools.product((0.0, 1.5, 3.0, 9.0), (False, True), (0, 0.9)):
            if late and not effect:
                continue
            gains = [effect * (not late or look == taken - 1) for look in range(taken)]
            rng = np.random.default_rng([m, k, announced, int(10 * effect), late, int(10 * agree)])
            hits = [
                decided([looks(rng, m, gains, agree) for _ in range(k)], announced)
                for _ in range(audits if k == 1 else max(100, audits // 10))
            ]
            label = f"{m}, {k}, {announced or f'open, {taken}'}, {effect}, "
            label += f"{'last look' if late else 'each look'}, {'alike' if agree else 'apart'}"
            worse += row(label, hits)
    print(f"\nrows in which the new test found fewer: {worse}\n")
    print("| saturation: mean logit, examples | mean log p | mean logit |\n|---|---|---|")
    design = Design()
    for centre, n in itertools.product((-6.0, 0.0, 3.0, 5.0), (8, 24)):
        rng = np.random.default_rng([n, int(centre) + 9])
        found = []
        for _ in range(audits):
            raised = centre + rng.normal(0, 2, size=(n, 1)) + rng.normal(size=(n, 128))
            raised[:, 0] += 0.8
            nats = -np.logaddexp(0, -raised)
            ranks = [rank_of(SlotScores(s.mean(axis=0), 0)) for s in (nats, logits(nats))]
            found.append((ranks[0] / 128 <= design.level, ranks[1] / 128 <= design.level))
        row(f"{centre:g}, {n}", found)


if __name__ == "__main__":
    main()
