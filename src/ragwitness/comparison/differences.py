"""Two systems on the same questions: the difference of their scores, also at equal length."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.stats.rates import Rate, Values, bootstrapped

Index = NDArray[np.int64]

_PAIRED_RESAMPLES = 2000
_NEAR = np.log(1.25)  # lengths within a factor of 1.25 of each other


def paired_difference(first: Values, second: Values, *, seed: int = 0) -> Rate:
    """Return the mean of ``first - second`` with a bootstrap interval over questions.

    Questions without a score (NaN) from either system are left out; ``n`` counts the others.

    Args:
        first: Scores of one system within [0, 1], shape (questions,).
        second: Scores of the other, for the same questions in the same order.
        seed: Seed of the resampling.

    Raises:
        InputError: The shapes differ, or no question has both scores.
    """
    differences = _differences(first, second)
    differences = differences[~np.isnan(differences)]
    means = differences[_draws(len(differences), seed)].mean(axis=1)
    return bootstrapped(float(differences.mean()), means, len(differences))


def at_equal_length(
    first: Values, second: Values, lengths: tuple[Values, Values], *, seed: int = 0
) -> tuple[Rate, int]:
    """Return the difference that remains when both answers are equally long.

    Word-overlap measures reward or punish length whatever the words. Within each question the
    difference of scores is regressed on that of log lengths; at 0 the answers are equally long.

    Args:
        first: Scores of one system within [0, 1], shape (questions,).
        second: Scores of the other.
        lengths: Numbers of words in the answers of each; a length of 0 counts as 1.
        seed: Seed of the resampling.

    Returns:
        The intercept of that regression, and the pairs whose lengths are within a factor of 1.25.
        With few of these it is an extrapolation.

    Raises:
        InputError: The shapes differ, or no question has both scores.
    """
    # 1. Differences of scores and of log lengths, question by question.
    differences = _differences(first, second)
    gaps = _differences(*(np.log(np.maximum(length, 1.0)) for length in lengths))
    if len(gaps) != len(differences):
        raise InputError("There must be one length per score.")
    scored = ~np.isnan(differences)
    differences, gaps = differences[scored], gaps[scored]
    draws = _draws(len(differences), seed)
    # The intercept of each resample is the difference at equal length there.
    intercepts = _intercepts(differences[draws], gaps[draws])
    [value] = _intercepts(differences[None], gaps[None]).tolist()
    near = int((np.abs(gaps) <= _NEAR).sum())
    return bootstrapped(value, intercepts, len(differences)), near


def _differences(first: Values, second: Values) -> Values:
    if first.shape != second.shape or first.ndim != 1:
        raise InputError("Paired scores need the same questions in the same order.")
    return np.asarray(first - second, np.float64)


def _draws(n: int, seed: int) -> Index:
    """Resamples of questions, shape (resamples, n)."""
    if not n:
        raise InputError("No question has a score from both systems.")
    return np.random.default_rng(seed).integers(0, n, (_PAIRED_RESAMPLES, n))


def _intercepts(values: Values, gaps: Values) -> Values:
    """Least squares of each row: value at gap 0, by slope 0 where all gaps are equal."""
    means, middles = values.mean(axis=1), gaps.mean(axis=1)
    spread = gaps - middles[:, None]
    power = (spread**2).sum(axis=1)
    # slope = cov / var; without any difference in length there is no slope to remove.
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes = np.where(power > 0, (spread * values).sum(axis=1) / power, 0.0)
    return np.asarray(means - slopes * middles)
