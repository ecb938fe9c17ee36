"""How well one audit did, every rate with its interval and its n."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.stats import conformal_p_values
from ragwitness.stats.evaluation import Rate, auc, auc_difference, evaluate, tpr_at_fpr
from ragwitness.stats.intervals import auc_interval, proportion_interval

__all__ = [
    "Cost",
    "DecisionRule",
    "Measured",
    "area",
    "best_threshold",
    "measure",
    "paired_differences",
]

Scores = Mapping[str, float]
"""Statistic by document id; documents without one are unscorable."""

_LEVELS = (0.05, 0.01)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one document cost, on average.

    Attributes:
        queries: Queries put to the target.
        tokens: Tokens read and written, as the target counts them; None where it does not.
        seconds: Wall time of the whole stage by the number of its documents; None where answers
            were kept from an earlier start.
    """

    queries: float
    tokens: float | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """Statistics of at least ``threshold`` are called in; ``why`` says who chose it."""

    threshold: float
    why: str


@dataclass(frozen=True, slots=True)
class Measured:
    """One audit on the audited documents.

    Attributes:
        audit: Registered name, with the variant of the score after a slash.
        auc: Step-function area, DeLong interval.
        accuracy: At ``threshold``.
        precision: Of the documents called in at ``threshold``; None where there are none.
        recall: Of the members at ``threshold``.
        f1: At ``threshold``.
        threshold: Best balanced accuracy on the calibration documents, frozen there; for an
            audit with a classifier, even odds of that classifier.
        decided_by: The same in words.
        tpr_at_1_fpr: Largest TPR at an FPR of at most 1 %, never interpolated.
        tpr_at_01_fpr: The same at 0.1 %.
        false_positives: By level: share of non-members with p <= level.
        true_positives: By level: share of members with p <= level.
        unscorable: Share of audited documents without a score.
        recall_at_k: Share of members that their queries retrieved; None for a target that
            does not show it.
        auc_retrieved: AUC over retrieved members only.
        outcomes: Named outcomes of answers (refused, unreadable, ...), mean per document.
        cost: Per document.
        scores: By document id.
        roc: Corners of the step function.
    """

    audit: str
    auc: Rate
    accuracy: Rate
    precision: Rate | None
    recall: Rate
    f1: Rate
    threshold: float
    decided_by: str
    tpr_at_1_fpr: Rate
    tpr_at_01_fpr: float
    false_positives: dict[str, Rate]
    true_positives: dict[str, Rate]
    unscorable: Rate
    recall_at_k: Rate | None
    auc_retrieved: Rate | None
    outcomes: dict[str, float]
    cost: Cost
    scores: dict[str, float]
    roc: tuple[tuple[float, float], ...]


def best_threshold(inside: Sequence[float], outside: Sequence[float]) -> float:
    """Return the threshold of best balanced accuracy; among equals the middle of the gap.

    Args:
        inside: Statistics of calibration documents inside.
        outside: The same outside.
    """
    values = np.unique([*inside, *outside])
    if values.size < 2:
        return float(values[0]) if values.size else 0.0
    middles = (values[1:] + values[:-1]) / 2
    hits = np.array([np.mean(np.asarray(inside) >= t) for t in middles]) if inside else 0.0
    rejects = np.array([np.mean(np.asarray(outside) < t) for t in middles]) if outside else 0.0
    return float(middles[int(np.argmax(hits + rejects))])


def area(inside: Sequence[float], outside: Sequence[float]) -> Rate | None:
    """Return the AUC with its interval; None where a side has fewer than two documents."""
    if min(len(inside), len(outside)) < 2:
        return None
    values = np.array([*inside, *outside], dtype=np.float64)
    truth = np.array([True] * len(inside) + [False] * len(outside))
    return Rate(auc(values, truth), *auc_interval(values, truth), values.size)


def _share(flags: Sequence[bool] | NDArray[np.bool_]) -> Rate:
    hits, total = int(np.sum(flags)), len(flags)
    return Rate(hits / total, *proportion_interval(hits, total), total)


