"""How much more probing or planting would decide, by resampling what was seen.

Both take what was seen for the truth, luck included: read them as orders of magnitude. After a
p-value has been looked at, more examples for the *same* test make a second look; only evidence
(:mod:`ragwitness.canary.decide.evidence`) may be added to as one likes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragwitness.canary.decide.ranks import TIE, SlotScores, standing
from ragwitness.errors import InputError

__all__ = ["examples_needed", "slots_needed"]

_POWER = 0.8
_ROUNDS = 200
_REDRAWS = 999
_LARGEST = 64  # times what was seen; beyond, the guess is worth nothing


def examples_needed(
    matrix: NDArray[np.float64], chosen: int, alpha: float, rng: np.random.Generator
) -> int | None:
    """Return held-out examples with which the rank test would decide in 4 of 5 audits.

    Args:
        matrix: Scores by example and candidate, shape (n, M).
        chosen: Place of the planted candidate.
        alpha: Level.
        rng: Draws examples anew from those seen.

    Returns:
        Doublings of n tried only; None where 64 n were not enough, or 1 / M is above alpha.

    Raises:
        InputError: The matrix has no such shape.
    """
    if matrix.ndim != 2 or not matrix.shape[0] or not 0 <= chosen < matrix.shape[1]:
        raise InputError("A forecast needs scores of examples by candidates.")
    n, m = (int(side) for side in matrix.shape)
    size = n
    while 1 / m <= alpha and size <= _LARGEST * n:
        counts = rng.multinomial(size, np.full(n, 1 / n), size=_ROUNDS)
        means = counts @ matrix / size
        ranks = (means >= means[:, [chosen]] - TIE).sum(axis=1)
        if (ranks / m <= alpha).mean() >= _POWER:
            return size
        size *= 2
    return None


def slots_needed(slots: Sequence[SlotScores], alpha: float, rng: np.random.Generator) -> int | None:
    """Return slots with which the joint test would decide in 4 of 5 audits.

    Args:
        slots: As seen; further ones are taken to be like them.
        alpha: Level.
        rng: Draws slots anew from those seen, and their null.

    Returns:
        Doublings only; None where 64 times as many were not enough.

    Raises:
        InputError: There is no slot.
    """
    if not slots:
        raise InputError("A forecast needs a slot.")
    places = [standing(one.scores) for one in slots]
    size = len(slots)
    while size <= _LARGEST * len(slots):
        if np.mean([_decides(places, slots, size, alpha, rng) for _ in range(_ROUNDS)]) >= _POWER:
            return size
        size *= 2
    return None


def _decides(
    places: Sequence[NDArray[np.float64]],
    slots: Sequence[SlotScores],
    size: int,
    alpha: float,
    rng: np.random.Generator,
) -> bool:
    """Whether one audit with ``size`` slots would reject."""
    w, null = 0.0, np.zeros(_REDRAWS)
    for number in rng.integers(len(slots), size=size):
        z = places[number]
        w += float(z[slots[number].chosen])
        null += z[rng.integers(z.size, size=_REDRAWS)]
    return bool((1 + (null >= w - TIE * size).sum()) / (_REDRAWS + 1) <= alpha)
