"""Conformal p-values from documents known to be outside, and their correction.

A conformal p-value needs no model of the scores: if a document outside the database is
exchangeable with the ``n`` calibration documents, its p-value is at most ``a`` with probability
at most ``a`` (Vovk et al. 2005). P-values that share one calibration set are positively
dependent (PRDS), under which Benjamini-Hochberg still controls the false discovery rate
(Bates et al., Annals of Statistics 2023, Theorem 2).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragwitness.errors import InputError


def conformal_p_values(
    scores: ArrayLike, calibration: ArrayLike, lots: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return (1 + number of calibration scores at least as high) / (n + 1) for each score.

    Args:
        scores: Higher means more evidence against the null, shape (m,).
        calibration: Scores drawn under the null, shape (n,).
        lots: Uniform numbers from 0 to 1 that break ties, shape (m,); None counts ties against
            the document, which loses power and never validity.

    Returns:
        P-values, shape (m,).

    Raises:
        InputError: There is no calibration score, or a number is not finite.
    """
    null = np.sort(np.asarray(calibration, dtype=np.float64))
    values = np.asarray(scores, dtype=np.float64)
    if not null.size:
        raise InputError("Conformal p-values need at least one calibration score.")
    if not (np.isfinite(null).all() and np.isfinite(values).all()):
        raise InputError("Scores must be finite; leave unscorable documents out.")
    # Vovk et al. 2005: the document is counted among those it is compared with, hence the + 1.
    above = null.size - np.searchsorted(null, values, side="left")
    if lots is not None:
        # Smoothed (Vovk et al. 2005, Sec. 2.2): the document itself is one of those it ties with.
        higher = null.size - np.searchsorted(null, values, side="right")
        drawn = higher + np.asarray(lots, dtype=np.float64) * (above - higher + 1)
        return np.asarray(drawn / (null.size + 1), dtype=np.float64)
    return np.asarray((1 + above) / (null.size + 1), dtype=np.float64)


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


def documents_needed(alpha: float, rejections: int = 1, tests: int = 1) -> int:
    """Smallest calibration set whose best p-value can survive the correction.

    Args:
        alpha: Level after correction.
        rejections: How many documents would be called in together.
        tests: How many documents are asked about.
    """
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie between 0 and 1, not {alpha}.")
    # The least p-value, 1 / (n + 1), must be at most alpha * rejections / tests.
    return math.ceil(tests / (alpha * rejections) - 1e-9) - 1
