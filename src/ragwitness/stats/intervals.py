"""Confidence intervals: proportions, AUC, and any statistic by bootstrap."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError


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


def auc_interval(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> tuple[float, float]:
    """Return a 95 % interval of the AUC: DeLong variance on the logit scale.

    Perfect separation has no empirical variance; there the interval's lower end is that of a
    proportion with as many trials as the smaller class has documents (conservative).

    Args:
        scores: Shape (n,).
        labels: True for members, shape (n,).
    """
    from scipy.stats import norm, rankdata

    members, others = scores[labels], scores[~labels]
    m, n = members.size, others.size
    ranks = rankdata(np.concatenate([members, others]))
    # Structural components (DeLong 1988) by mid-ranks (Sun & Xu 2014).
    v10 = (ranks[:m] - rankdata(members)) / n
    v01 = 1 - (ranks[m:] - rankdata(others)) / m
    area = float(v10.mean())
    if m < 2 or n < 2:
        return 0.0, 1.0
    # DeLong: the variances of both components, each over its own sample size.
    variance = float(v10.var(ddof=1) / m + v01.var(ddof=1) / n)
    if variance == 0 or area in (0.0, 1.0):
        size = min(m, n)
        low, high = proportion_interval(round(area * size), size)
        return min(low, area), max(high, area)
    z = float(norm.ppf(0.975))
    logit = np.log(area / (1 - area))
    # Delta method: d logit(A) = dA / (A (1 - A)); the interval stays within [0, 1].
    half = z * np.sqrt(variance) / (area * (1 - area))
    return float(1 / (1 + np.exp(-(logit - half)))), float(1 / (1 + np.exp(-(logit + half))))


_RESAMPLES = 1000


def bootstrap_interval(
    statistic: Callable[[NDArray[np.int64]], float],
    labels: NDArray[np.bool_],
    *,
    seed: int = 0,
) -> tuple[float, float]:
    """Return a 95 % percentile interval, members and non-members resampled apart.

    Args:
        statistic: Maps document indices, shape (n,), to a number.
        labels: True for members, shape (n,); keeps the class sizes fixed.
        seed: Seed of the resampling.
    """
    rng = np.random.default_rng(seed)
    inside, outside = np.flatnonzero(labels), np.flatnonzero(~labels)
    values = [
        statistic(
            np.concatenate([rng.choice(part, part.size) for part in (inside, outside) if part.size])
        )
        for _ in range(_RESAMPLES)
    ]
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def bootstrap_mean_interval(values: NDArray[np.float64], *, seed: int = 0) -> tuple[float, float]:
    """Return :func:`bootstrap_interval` of the mean of one sample, the same numbers far sooner."""
    rng, n = np.random.default_rng(seed), len(values)
    step = max(1, (1 << 20) // n)  # resamples drawn at once: 8 MB
    means = [
        values[rng.integers(0, n, (min(step, _RESAMPLES - done), n))].mean(1)
        for done in range(0, _RESAMPLES, step)
    ]
    low, high = np.percentile(np.concatenate(means), [2.5, 97.5])
    return float(low), float(high)
