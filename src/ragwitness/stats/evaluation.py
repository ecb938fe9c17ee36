"""Evaluation of scores where the truth is known: every rate with n and an interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.stats.rates import RESAMPLES, Rate, proportion_interval, share_of

Scores = NDArray[np.float64]
Labels = NDArray[np.bool_]
Index = NDArray[np.int64]


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


# Confidence intervals: proportions, AUC, and any statistic by bootstrap.


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
        for _ in range(RESAMPLES)
    ]
    low, high = np.percentile(values, [2.5, 97.5]).tolist()
    return low, high
