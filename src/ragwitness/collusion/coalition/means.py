"""Account means: jitter that is fresh in each query averages out, so the means of a coalition meet.

With m queries of pairwise cosine tau the means' cosine is 1 / (1 + (1 - tau) / (tau m)).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ragwitness.collusion.coalition.graph import Links
from ragwitness.collusion.coalition.log import QueryLog
from ragwitness.collusion.coalition.pairs import chance_of_pair
from ragwitness.errors import InputError

__all__ = [
    "Whitening",
    "account_means",
    "expected_cosine",
    "mean_links",
    "mean_p_value",
    "nearest_means",
]

Matrix = NDArray[np.float64]
_MOST = 20_000  # accounts, all pairs of which are compared


class Whitening:
    """Makes the directions of ordinary traffic alike, so that an embedder's own do not count.

    Args:
        reference: Ordinary queries, shape (queries, dim). Never the log in question: a coalition
            would make its own direction ordinary.
        shrink: Share of the mean variance added to each direction.
    """

    def __init__(self, reference: NDArray[np.float32], shrink: float = 0.1) -> None:
        rows = np.asarray(reference, dtype=np.float64)
        self._centre: Matrix = rows.mean(axis=0)
        values, axes = np.linalg.eigh(np.cov(rows, rowvar=False))
        floor = shrink * float(values.mean()) + 1e-12
        self._scale: Matrix = (axes / np.sqrt(np.maximum(values, 0) + floor)) @ axes.T

    def __call__(self, vectors: NDArray[np.float32]) -> Matrix:
        """Return centred and scaled vectors, shape (n, dim).

        Raises:
            InputError: They are of another dimension.
        """
        if vectors.shape[1] != len(self._centre):
            raise InputError(
                f"The logs hold vectors of {vectors.shape[1]} and {len(self._centre)} dimensions."
            )
        white: Matrix = (vectors - self._centre) @ self._scale
        return white


def account_means(log: QueryLog, whitening: Whitening | None = None) -> Matrix:
    """Return one unit vector per account: the direction of its mean query.

    Args:
        log: The queries.
        whitening: From ordinary traffic; without it queries count as they are.

    Returns:
        Shape (accounts, dim).
    """
    rows = log.vectors.astype(np.float64) if whitening is None else whitening(log.vectors)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    sums = np.zeros((log.size, log.dim))
    np.add.at(sums, log.accounts, rows)
    means: Matrix = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return means


def expected_cosine(tau: float, queries: int) -> float:
    """Return the cosine of two accounts' means whose probes have cosine ``tau``, jitter fresh."""
    return 1 / (1 + (1 - tau) / (tau * queries))


def mean_links(means: Matrix, floor: float) -> Links:
    """Return all pairs of accounts whose means have cosine ``floor`` or more.

    Raises:
        InputError: Too many accounts to compare all pairs.
    """
    cosines = _cosines(means)
    first, second = np.nonzero(np.triu(cosines >= floor, 1))
    return Links(first, second, cosines[first, second], len(means))


def nearest_means(means: Matrix) -> float:
    """Return the largest cosine of two accounts' means; -1 for one account.

    Raises:
        InputError: Too many accounts to compare all pairs.
    """
    cosines = _cosines(means)
    np.fill_diagonal(cosines, -1.0)
    return float(cosines.max())


def _cosines(means: Matrix) -> Matrix:
    n = len(means)
    if n > _MOST:
        raise InputError(
            f"{n:,} accounts are too many to compare all pairs; at most {_MOST:,}.",
            "Estimate on a shorter window, or on a part of the accounts.",
        )
    cosines: Matrix = means @ means.T
    return cosines


def mean_p_value(largest: float, accounts: int, dim: int) -> float:
    """Return how often unrelated means, uniform on the sphere, come as close as ``largest``."""
    if largest <= 0:
        return 1.0
    return -math.expm1(-math.comb(accounts, 2) * chance_of_pair(min(largest, 1.0), dim))
