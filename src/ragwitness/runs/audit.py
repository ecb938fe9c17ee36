"""A whole membership audit: shadow system, calibration, documents, verdicts."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragwitness.membership.srag import (
    AuditClassifier,
    SRag,
    build_shadow,
    train_autogluon,
    train_classifier,
)
from ragwitness.membership.verdicts import Judged, judge
from ragwitness.runs.calibration import choose_reference, describe, distinct
from ragwitness.runs.journal import Journal
from ragwitness.runs.plan import AuditPlan
from ragwitness.runs.remarks import answers_kept, cautions, in_use, words_read
from ragwitness.runs.result import AuditResult
from ragwitness.runs.worker import Outcome, Progress, Worker
from ragwitness.stats import Evaluation, evaluate
from ragwitness.types import Document, Score, Target, Verdict

__all__ = ["run_audit"]

_DECISIVE = 5  # words of evidence kept per document


async def run_audit(
    plan: AuditPlan,
    target: Target,
    audit: SRag,
    *,
    run: Path | None = None,
    progress: Progress | None = None,
) -> AuditResult:
    """Run the audit; answers already in ``run`` are not asked for again.

    Args:
        plan: Documents and settings.
        target: The system under audit.
        audit: The method with its proxy model.
        run: Folder of the journal; None keeps nothing.
        progress: Called after each document.

    Raises:
        TargetUnreachableError: The target cannot be reached at all.
        InputError: Too few auxiliary documents can be scored.
    """
    started, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    with Journal(run / "answers.jsonl") if run else nullcontext() as journal:
        shadow = build_shadow(_auxiliary(plan), plan.shadow)
        shadow_worker = Worker(shadow.target, journal, plan.in_flight)
        inside = await shadow_worker.run(audit, shadow.inside, "shadow, inside", progress)
        outside = await shadow_worker.run(audit, shadow.outside, "shadow, outside", progress)
        classifier, members = _train(inside, outside, automl=plan.automl)
        worker = Worker(target, journal, plan.in_flight)
        reference = choose_reference(distinct(plan.known_out), bool(plan.auxiliary), shadow.spare)
        known = await worker.run(audit, reference.documents, "known outside", progress)
        outcomes = await worker.run(audit, plan.documents, "documents", progress)
    null = _statistics(known, classifier)
    items = _judged(outcomes, classifier)
    scores = [value for value in null if value is not None]
    verdicts = judge(items, outside=scores, inside=members, alpha=plan.alpha)
    return AuditResult(
        method=audit.name,
        target=target.name,
        alpha=plan.alpha,
        started=started,
        seconds=time.monotonic() - clock,
        queries=sum(outcome.queries for outcome in [*known, *outcomes]),
        verdicts=tuple(_trimmed(verdict) for verdict in verdicts),
        calibration=describe(reference, scores),
        evaluation=_evaluation(verdicts, plan.alpha),
        settings=in_use(plan, audit, shadow, classifier) | words_read(outcomes),
        warnings=(
            *cautions(plan, reference, scores, verdicts),
            *answers_kept([*inside, *outside, *known, *outcomes]),
        ),
        ragwitness=_version(),
    )


def _auxiliary(plan: AuditPlan) -> list[Document]:
    """Auxiliary documents that are neither in question nor used for calibration."""
    source: Sequence[Document] = plan.auxiliary
    if not source:
        from ragwitness.text.sample import load_sample

        source = load_sample()
    taken = {document.text for document in (*plan.documents, *plan.known_out)}
    return [document for document in distinct(source) if document.text not in taken]


def _train(
    inside: Sequence[Outcome], outside: Sequence[Outcome], *, automl: bool
) -> tuple[AuditClassifier, list[float]]:
    """Return the audit classifier and the held-out statistics of the shadow's members."""
    members = [o.score for o in inside if o.score.value is not None]
    scores = members + [o.score for o in outside if o.score.value is not None]
    train = train_autogluon if automl else train_classifier
    labels = [True] * len(members) + [False] * (len(scores) - len(members))
    classifier = train([score.features for score in scores], labels)
    return classifier, _log_odds(classifier.held_out[: len(members)], members)


def _log_odds(probabilities: NDArray[np.float64], scores: Sequence[Score]) -> list[float]:
    """Log-odds of the classifier; the training-free score decides where it ties."""
    clipped = np.clip(probabilities, 1e-6, 1 - 1e-6)
    odds = np.log(clipped / (1 - clipped)).tolist()
    return [value + 1e-3 * (score.value or 0.0) for value, score in zip(odds, scores, strict=True)]


def _statistics(outcomes: Sequence[Outcome], classifier: AuditClassifier) -> list[float | None]:
    """Return what p-values are computed from, None for unscorable documents."""
    scores = [o.score for o in outcomes if o.score.value is not None]
    if not scores:
        return [None] * len(outcomes)
    p = classifier.member_probability([score.features for score in scores])
    values = iter(_log_odds(p, scores))
    return [None if o.score.value is None else next(values) for o in outcomes]


def _judged(outcomes: Sequence[Outcome], classifier: AuditClassifier) -> list[Judged]:
    return [
        Judged(
            document=outcome.document,
            score=outcome.score,
            statistic=value,
            classifier=None if value is None else 1 / (1 + math.exp(-value)),
            queries=outcome.queries,
        )
        for outcome, value in zip(outcomes, _statistics(outcomes, classifier), strict=True)
    ]


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
    return evaluate(
        [verdict.score or 0.0 for verdict in scored],
        labels,
        decisions=[(verdict.classifier or 0.0) >= 0.5 for verdict in scored],
        p_values=[1.0 if v.p_value is None else v.p_value for v in scored],
        alpha=alpha,
        unscorable=len(verdicts) - len(scored),
    )


def _version() -> str:
    from importlib.metadata import version

    return version("ragwitness")
