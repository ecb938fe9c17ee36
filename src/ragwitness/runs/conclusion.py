"""From what was found of every document to verdicts: the end of every audit, whoever asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ragwitness.membership.verdicts import judge
from ragwitness.runs.budget import Budget, Use
from ragwitness.runs.calibration import describe
from ragwitness.runs.plan import AuditPlan
from ragwitness.runs.remarks import (
    answers_kept,
    cautions,
    in_use,
    spending,
    unasked,
    unvaried,
    words_read,
)
from ragwitness.runs.result import AuditResult
from ragwitness.runs.statistic import Statistic
from ragwitness.runs.units import Stages
from ragwitness.runs.worker import Outcome
from ragwitness.stats import Evaluation, evaluate
from ragwitness.types import Audit, Verdict

__all__ = ["Account", "conclude"]

_DECISIVE = 5  # words of evidence kept per document


@dataclass(frozen=True, slots=True)
class Account:
    """What an audit took.

    Attributes:
        started: When it began, ISO 8601 in UTC.
        seconds: Wall time.
        spent: At the target, all starts together.
        budget: Caps and prices.
        stopped_by: Name of the cap that refused a query; None where none did.
    """

    started: str
    seconds: float
    spent: Use
    budget: Budget
    stopped_by: str | None = None


def conclude(
    plan: AuditPlan,
    audit: Audit,
    target: str,
    stages: Stages,
    statistic: Statistic,
    found: Mapping[str, Sequence[Outcome]],
    account: Account,
) -> AuditResult:
    """Calibrate, judge and put together what a reader must be told.

    Args:
        plan: Documents and settings.
        audit: The method.
        target: Name of the system.
        stages: What was asked about.
        statistic: What is ranked.
        found: Outcomes by stage, each in the order of ``stages``.
        account: What it took.
    """
    known, held, outcomes = (found[s] for s in ("known outside", "known inside", "documents"))
    scores = [value for value in statistic.values(known) if value is not None]
    inside = [value for value in statistic.values(held) if value is not None]
    verdicts = judge(
        statistic.judged(outcomes),
        outside=scores,
        inside=inside or statistic.inside,
        alpha=plan.alpha,
    )
    asked = [*known, *held, *outcomes]
    spent = spending(account.spent, account.budget, account.stopped_by, asked)
    return AuditResult(
        method=audit.name,
        target=target,
        alpha=plan.alpha,
        started=account.started,
        seconds=account.seconds,
        queries=sum(outcome.queries for outcome in asked),
        verdicts=tuple(_trimmed(verdict) for verdict in verdicts),
        calibration=describe(stages.reference, scores),
        evaluation=_evaluation(verdicts, plan.alpha),
        settings=in_use(plan, audit, statistic) | words_read(outcomes),
        warnings=(
            *unasked(spent, len(asked)),
            *cautions(plan, stages.reference, scores, verdicts),
            *unvaried(asked),
            *answers_kept([*statistic.asked, *asked]),
        ),
        ragwitness=_version(),
        spent=spent,
    )


def _trimmed(verdict: Verdict) -> Verdict:
    return replace(verdict, evidence=verdict.evidence[:_DECISIVE])


def _evaluation(verdicts: Sequence[Verdict], alpha: float) -> Evaluation | None:
    """Evaluate where every document's membership is known and both kinds are there."""
    if any(verdict.member is None for verdict in verdicts):
        return None
    scored = [v for v in verdicts if v.score is not None and v.p_value is not None]
    labels = [bool(verdict.member) for verdict in scored]
    if len(set(labels)) < 2:
        return None
    p_values = [1.0 if v.p_value is None else v.p_value for v in scored]
    learnt = all(verdict.classifier is not None for verdict in scored)
    return evaluate(
        [verdict.score or 0.0 for verdict in scored],
        labels,
        decisions=[(v.classifier or 0.0) >= 0.5 for v in scored]
        if learnt
        else [p <= alpha for p in p_values],
        p_values=p_values,
        alpha=alpha,
        unscorable=len(verdicts) - len(scored),
        decided_by="classifier at one half" if learnt else f"p <= {alpha:g}",
    )


def _version() -> str:
    from importlib.metadata import version

    return version("ragwitness")