def measure(
    audit: str,
    scores: Scores,
    truth: Mapping[str, bool],
    *,
    known_in: Sequence[float],
    known_out: Sequence[float],
    retrieved: Mapping[str, bool] | None,
    outcomes: Mapping[str, float],
    cost: Cost,
    decision: DecisionRule | None = None,
) -> Measured | None:
    """Measure one audit; None where a class has fewer than two scored documents.

    Args:
        audit: Its name.
        scores: Statistic of every scored audited document.
        truth: Whether each audited document is a member.
        known_in: Statistics of calibration documents inside.
        known_out: The same outside.
        retrieved: Whether each member was retrieved.
        outcomes: Named outcomes, mean per document.
        cost: Per document.
        decision: Threshold; None takes the best one on the calibration documents.
    """
    names = [name for name in truth if name in scores]
    labels = np.array([truth[name] for name in names], dtype=np.bool_)
    if min(int(labels.sum()), int((~labels).sum())) < 2 or not known_out:
        return None
    values = np.array([scores[name] for name in names], dtype=np.float64)
    if decision is None:
        best = best_threshold(known_in, known_out)
        decision = DecisionRule(best, "best threshold of the calibration documents")
    cut = decision.threshold
    called = values >= cut
    p_values = conformal_p_values(values, known_out)
    found = evaluate(
        values.tolist(),
        labels.tolist(),
        decisions=called.tolist(),
        p_values=p_values.tolist(),
        alpha=_LEVELS[0],
        unscorable=len(truth) - len(names),
        decided_by=decision.why,
    )
    near = None
    if retrieved is not None:
        inside = [scores[n] for n in names if truth[n] and retrieved.get(n, False)]
        near = area(inside, values[~labels].tolist())
    return Measured(
        audit=audit,
        auc=found.auc,
        accuracy=found.accuracy,
        precision=_share(labels[called]) if called.any() else None,
        recall=_share(called[labels]),
        f1=found.f1,
        threshold=cut,
        decided_by=found.decided_by,
        tpr_at_1_fpr=found.tpr_at_1_fpr,
        tpr_at_01_fpr=tpr_at_fpr(values, labels, 0.001),
        false_positives={f"{a:g}": _share(p_values[~labels] <= a) for a in _LEVELS},
        true_positives={f"{a:g}": _share(p_values[labels] <= a) for a in _LEVELS},
        unscorable=_share([name not in scores for name in truth]),
        recall_at_k=None
        if retrieved is None
        else _share([retrieved.get(name, False) for name in truth if truth[name]]),
        auc_retrieved=near,
        outcomes=dict(outcomes),
        cost=cost,
        scores={name: float(scores[name]) for name in names},
        roc=found.roc,
    )


def paired_differences(
    measured: Sequence[Measured], truth: Mapping[str, bool], *, resamples: int = 1000, seed: int = 0
) -> dict[tuple[str, str], Rate]:
    """AUC differences of audits, bootstrap over the documents that both scored.

    Audits are paired with each other, and the variants of a score with their audit.

    Args:
        measured: Audits on the same documents.
        truth: Whether each document is a member.
        resamples: Number of bootstrap samples.
        seed: Of the resampling.

    Returns:
        Difference (first minus second) by pair of names, 95 % percentile interval.
    """
    found = {}
    for first, second in itertools.combinations(measured, 2):
        if _comparable(first.audit, second.audit):
            rate = _difference(first, second, truth, resamples, seed)
            if rate is not None:
                found[first.audit, second.audit] = rate
    return found


def _comparable(first: str, second: str) -> bool:
    return "/" not in first + second or first.partition("/")[0] == second.partition("/")[0]


def _difference(
    first: Measured, second: Measured, truth: Mapping[str, bool], resamples: int, seed: int
) -> Rate | None:
    shared = [name for name in truth if name in first.scores and name in second.scores]
    labels = np.array([truth[name] for name in shared], dtype=np.bool_)
    if min(int(labels.sum()), int((~labels).sum())) < 2:
        return None
    one, other = (np.array([m.scores[name] for name in shared]) for m in (first, second))
    return auc_difference(one, other, labels, resamples=resamples, seed=seed)
