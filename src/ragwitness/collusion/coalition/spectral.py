"""Spectral scan: many accounts that share a little of one direction, seen together.

The largest eigenvalue of the sum of m_a m_a^T over unit account means m_a against the same with
every coordinate permuted among the accounts: coordinates keep their values, a common direction is
gone. Detection sets in at k tau > sqrt(N/d) (Baik, Ben Arous & Peche), however many accounts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.privacy.accounting.ranges import whole

__all__ = ["Scan", "effective_size", "scan", "top_direction"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """What the scan found.

    Attributes:
        largest: Eigenvalue.
        null: The same of each permutation, shape (rounds,).
        p_value: Share of permutations as large, the log counted among them.
        shared: Estimate of k tau: the size of a coalition in accounts that hold nothing back.
        members: Accounts that lie along the direction more than chance allows.
    """

    largest: float
    null: NDArray[np.float64]
    p_value: float
    shared: float
    members: NDArray[np.int64]


def scan(means: Matrix, rng: np.random.Generator, rounds: int = 99) -> Scan:
    """Scan account means for a common direction.

    Args:
        means: Unit rows, shape (accounts, dim).
        rng: Of the permutations.
        rounds: Their number; the least p-value is 1 / (rounds + 1).

    Raises:
        InputError: There is no round.
    """
    whole("rounds", rounds)
    largest, direction = top_direction(means)
    null = np.array([top_direction(_permuted(means, rng))[0] for _ in range(rounds)])
    return Scan(
        largest,
        null,
        (1 + int((null >= largest).sum())) / (rounds + 1),
        effective_size(largest, *means.shape),
        _members(means, direction),
    )


def _permuted(means: Matrix, rng: np.random.Generator) -> Matrix:
    """Permute each coordinate among the accounts; rows are made unit again, as the means are."""
    rows = rng.permuted(means, axis=0)
    unit: Matrix = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return unit


def top_direction(means: Matrix) -> tuple[float, NDArray[np.float64]]:
    """Return the largest eigenvalue of the sum of outer products, and its direction."""
    from scipy.linalg import eigh

    n, dim = means.shape
    small = min(n, dim)
    gram = means.T @ means if dim == small else means @ means.T
    values, axes = eigh(gram, subset_by_index=(small - 1, small - 1))
    axis = axes[:, 0] if dim == small else means.T @ axes[:, 0]
    return float(values[0]), np.asarray(axis / max(float(np.linalg.norm(axis)), 1e-300))


def effective_size(largest: float, accounts: int, dim: int) -> float:
    """Return k tau from the largest eigenvalue; 0 where it tells of none.

    Of N unit rows in d dimensions a common part of k tau = s N/d moves the eigenvalue to
    N/d (1 + s)(1 + g/s), g = d/N, once s > sqrt(g); solved for s.
    """
    ratio = dim / accounts
    above = largest * ratio - 1 - ratio
    inside = above * above - 4 * ratio
    if above <= 0 or inside <= 0:
        return 0.0
    return (above + math.sqrt(inside)) / 2 / ratio


def _members(means: Matrix, direction: NDArray[np.float64]) -> NDArray[np.int64]:
    """Accounts whose squared cosine with the direction is beyond chance at 5 % for all together."""
    from scipy.special import betaincinv

    n, dim = means.shape
    bound = float(betaincinv(0.5, (dim - 1) / 2, 1 - 0.05 / n))
    along = means @ direction
    sign = 1.0 if (along**3).sum() >= 0 else -1.0
    found: NDArray[np.int64] = np.flatnonzero((along**2 > bound) & (sign * along > 0))
    return found
