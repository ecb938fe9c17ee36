"""The paper's statistic of a policy (2604.22191, Eq. 1)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t

from ragwitness.errors import InputError
from ragwitness.stats.evaluation import Rate

__all__ = ["amplification"]

_CONFIDENCE = 0.95


def amplification(triggered: ArrayLike, clean: ArrayLike) -> Rate:
    """Return A = 1/N sum_i [log pi(c | d~_i, q_i, p_i) - log pi(c | d_i, q_i, p_i)], in nats.

    Args:
        triggered: Log-probabilities under the planted trigger, shape (N,).
        clean: Of the same examples without, shape (N,).

    Returns:
        With N and Student's interval over examples, 95 %, which holds its level with a handful of
        them where a percentile bootstrap does not; NaN limits where N is 1.

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
    half = float(t.ppf((1 + _CONFIDENCE) / 2, n - 1) * gains.std(ddof=1) / math.sqrt(n))
    return Rate(value, value - half, value + half, n)
