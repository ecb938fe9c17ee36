"""Evaluation of scores where the truth is known: every rate with n and an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import InputError
from ragwitness.stats.intervals import auc_interval, bootstrap_interval, proportion_interval

__all__ = [
    "Evaluation",
    "Rate",
    "auc",
    "auc_difference",
    "evaluate",
    "roc_curve",
    "tpr_at_fpr",
]

Scores = NDArray[np.float64]
Labels = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Rate:
    """An estimate with its 95 % interval and the number of documents behind it."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How well an audit did on documents whose membership is known.

    Attributes:
        auc: Area under the step-function ROC, DeLong interval on the logit scale.
        accuracy: Of the decision named in ``decided_by``.
        f1: Of the same decision; bootstrap interval over documents.
        tpr_at_1_fpr: Largest true-positive rate whose false-positive rate is at most 1 %.
        false_positives: Share of non-members with p-value <= alpha.
        true_positives: Share of members with p-value <= alpha.
        roc: (false-positive rate, true-positive rate) corners of the step function.
        members: Number of scored members.
        non_members: Number of scored non-members.
        unscorable: Documents without a score; in none of the rates.
        decided_by: What accuracy and F1 judge: the classifier at one half, or p <= alpha.
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
    return float((ranks[labels].sum() - members * (members + 1) / 2) / (members * others))


def auc_difference(
    first: Scores, second: Scores, labels: Labels, *, resamples: int = 1000, seed: int = 0
) -> Rate:
    """AUC of the first scores minus that of the second, on the same documents.

    Both see the same resamples, so what makes a document hard for both cancels out.

    Args:
        first: Shape (n,).
        second: Shape (n,).
        labels: True for members, shape (n,).
        resamples: Number of bootstrap samples.
        seed: Of the resampling.

    Raises:
        InputError: Members or non-members are missing.
    """
    value = auc(first, labels) - auc(second, labels)

    def difference(index: NDArray[np.int64]) -> float:
        return auc(first[index], labels[index]) - auc(second[index], labels[index])

    low, high = bootstrap_interval(difference, labels, resamples=resamples, seed=seed)
    return Rate(value, low, high, labels.size)


def roc_curve(scores: Scores, labels: Labels) -> tuple[tuple[float, float], ...]:
    """Return the corners (FPR, TPR) of the empirical ROC, ties in one step."""
    order = np.argsort(-scores, kind="stable")
    hits, ordered = labels[order], scores[order]
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
    seed: int = 0,
) -> Evaluation:
    """Evaluate scored documents of known membership.

    Args:
        scores: Evidence of membership, shape (n,).
        labels: True for members, shape (n,).
        decisions: What is judged by accuracy and F1, shape (n,).
        p_values: Conformal p-values before correction, shape (n,).
        alpha: Level of the realised rates.
        unscorable: Documents left out because they have no score.
        decided_by: Says what ``decisions`` are.
        seed: Of the bootstrap.

    Raises:
        InputError: Members or non-members are missing.
    """
    truth = np.asarray(labels, dtype=np.bool_)
    values = np.asarray(scores, dtype=np.float64)
    decided = np.asarray(decisions, dtype=np.bool_)
    flagged = np.asarray(p_values, dtype=np.float64) <= alpha
    area = auc(values, truth)
    n, members = truth.size, int(truth.sum())

    def rate(mask: Labels) -> Rate:
        hits, total = int(mask.sum()), mask.size
        return Rate(hits / total, *proportion_interval(hits, total), total)

    def resampled(statistic: str, value: float) -> Rate:
        def one(index: NDArray[np.int64]) -> float:
            picked = truth[index]
            if statistic == "f1":
                return _f1(picked, decided[index])
            return tpr_at_fpr(values[index], picked, 0.01)

        low, high = bootstrap_interval(one, truth, seed=seed)
        return Rate(value, min(low, value), max(high, value), n)

    return Evaluation(
        auc=Rate(area, *auc_interval(values, truth), n),
        accuracy=rate(decided == truth),
        f1=resampled("f1", _f1(truth, decided)),
        tpr_at_1_fpr=resampled("tpr", tpr_at_fpr(values, truth, 0.01)),
        false_positives=rate(flagged[~truth]),
        true_positives=rate(flagged[truth]),
        roc=roc_curve(values, truth),
        members=members,
        non_members=n - members,
        unscorable=unscorable,
        decided_by=decided_by,
    )
