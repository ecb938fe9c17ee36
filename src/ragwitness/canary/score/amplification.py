"""The paper's statistic of a policy (2604.22191, Eq. 1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ragwitness.errors import InputError
from ragwitness.stats.evaluation import Rate

__all__ = ["amplification"]

_RESAMPLES = 2000


def amplification(triggered: ArrayLike, clean: ArrayLike, *, seed: int = 0) -> Rate:
    """Return A = 1/N sum_i [log pi(c | d~_i, q_i, p_i) - log pi(c | d_i, q_i, p_i)], in nats.

    Args:
        triggered: Log-probabilities under the planted trigger, shape (N,).
        clean: Of the same examples without, shape (N,).
        seed: Of the bootstrap over examples, percentile, 95 %.

    Returns:
        With N and interval; NaN limits where N is 1.

    Raises:
        InputError: The shapes differ, there is no example, or a number is not finite.
    """
    first, second = np.asarray(triggered, np.float64), np.asarray(clean, np.float64)
    if first.shape != second.shape or first.ndim != 1 or not first.size:
        raise InputError("Amplification needs both views of the same examples.")
    gains = first - second
    if not np.isfinite(gains).all():
        raise InputError("Scores must be finite; leave unscorable examples out.")
    n, value = gains.size, float(gains.mean())
    if n == 1:
        return Rate(value, float("nan"), float("nan"), 1)
    draws = np.random.default_rng(seed).integers(0, n, (_RESAMPLES, n))
    low, high = np.percentile(gains[draws].mean(axis=1), [2.5, 97.5])
    return Rate(value, float(low), float(high), n)
