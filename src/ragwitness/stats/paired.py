"""Two systems on the same questions: the difference of their scores, also at equal length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import InputError
from ragwitness.stats.evaluation import Rate
from ragwitness.stats.intervals import proportion_interval

__all__ = ["EqualLength", "at_equal_length", "paired_difference"]

Values = NDArray[np.float64]
_RESAMPLES = 2000
_NEAR = np.log(1.25)  # lengths within a factor of 1.25 of each other


@dataclass(frozen=True, slots=True)
class EqualLength:
    """A difference with the lengths of the answers held equal.

    Attributes:
        difference: Intercept of the regression, per question, of the difference of scores on
            the difference of the logarithms of the lengths.
        slope: Score gained per e-fold of length.
        near: Pairs whose lengths are within a factor of 1.25; with few, ``difference`` is an
            extrapolation.
    """

    difference: Rate
    slope: float
    near: int


def paired_difference(first: Values, second: Values, *, seed: int = 0) -> Rate:
    """Return the mean of ``first - second`` with a bootstrap interval over questions.

    Questions that either system has no score for (NaN) are left out of both; ``n`` says how many
    remain.

    Args:
        first: Scores of one system within [0, 1], shape (questions,).
        second: Of the other, same questions in the same order.
        seed: Of the resampling.

    Raises:
        InputError: The shapes differ, or no question has both scores.
    """
    differences = _differences(first, second)
    differences = differences[~np.isnan(differences)]
    return _rate(differences, differences[_draws(len(differences), seed)].mean(axis=1))


def at_equal_length(
    first: Values, second: Values, lengths: tuple[Values, Values], *, seed: int = 0
) -> EqualLength:
    """Return the difference that is left when both answers are equally long.

    Word-overlap measures reward or punish length whatever the words. Within each question the
    difference of scores is regressed on that of log lengths; at 0 the answers are equally long.

    Args:
        first: Scores of one system within [0, 1], shape (questions,).
        second: Of the other.
        lengths: Words of the answers of each; a length of 0 counts as 1.
        seed: Of the resampling.

    Raises:
        InputError: The shapes differ, or no question has both scores.
    """
    differences = _differences(first, second)
    ours, theirs = (np.log(np.maximum(one, 1.0)) for one in lengths)
    gaps = _differences(ours, theirs)
    if len(gaps) != len(differences):
        raise InputError("There must be one length per score.")
    kept = ~np.isnan(differences)
    differences, gaps = differences[kept], gaps[kept]
    draws = _draws(len(differences), seed)
    intercepts, _ = _fitted(differences[draws], gaps[draws])
    [value], [slope] = _fitted(differences[None], gaps[None])
    rate = _rate(differences, intercepts)
    near = int((np.abs(gaps) <= _NEAR).sum())
    return EqualLength(Rate(float(value), rate.low, rate.high, rate.n), float(slope), near)


def _differences(first: Values, second: Values) -> Values:
    if first.shape != second.shape or first.ndim != 1:
        raise InputError("Paired scores need the same questions in the same order.")
    return np.asarray(first - second, np.float64)


def _draws(n: int, seed: int) -> NDArray[np.int64]:
    """Resamples of questions, shape (resamples, n)."""
    if not n:
        raise InputError("No question has a score from both systems.")
    return np.random.default_rng(seed).integers(0, n, (_RESAMPLES, n))


def _fitted(values: Values, gaps: Values) -> tuple[Values, Values]:
    """Least squares of each row: value at gap 0, and slope (0 where all gaps are equal)."""
    means, middles = values.mean(axis=1), gaps.mean(axis=1)
    spread = gaps - middles[:, None]
    power = (spread**2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes = np.where(power > 0, (spread * values).sum(axis=1) / power, 0.0)
    return means - slopes * middles, slopes


def _rate(differences: Values, resampled: Values) -> Rate:
    n, mean = len(differences), float(differences.mean())
    if np.ptp(resampled) == 0:  # resamples of equal values know no doubt; n of n equal do
        doubt = proportion_interval(0, n)[1]
        return Rate(mean, max(-1.0, mean - doubt), min(1.0, mean + doubt), n)
    low, high = np.percentile(resampled, [2.5, 97.5])
    return Rate(mean, float(low), float(high), n)
