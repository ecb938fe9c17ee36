"""A whole membership audit: shadow system, calibration, documents, verdicts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ragwitness.membership.verdicts import judge
from ragwitness.runs.calibration import choose_reference, describe, distinct
from ragwitness.runs.governor import Governor
from ragwitness.runs.journal import Journal
from ragwitness.runs.pace import Pace
from ragwitness.runs.plan import AuditPlan
from ragwitness.runs.remarks import (
    answers_kept,
    cautions,
    in_use,
    spending,
    unasked,
    words_read,
)
from ragwitness.runs.result import AuditResult
from ragwitness.runs.statistic import Statistic, learn
from ragwitness.runs.worker import Progress, Worker
from ragwitness.stats import Evaluation, evaluate
from ragwitness.types import Audit, Document, Target, Verdict

__all__ = ["auxiliary_of", "run_audit"]

_DECISIVE = 5  # words of evidence kept per document


async def run_audit(
    plan: AuditPlan,
    target: Target,
    audit: Audit,
    *,
    run: Path | None = None,
    progress: Progress | None = None,
    governor: Governor | None = None,
) -> AuditResult:
    """Run the audit; answers already in ``run`` are not asked for again.

    An audit with the attribute ``learns`` is read by a classifier trained on a shadow system;
    the others' scores are ranked as they are.

    Args:
        plan: Documents and settings.
        target: The system under audit.
        audit: The method with its proxy model.
        run: Folder of the journal; None keeps nothing.
        progress: Called after each document.
        governor: Lets queries to the target pass; None makes one without caps for ``run``.

    Raises:
        TargetUnreachableError: The target cannot be reached at all.
        InputError: Too few auxiliary documents can be scored.
    """
    started, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    auxiliary = auxiliary_of(plan)
    with ExitStack() as files:
        if governor is None:
            pace = Pace.at_most(plan.in_flight)
            governor = files.enter_context(Governor.of_run(run, pace=pace))
        journal = files.enter_context(Journal(run / "answers.jsonl")) if run else None
        learns = getattr(audit, "learns", False)
        statistic = (
            await learn(plan, audit, auxiliary, journal, progress) if learns else Statistic()
        )
        spare = statistic.shadow.spare if statistic.shadow else auxiliary
        worker = Worker(target, journal, plan.in_flight, governor=governor)
        reference = choose_reference(distinct(plan.known_out), bool(plan.auxiliary), spare)
        known = await worker.run(audit, reference.documents, "known outside", progress)
        held = await worker.run(audit, distinct(plan.known_in), "known inside", progress)
        outcomes = await worker.run(audit, plan.documents, "documents", progress)
    scores = [value for value in statistic.values(known) if value is not None]
    inside = [value for value in statistic.values(held) if value is not None]
    verdicts = judge(
        statistic.judged(outcomes),
        outside=scores,
        inside=inside or statistic.inside,
        alpha=plan.alpha,
    )
    asked = [*known, *held, *outcomes]
    spent = spending(governor, asked)
    return AuditResult(
        method=audit.name,
        target=target.name,
        alpha=plan.alpha,
        started=started,
        seconds=time.monotonic() - clock,
        queries=sum(outcome.queries for outcome in asked),
        verdicts=tuple(_trimmed(verdict) for verdict in verdicts),
        calibration=describe(reference, scores),
        evaluation=_evaluation(verdicts, plan.alpha),
        settings=in_use(plan, audit, statistic) | words_read(outcomes),
        warnings=(
            *unasked(spent, len(asked)),
            *cautions(plan, reference, scores, verdicts),
            *answers_kept([*statistic.asked, *asked]),
        ),
        ragwitness=_version(),
        spent=spent,
    )


def auxiliary_of(plan: AuditPlan) -> list[Document]:
    """Auxiliary documents that are neither in question nor used for calibration."""
    source: Sequence[Document] = plan.auxiliary
    if not source:
        from ragwitness.text.sample import load_sample

        source = load_sample()
    taken = {document.text for document in (*plan.documents, *plan.known_out, *plan.known_in)}
    return [document for document in distinct(source) if document.text not in taken]


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
