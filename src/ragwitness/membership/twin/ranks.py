"""Exact tests on ranks among alternatives, combined over places.

Where a true value is exchangeable with its m alternatives its rank is uniform on 1..m+1, ties
counted against it make it larger, and the sum over independent places is below T with at most
the probability that the sum of independent uniform ranks is. That distribution is a convolution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragwitness.types import Interval

__all__ = [
    "hits_p_value",
    "place_p_value",
    "rank_of",
    "rank_sum_distribution",
    "rank_sum_p_value",
    "standardised_hits",
    "standardised_rank_sum",
]


def rank_of(true: Interval, others: Sequence[Interval]) -> int:
    """Return the true value's rank, 1 being the highest, with every doubt against it.

    Args:
        true: The true value's evidence; known to lie in the interval.
        others: The alternatives'. One that may be as high counts as higher.
    """
    return 1 + sum(other.high >= true.low for other in others)


def place_p_value(rank: int, alternatives: int) -> float:
    """Return P(rank at most this) for one place: rank / (m + 1)."""
    return rank / (alternatives + 1)


def rank_sum_distribution(alternatives: Sequence[int]) -> NDArray[np.float64]:
    """Return P(sum of ranks = n + j) for j = 0, 1, ..., n places with m_i alternatives each."""
    distribution = np.ones(1)
    for m in alternatives:
        distribution = np.convolve(distribution, np.full(m + 1, 1.0 / (m + 1)))
    return distribution


def rank_sum_p_value(ranks: Sequence[int], alternatives: Sequence[int]) -> float:
    """Return P(sum of independent uniform ranks <= the sum observed); exact, no simulation."""
    excess = sum(ranks) - len(ranks)
    return min(1.0, float(rank_sum_distribution(alternatives)[: excess + 1].sum()))


def standardised_rank_sum(ranks: Sequence[int], alternatives: Sequence[int]) -> float:
    """Return (E T - T) / sd T under the null; higher where the true values rank higher."""
    mean = sum((m + 2) / 2 for m in alternatives)
    variance = sum(((m + 1) ** 2 - 1) / 12 for m in alternatives)
    return (mean - sum(ranks)) / math.sqrt(variance)


def hits_p_value(hits: int, chances: Sequence[float]) -> float:
    """Return P(at least this many hits) for independent places (Poisson binomial), exact."""
    distribution = np.ones(1)
    for p in chances:
        distribution = np.convolve(distribution, [1.0 - p, p])
    return min(1.0, float(distribution[hits:].sum()))


def standardised_hits(hits: int, chances: Sequence[float]) -> float:
    """Return (hits - E) / sd under the null."""
    variance = sum(p * (1 - p) for p in chances)
    return (hits - sum(chances)) / math.sqrt(variance)
