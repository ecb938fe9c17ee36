"""Conformal p-values from documents known to be outside, and their correction.

A conformal p-value needs no model of the scores: if a document outside the database is
exchangeable with the ``n`` calibration documents, its p-value is at most ``a`` with probability
at most ``a`` (Vovk et al. 2005). P-values that share one calibration set are positively
dependent (PRDS), under which Benjamini-Hochberg still controls the false discovery rate
(Bates et al., Annals of Statistics 2023, Theorem 2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragwitness.core.errors import InputError

Groups = tuple[Sequence[str | None], Sequence[str | None]]
"""Groups of scores and of calibration scores; None is a group of its own."""


def conformal_p_values(
    scores: ArrayLike,
    calibration: ArrayLike,
    groups: Groups | None = None,
) -> NDArray[np.float64]:
    """Return (1 + number of calibration scores at least as high) / (n + 1) for each score.

    With groups each has one vote, its share of scores at least as high, among all groups and the
    score's own (Lee, Barber and Willett 2023, hierarchical conformal prediction): valid where
    groups are exchangeable with each other, and documents within one.

    Args:
        scores: Higher means more evidence against the null, shape (m,).
        calibration: Scores drawn under the null, shape (n,).
        groups: Which scores belong together, shapes (m,) and (n,); None takes each by itself.

    Returns:
        P-values, shape (m,).

    Raises:
        InputError: There is no calibration score, or a number is not finite.
    """
    null = np.asarray(calibration, dtype=np.float64)
    values = np.asarray(scores, dtype=np.float64)
    if not null.size:
        raise InputError("Conformal p-values need at least one calibration score.")
    if not (np.isfinite(null).all() and np.isfinite(values).all()):
        raise InputError("Scores must be finite; leave unscorable documents out.")
    # Votes for "at least as high", which counts ties against the accusation; a document is counted
    # among those that it is compared with (Vovk et al. 2005), hence the 1.
    order = np.argsort(null, kind="stable")
    weight = np.ones(null.size)
    if groups:
        names, place, times = _numbered(groups[1])
        weight = 1 / times[place]
    tails = np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)
    above = tails[np.searchsorted(null[order], values, side="left")] + 1
    votes = np.full(values.size, weight.sum())
    if groups:
        # Where known documents of its own group are there, it is one of them.
        for at, group in enumerate(groups[0]):
            if (number := names.get(group or "")) is not None:
                inside = null[place == number]
                beside = (inside >= values[at]).sum()
                above[at] += (beside + 1) / (inside.size + 1) - 1 - beside / inside.size
                votes[at] -= 1
        above, votes = above.round(9), votes.round()
    return np.asarray(above / (votes + 1))


def _numbered(
    groups: Sequence[str | None],
) -> tuple[dict[str, int], NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of named groups, the number of each document's, and the size of each group."""
    names: dict[str, int] = {}
    place, size = np.zeros(len(groups), dtype=np.int64), 0
    for at, group in enumerate(groups):
        place[at] = size if group is None else names.setdefault(group, size)
        size += place[at] == size
    return names, place, np.bincount(place)


def votes_of(groups: Sequence[str | None]) -> int:
    """Return how many groups there are; None is one of its own."""
    return len(_numbered(groups)[2]) if groups else 0


def largest_tie(scores: ArrayLike) -> int:
    """Return how many of the scores are equal to each other at most; 0 without any."""
    counts = np.unique(np.asarray(scores, dtype=np.float64), return_counts=True)[1]
    return int(counts.max(initial=0))


def benjamini_hochberg(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return step-up adjusted p-values (q-values), shape (m,).

    Rejecting where q <= a controls the false discovery rate at a.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    # Step-up (Benjamini and Hochberg 1995): q of rank r is the least p_s n / s over ranks s >= r.
    scaled = p[order] * p.size / np.arange(1, p.size + 1)
    # 0.05 * 3 / 3 is 0.05: what differs from a short decimal in its last bits alone is that one.
    short = scaled.round(12)
    scaled = np.where(np.abs(short - scaled) <= 4 * np.spacing(scaled), short, scaled)
    adjusted = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    q = np.empty_like(p)
    q[order] = adjusted
    return q


def documents_needed(alpha: float, tests: int = 1) -> int:
    """Smallest calibration set whose best p-value can survive the correction.

    Args:
        alpha: Level after correction.
        tests: Number of documents asked about.
    """
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie between 0 and 1, not {alpha}.")
    # The least p-value, 1 / (n + 1), must be at most alpha / tests.
    return math.ceil(tests / alpha - 1e-9) - 1
