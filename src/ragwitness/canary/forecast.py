"""How much more probing or planting would decide, by what was seen and how far it can be trusted.

What was seen is taken for the truth give or take its standard error, so that luck is not carried
on: a number is named where, over that uncertainty, 4 of 5 new audits would decide. All are for a
new plan. After a p-value has been looked at, more examples for the *same* test make a second look.

Scores are taken to be normal here, and z of a slot to have standard deviation 1, as under H0:
these are orders of magnitude, and no verdict hangs on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from ragwitness.canary.rank_test import SlotScores, rank_evidence, rank_of, standing

_POWER = 0.8
_LARGEST = 64  # times what was seen; beyond, the guess is worth nothing
_GRID = np.linspace(-6, 6, 481)  # standard errors


def examples_needed(matrix: NDArray[np.float64], chosen: int, alpha: float) -> int | None:
    """Return held-out examples with which the rank test would decide in 4 of 5 audits.

    A candidate's mean is its own part, which stays, and noise, which falls with the examples: the
    planted one may stand out from the parts where it is hidden in the noise.

    Args:
        matrix: Scores by example and candidate, shape (n, M).
        chosen: Place of the planted candidate.
        alpha: Level.

    Returns:
        Doublings of n tried only; None where it cannot be told, or 1 / M is above alpha.
    """
    n, m = (int(side) for side in matrix.shape)
    above = math.floor(alpha * m + 1e-9) - 1  # others that may rank as high
    if n < 2 or m < 3 or above < 0:
        return None
    # Two-way layout without interaction: what is left of a score is noise of one example.
    means = matrix.mean(axis=0)
    rest = matrix - means - matrix.mean(axis=1, keepdims=True) + means.mean()
    noise = float((rest**2).sum()) / ((n - 1) * (m - 1))
    # Variance between candidates is their own parts plus noise / n; the difference is the parts'.
    others = np.delete(means, chosen)
    own = max(0.0, float(others.var(ddof=1)) - noise / n)
    gain, doubt = float(means[chosen] - others.mean()), own + noise / n

    def power(size: int) -> float:
        spread = own + noise / size
        at = gain + _GRID * math.sqrt(doubt + spread)
        # Where all spread is gone, whatever is higher is the highest.
        as_high = norm.sf(at / math.sqrt(spread)) if spread else (at <= 0).astype(float)
        return float(np.average(binom.cdf(above, m - 1, as_high), weights=norm.pdf(_GRID)))

    return _least(n, power)


def slots_needed(slots: Sequence[SlotScores], alpha: float) -> int | None:
    """Return slots with which the joint test would decide in 4 of 5 audits.

    Args:
        slots: As seen; further ones are taken to be like them.
        alpha: Level.

    Returns:
        Doublings only; None where it cannot be told.
    """
    k, m = len(slots), slots[0].scores.size
    gain = sum(float(standing(one.scores)[one.chosen]) for one in slots) / k
    found = _least(k, lambda size: _reached(gain, k, size, float(norm.isf(alpha))))
    return found if found and m**-found <= alpha else None


def halves_needed(
    inside: Sequence[SlotScores], outside: Sequence[SlotScores], alpha: float
) -> int | None:
    """Return slots, planted and not, with which the permutation would decide in 4 of 5 audits.

    Args:
        inside: Planted slots, as seen.
        outside: As many that were not planted.
        alpha: Level.

    Returns:
        Doublings only; None where it cannot be told.
    """
    k, m = len(inside), inside[0].scores.size
    high = sum(rank_of(one) for one in inside) / len(inside)
    low = sum(rank_of(one, ties_against=False) for one in outside) / len(outside)
    gain = (low - high) / math.sqrt((m * m - 1) / 6)  # variance of a difference of two ranks

    def power(size: int) -> float:
        enough = 1 / math.comb(2 * size, size) <= alpha
        return _reached(gain, k, size, float(norm.isf(alpha))) if enough else 0.0

    found = _least(k, power)
    return found and 2 * found


def releases_slots_needed(slots: Sequence[SlotScores], alpha: float, weight: float) -> int | None:
    """Return slots with which the evidence of one release would decide in 4 of 5 audits.

    Args:
        slots: As seen, planted ones alone; at least one.
        alpha: Level.
        weight: Weight of the release, :func:`~ragwitness.canary.rank_test.release_weight`.

    Returns:
        Doublings only; None where it cannot be told.
    """
    k, m = len(slots), slots[0].scores.size
    bets = np.log([rank_evidence(rank, m) for rank in range(1, m + 1)])
    spread = float(bets.std())
    gain = float(np.mean([bets[rank_of(one) - 1] for one in slots])) / spread
    far = math.log(1 / (alpha * weight)) / spread
    return _least(k, lambda size: _reached(gain, k, size, far / math.sqrt(size)))


def _reached(gain: float, seen: int, size: int, threshold: float) -> float:
    """Chance that sqrt(size) · mean passes, its truth known to 1 / sqrt(seen) around ``gain``."""
    return float(norm.cdf((gain * math.sqrt(size) - threshold) / math.sqrt(1 + size / seen)))


def _least(start: int, power: Callable[[int], float]) -> int | None:
    sizes = (start << n for n in range(_LARGEST.bit_length()))
    return next((size for size in sizes if power(size) >= _POWER), None)
