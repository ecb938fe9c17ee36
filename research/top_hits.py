"""The same attack where only the top K ids come back (section 4.4): hits of the target's slot.

Noise is added to every score and the K largest are returned. A query hits where the slot under
attack is among them. Given the index, hits of repeated probes are independent, so their count is
binomial, with a probability that is computed here instead of sampled: over the slot's own noise,
the number of other slots above it is a sum of independent 0/1 variables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.privacy.ranges import positive, whole

Vector = NDArray[np.float64]
_STEP = 0.0125
_NODES: Vector = np.arange(-720, 721).astype(np.float64) * _STEP
"""Trapezoid nodes of the slot's own noise: exact to 1e-12 for anything wider than their step."""


@dataclass(frozen=True, slots=True)
class TopHits:
    """How often the slot under attack is among the K returned, in either world.

    Attributes:
        present: Probability per query with the document in the slot.
        absent: With another document in it.
    """

    present: float
    absent: float

    def area(self, queries: int) -> float:
        """Return the AUC of the number of hits over ``queries`` pooled queries."""
        return count_area(self.present, self.absent, queries)


def hit_probability(own: float, others: Vector, sigma: float, k: int) -> float:
    """Return the probability that a slot is among the K largest noisy scores.

    Args:
        own: Score of the slot.
        others: Scores of all other slots, shape (n - 1,).
        sigma: Of the noise.
        k: Ids returned.

    Raises:
        InputError: A value is outside its range, or a score is not finite.
    """
    slots = others.size + 1
    if not 1 <= k < slots:
        raise InputError(f"The top {k} of {slots} slots is not a choice.", "Give 1 <= K < n.")
    positive("sigma", sigma)
    if not (math.isfinite(own) and np.isfinite(others).all()):
        raise InputError("A score is not a finite number.")
    # Over the slot's own noise: the chance that fewer than K others end above its level.
    levels: Vector = own + sigma * _NODES
    fewer = _fewer_above(levels, others, sigma, k)
    density = np.exp(-(_NODES**2) / 2) * (_STEP / math.sqrt(2 * math.pi))
    return float(density @ fewer)


def _fewer_above(levels: Vector, others: Vector, sigma: float, k: int) -> Vector:
    """Probability that fewer than ``k`` of the others' noisy scores exceed each level."""
    from scipy.special import ndtr

    # One slot after the other: Poisson binomial, kept up to K - 1.
    counts = np.zeros((k, levels.size))  # P[exactly i above], i < k
    counts[0] = 1.0
    for score in others:
        above = ndtr((score - levels) / sigma)
        counts[1:] = counts[1:] * (1 - above) + counts[:-1] * above
        counts[0] *= 1 - above
    total: Vector = counts.sum(axis=0)
    return total


def count_area(present: float, absent: float, queries: int) -> float:
    """Return the exact AUC of two binomial counts, ties half.

    Args:
        present: Probability of a hit with the document.
        absent: Without it.
        queries: Pooled queries.

    Raises:
        InputError: A probability is outside [0, 1], or there is no query.
    """
    from scipy.stats import binom

    if not (0 <= present <= 1 and 0 <= absent <= 1):
        raise InputError(f"A hit has no probability of {present:g} or {absent:g}.")
    # P(more hits with than without) + half of P(equal).
    counts = np.arange(whole("queries", queries) + 1)
    with_it, without = binom.pmf(counts, queries, present), binom.pmf(counts, queries, absent)
    under = np.cumsum(without) - without
    return float(with_it @ (under + without / 2))


def transfer_factor(k: int, n: int) -> float:
    """Return eta: how much of mu is left where only membership in the top K is seen.

    With p = K/n and z = Phi^-1(1 - p), eta = phi(z) / sqrt(p (1 - p)): the Pitman efficiency of
    the hit against the noisy score, exact as sigma grows beyond the spread of the scores.

    Args:
        k: Ids returned.
        n: Slots of the index.

    Raises:
        InputError: Not 1 <= k < n.
    """
    from scipy.special import ndtri

    if not 1 <= k < n:
        raise InputError(f"The top {k} of {n} slots is not a choice.", "Give 1 <= K < n.")
    # eta = phi(z_p) / sqrt(p (1 - p)): a slot at the threshold, seen as in or out.
    p = k / n
    z = float(-ndtri(p))
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi * p * (1 - p))
