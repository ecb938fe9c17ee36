"""The paper's estimator (R5, section 5.5): accounts with two similar queries belong together.

Two queries of different accounts within a sliding window whose cosine is at least tau join their
accounts; the largest connected component is the estimate. Exact: every pair in the window is
compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ragwitness.collusion.coalition.graph import (
    Links,
    core_group,
    largest_component,
    merged,
    strongest,
)
from ragwitness.collusion.coalition.log import QueryLog
from ragwitness.errors import InputError
from ragwitness.privacy.accounting.ranges import probability, whole

__all__ = [
    "chance_of_pair",
    "group_curve",
    "nearest_pair",
    "null_rate",
    "similar_pairs",
    "threshold_for",
]

_BLOCK = 2048  # queries compared at a time: 16 MB of cosines


def similar_pairs(log: QueryLog, tau: float, window: float = math.inf) -> Links:
    """Return every pair of accounts with two queries of cosine ``tau`` or more.

    Args:
        log: The queries.
        tau: Least cosine, within (-1, 1].
        window: Seconds that may lie between the two.

    Raises:
        InputError: ``tau`` or ``window`` is outside its range.
    """
    check_bounds(tau, window)
    found: list[Links] = []
    last = np.searchsorted(log.times, log.times + window, side="right")
    for start in range(0, len(log.times), _BLOCK):
        stop = min(start + _BLOCK, len(log.times))
        for other in range(start, int(last[stop - 1]), _BLOCK):
            end = min(other + _BLOCK, int(last[stop - 1]))
            cosines = log.vectors[start:stop] @ log.vectors[other:end].T
            rows, columns = np.nonzero(cosines >= tau)
            rows, columns, weight = rows + start, columns + other, cosines[rows, columns]
            kept = (columns > rows) & (columns < last[rows])
            first, second = log.accounts[rows[kept]], log.accounts[columns[kept]]
            found.append(strongest(first, second, weight[kept], log.size))
    return merged(found, log.size)


def nearest_pair(log: QueryLog, window: float = math.inf) -> float:
    """Return the largest cosine of two accounts' queries within the window; -1 without any.

    Raises:
        InputError: The window is outside its range.
    """
    check_bounds(1.0, window)
    nearest = -1.0
    last = np.searchsorted(log.times, log.times + window, side="right")
    for start in range(0, len(log.times), _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, len(log.times)))
        columns = np.arange(start, int(last[rows[-1]]))
        cosines = log.vectors[rows] @ log.vectors[columns].T
        kept = log.accounts[rows, None] != log.accounts[columns]
        kept &= (columns > rows[:, None]) & (columns < last[rows, None])
        nearest = max(nearest, float(cosines.max(where=kept, initial=-1.0)))
    return nearest


def group_curve(
    log: QueryLog, thresholds: Sequence[float], window: float = math.inf
) -> list[tuple[float, int, int]]:
    """Return the largest component and the innermost core at each threshold.

    Args:
        log: The queries.
        thresholds: Cosines.
        window: Seconds that may lie between two queries.

    Returns:
        (threshold, accounts in the component, accounts in the core).

    Raises:
        InputError: A threshold or the window is outside its range.
    """
    links = similar_pairs(log, min(thresholds), window)
    kept = [(tau, links.above(tau)) for tau in thresholds]
    return [(tau, len(largest_component(part)), len(core_group(part))) for tau, part in kept]


def check_bounds(tau: float, window: float) -> None:
    """Refuse a threshold or a window outside its range.

    Raises:
        InputError: One is.
    """
    if not -1 < tau <= 1:
        raise InputError(f"The threshold is a cosine above -1 and at most 1, not {tau:g}.")
    if not window > 0:
        raise InputError(f"The window must be above 0 seconds, not {window:g}.")


def chance_of_pair(tau: float, dim: int) -> float:
    """Return the probability that two uniform unit vectors have cosine ``tau`` or more.

    Args:
        tau: From 0 to 1.
        dim: Of the vectors.
    """
    from scipy.special import betainc

    return float(betainc((dim - 1) / 2, 0.5, 1 - tau * tau)) / 2


def null_rate(tau: float, accounts: int, queries: int, dim: int) -> float:
    """Return how often unrelated accounts are joined: 1 - exp(-C(N, 2) m^2 p_tau).

    Args:
        tau: Threshold, from 0 to 1.
        accounts: N.
        queries: m, of each account, uniform on the sphere.
        dim: Of the vectors.
    """
    pairs = math.comb(accounts, 2) * queries**2
    return -math.expm1(-pairs * chance_of_pair(tau, dim))


def threshold_for(rate: float, accounts: int, queries: int, dim: int) -> float:
    """Return the threshold at which :func:`null_rate` is ``rate``; 0 where every one is below.

    Raises:
        InputError: A value is outside its range.
    """
    from scipy.special import betaincinv

    pairs = math.comb(whole("accounts", accounts), 2) * whole("queries", queries) ** 2
    tail = -math.log1p(-probability("rate", rate)) / max(1, pairs)
    if tail >= 0.5:
        return 0.0
    return math.sqrt(1 - float(betaincinv((whole("dim", dim, 2) - 1) / 2, 0.5, 2 * tail)))
