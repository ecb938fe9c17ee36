"""Rates with n and an interval: shares, means and their differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError

Values = NDArray[np.float64]

RESAMPLES = 1000
"""Resamples of a bootstrap interval."""


@dataclass(frozen=True, slots=True)
class Rate:
    """An estimate with its 95 % interval and the number of documents behind it."""

    value: float
    low: float
    high: float
    n: int


def share_rate(count: int, n: int) -> Rate:
    """Return a share with its exact interval."""
    return Rate(count / n, *proportion_interval(count, n), n)


def share_of(flags: Sequence[bool] | NDArray[np.bool_]) -> Rate:
    """Return the share of true flags with its exact interval."""
    return share_rate(int(np.sum(flags)), len(flags))


def mean_rate(values: Values, seed: int = 0, least: float = -1.0) -> Rate:
    """Return the mean of values from ``least`` to 1 with a bootstrap interval over its items."""
    return bootstrapped(float(values.mean()), _resampled_means(values, seed), len(values), least)


def bootstrapped(value: float, resampled: Values, n: int, least: float = -1.0) -> Rate:
    """Return a statistic with the percentiles of its resamples."""
    if np.ptp(resampled) == 0:  # resamples of equal values know no doubt; n of n equal do
        doubt = proportion_interval(0, n)[1]
        return Rate(value, max(least, value - doubt), min(1.0, value + doubt), n)
    # A percentile interval need not contain the estimate itself.
    low, high = np.percentile(resampled, [2.5, 97.5]).tolist()
    return Rate(value, min(low, value), max(high, value), n)


def less(first: Rate, second: Rate) -> Rate:
    """Return one mean or share less another of other items: MOVER (Zou and Donner 2008, eq. 4)."""
    value = first.value - second.value
    down = math.hypot(first.value - first.low, second.high - second.value)
    up = math.hypot(first.high - first.value, second.value - second.low)
    return Rate(value, value - down, value + up, first.n)


def proportion_interval(hits: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact (Clopper-Pearson) interval of a proportion.

    Raises:
        InputError: ``hits`` is not within 0..n, or ``n`` is 0.
    """
    if n <= 0 or not 0 <= hits <= n:
        raise InputError(f"A proportion needs 0 <= hits <= n and n > 0, not {hits} of {n}.")
    from scipy.stats import beta

    tail = (1 - confidence) / 2
    # Clopper and Pearson 1934: quantiles of Beta(k, n - k + 1) and of Beta(k + 1, n - k).
    low = 0.0 if hits == 0 else float(beta.ppf(tail, hits, n - hits + 1))
    high = 1.0 if hits == n else float(beta.ppf(1 - tail, hits + 1, n - hits))
    return low, high


def _resampled_means(values: Values, seed: int) -> Values:
    """Means of the resamples of ``evaluation.bootstrap_interval``: the same numbers, far sooner."""
    rng, n = np.random.default_rng(seed), len(values)
    step = max(1, (1 << 20) // n)  # resamples drawn at once: 8 MB
    sizes = [min(step, RESAMPLES - start) for start in range(0, RESAMPLES, step)]
    return np.concatenate([values[rng.integers(0, n, (size, n))].mean(1) for size in sizes])
