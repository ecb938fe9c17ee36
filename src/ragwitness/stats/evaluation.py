"""Evaluation of scores where the truth is known: every rate with n and an interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError

Scores = NDArray[np.float64]
Values = NDArray[np.float64]
Labels = NDArray[np.bool_]
Index = NDArray[np.int64]


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
    return _bootstrapped(float(values.mean()), _resampled_means(values, seed), len(values), least)


def _bootstrapped(value: float, resampled: Values, n: int, least: float = -1.0) -> Rate:
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


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How well an audit did on documents whose membership is known.

    Attributes:
        auc: Area under the step-function ROC, DeLong interval on the logit scale.
        accuracy: Accuracy of the decision named in ``decided_by``.
        f1: F1 of the same decision; bootstrap interval over documents.
        tpr_at_1_fpr: Largest true-positive rate whose false-positive rate is at most 1 %.
        false_positives: Share of non-members with p-value <= alpha.
        true_positives: Share of members with p-value <= alpha.
        roc: (false-positive rate, true-positive rate) corners of the step function.
        members: Number of scored members.
        non_members: Number of scored non-members.
        unscorable: Documents without a score; in none of the rates.
        decided_by: Decision behind accuracy and F1: the classifier at one half, or p <= alpha.
    """

    auc: Rate
    accuracy: Rate
    f1: Rate
    tpr_at_1_fpr: Rate
    false_positives: Rate
    true_positives: Rate
    roc: tuple[tuple[float, float], ...]
    members: int
    non_members: int
    unscorable: int = 0
    decided_by: str = "classifier at one half"


def auc(scores: Scores, labels: Labels) -> float:
    """Probability that a member outscores a non-member, ties counted half (Mann-Whitney)."""
    from scipy.stats import rankdata

    members = int(labels.sum())
    others = labels.size - members
    if not members or not others:
        raise InputError("AUC needs at least one member and one non-member.")
    ranks = rankdata(scores)
    # Mann-Whitney: U = R_members - m (m + 1) / 2, and AUC = U / (m n).
    return float((ranks[labels].sum() - members * (members + 1) / 2) / (members * others))


def roc_curve(scores: Scores, labels: Labels) -> tuple[tuple[float, float], ...]:
    """Return the corners (FPR, TPR) of the empirical ROC, ties in one step."""
    # From the highest score down.
    order = np.argsort(-scores, kind="stable")
    hits, ordered = labels[order], scores[order]
    # Equal scores are called together: only the last of them is a corner.
    last = np.append(np.diff(ordered) != 0, True)
    true = np.cumsum(hits)[last] / max(1, int(labels.sum()))
    false = np.cumsum(~hits)[last] / max(1, int((~labels).sum()))
    return ((0.0, 0.0), *zip(false.tolist(), true.tolist(), strict=True))


def tpr_at_fpr(scores: Scores, labels: Labels, fpr: float) -> float:
    """Largest TPR whose FPR is at most ``fpr``: a step function, never interpolated."""
    return max(true for false, true in roc_curve(scores, labels) if false <= fpr)


def _f1(truth: Labels, decided: Labels) -> float:
    hits = int((truth & decided).sum())
    wrong = int((truth ^ decided).sum())
    return 2 * hits / (2 * hits + wrong) if hits or wrong else 0.0


