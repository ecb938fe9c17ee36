"""How well one audit did, every rate with its interval and its n."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ragwitness.membership.results.evaluation import Cost, Measured
from ragwitness.stats.evaluation import (
    Rate,
    auc,
    auc_difference,
    auc_interval,
    evaluate,
    share_of,
    tpr_at_fpr,
)
from ragwitness.stats.p_values import conformal_p_values

Scores = Mapping[str, float]
"""Statistic by document id; documents without one are unscorable."""

_LEVELS = (0.05, 0.01)


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """Statistics of at least ``threshold`` are called in; ``why`` says who chose it."""

    threshold: float
    why: str


def best_threshold(inside: Sequence[float], outside: Sequence[float]) -> float:
    """Return the threshold of best balanced accuracy; among equals the middle of the gap.

    Args:
        inside: Statistics of calibration documents inside.
        outside: The same outside.
    """
    values = np.unique([*inside, *outside])
    if values.size < 2:
        return float(values[0]) if values.size else 0.0
    # Candidates lie between observed statistics: no threshold touches a calibration document.
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
    # Interval by DeLong's variance on the logit scale (stats/evaluation.py).
    return Rate(auc(values, truth), *auc_interval(values, truth), values.size)


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
    # 1. What has no score is counted below as unscorable and never as an outsider.
    names = [name for name in truth if name in scores]
    labels = np.array([truth[name] for name in names], dtype=np.bool_)
    if min(int(labels.sum()), int((~labels).sum())) < 2 or not known_out:
        return None
    values = np.array([scores[name] for name in names], dtype=np.float64)
    # 2. The threshold comes from calibration documents, never from those it is reported on.
    if decision is None:
        best = best_threshold(known_in, known_out)
        decision = DecisionRule(best, "best threshold of the calibration documents")
    cut = decision.threshold
    called = values >= cut
    # 3. Conformal p-values against documents known outside: exact if those are exchangeable with
    # the audited ones that are outside.
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
    # 4. Members that were retrieved alone: tells a weak score from a weak retriever.
    if retrieved is not None:
        inside = [scores[n] for n in names if truth[n] and retrieved.get(n, False)]
        near = area(inside, values[~labels].tolist())
    return Measured(
        audit=audit,
        auc=found.auc,
        accuracy=found.accuracy,
        precision=share_of(labels[called]) if called.any() else None,
        recall=share_of(called[labels]),
        f1=found.f1,
        threshold=cut,
        decided_by=found.decided_by,
        tpr_at_1_fpr=found.tpr_at_1_fpr,
        # Low false-positive rates, as Carlini et al. (2022) ask: what an accusation would run at.
        tpr_at_01_fpr=tpr_at_fpr(values, labels, 0.001),
        false_positives={f"{a:g}": share_of(p_values[~labels] <= a) for a in _LEVELS},
        true_positives={f"{a:g}": share_of(p_values[labels] <= a) for a in _LEVELS},
        unscorable=share_of([name not in scores for name in truth]),
        recall_at_k=None
        if retrieved is None
        else share_of([retrieved.get(name, False) for name in truth if truth[name]]),
        auc_retrieved=near,
        outcomes=dict(outcomes),
        cost=cost,
        scores={name: float(scores[name]) for name in names},
        roc=found.roc,
    )


def paired_differences(
    measured: Sequence[Measured], truth: Mapping[str, bool], *, seed: int = 0
) -> dict[tuple[str, str], Rate]:
    """AUC differences of audits, bootstrap over the documents that both scored.

    Audits are paired with each other, and the variants of a score with their audit.

    Args:
        measured: Audits on the same documents.
        truth: Whether each document is a member.
        seed: Of the resampling.

    Returns:
        Difference (first minus second) by pair of names, 95 % percentile interval.
    """
    found = {}
    # Paired: both audits saw the same documents, whose ease would otherwise count as noise.
    for first, second in itertools.combinations(measured, 2):
        if _comparable(first.audit, second.audit):
            rate = _difference(first, second, truth, seed)
            if rate is not None:
                found[first.audit, second.audit] = rate
    return found


def _comparable(first: str, second: str) -> bool:
    # A variant of a score ("score/text") meets its own audit and its sisters alone.
    return "/" not in first + second or first.partition("/")[0] == second.partition("/")[0]


def _difference(
    first: Measured, second: Measured, truth: Mapping[str, bool], seed: int
) -> Rate | None:
    # Documents that both could score: an audit must not win by leaving out the hard ones.
    shared = [name for name in truth if name in first.scores and name in second.scores]
    labels = np.array([truth[name] for name in shared], dtype=np.bool_)
    if min(int(labels.sum()), int((~labels).sum())) < 2:
        return None
    one, other = (np.array([m.scores[name] for name in shared]) for m in (first, second))
    return auc_difference(one, other, labels, seed=seed)