def evaluate(
    scores: Sequence[float],
    labels: Sequence[bool],
    *,
    decisions: Sequence[bool],
    p_values: Sequence[float],
    alpha: float,
    unscorable: int = 0,
    decided_by: str = "classifier at one half",
) -> Evaluation:
    """Evaluate scored documents of known membership.

    Args:
        scores: Evidence of membership, shape (n,).
        labels: True for members, shape (n,).
        decisions: Those of accuracy and F1, shape (n,).
        p_values: Conformal p-values before correction, shape (n,).
        alpha: Level of the realised rates.
        unscorable: Documents left out because they have no score.
        decided_by: Name of the rule behind ``decisions``.

    Raises:
        InputError: Members or non-members are missing.
    """
    truth = np.asarray(labels, dtype=np.bool_)
    values = np.asarray(scores, dtype=np.float64)
    decided = np.asarray(decisions, dtype=np.bool_)
    flagged = np.asarray(p_values, dtype=np.float64) <= alpha
    # Rates of fixed decisions have exact intervals, the others resampled ones.
    area = auc(values, truth)
    n, members = truth.size, int(truth.sum())

    def resampled(statistic: Callable[[Index], float]) -> Rate:
        value = statistic(np.arange(n))
        low, high = bootstrap_interval(statistic, truth)
        return Rate(value, min(low, value), max(high, value), n)

    return Evaluation(
        auc=Rate(area, *auc_interval(values, truth), n),
        accuracy=share_of(decided == truth),
        f1=resampled(lambda index: _f1(truth[index], decided[index])),
        tpr_at_1_fpr=resampled(lambda index: tpr_at_fpr(values[index], truth[index], 0.01)),
        false_positives=share_of(flagged[~truth]),
        true_positives=share_of(flagged[truth]),
        roc=roc_curve(values, truth),
        members=members,
        non_members=n - members,
        unscorable=unscorable,
        decided_by=decided_by,
    )


# Two systems on the same questions: the difference of their scores, also at equal length.

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
    return _bootstrapped(float(differences.mean()), means, len(differences))


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
    return _bootstrapped(value, intercepts, len(differences)), near


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


# Confidence intervals: proportions, AUC, and any statistic by bootstrap.


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


def auc_interval(scores: Scores, labels: Labels) -> tuple[float, float]:
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
    if m < 2 or n < 2:  # one document has no variance
        return 0.0, 1.0
    ranks = rankdata(np.concatenate([members, others]))
    # Structural components (DeLong 1988) by mid-ranks (Sun & Xu 2014).
    v10 = (ranks[:m] - rankdata(members)) / n
    v01 = 1 - (ranks[m:] - rankdata(others)) / m
    area = float(v10.mean())
    # DeLong: the variances of both components, each over its own sample size.
    variance = float(v10.var(ddof=1) / m + v01.var(ddof=1) / n)
    if variance == 0 or area in (0.0, 1.0):
        size = min(m, n)
        low, high = proportion_interval(round(area * size), size)
        return min(low, area), max(high, area)
    logit = np.log(area / (1 - area))
    # Delta method: d logit(A) = dA / (A (1 - A)); the interval stays within [0, 1].
    half = float(norm.ppf(0.975)) * np.sqrt(variance) / (area * (1 - area))
    return float(1 / (1 + np.exp(-(logit - half)))), float(1 / (1 + np.exp(-(logit + half))))


_RESAMPLES = 1000


def bootstrap_interval(
    statistic: Callable[[Index], float], labels: Labels, *, seed: int = 0
) -> tuple[float, float]:
    """Return a 95 % percentile interval, members and non-members resampled apart.

    Args:
        statistic: Maps document indices, shape (n,), to a number.
        labels: True for members, shape (n,); keeps the class sizes fixed.
        seed: Seed of the resampling.
    """
    rng = np.random.default_rng(seed)
    classes = [rows for rows in (np.flatnonzero(labels), np.flatnonzero(~labels)) if rows.size]
    values = [
        statistic(np.concatenate([rng.choice(rows, rows.size) for rows in classes]))
        for _ in range(_RESAMPLES)
    ]
    low, high = np.percentile(values, [2.5, 97.5]).tolist()
    return low, high


def _resampled_means(values: Values, seed: int) -> Values:
    """Means of the resamples of :func:`bootstrap_interval`, the same numbers far sooner."""
    rng, n = np.random.default_rng(seed), len(values)
    step = max(1, (1 << 20) // n)  # resamples drawn at once: 8 MB
    sizes = [min(step, _RESAMPLES - start) for start in range(0, _RESAMPLES, step)]
    return np.concatenate([values[rng.integers(0, n, (size, n))].mean(1) for size in sizes])
