"""A whole membership audit: shadow system, calibration, documents, verdicts."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import InputError
from ragwitness.membership.srag import (
    AuditClassifier,
    Shadow,
    ShadowConfig,
    SRag,
    build_shadow,
    train_autogluon,
    train_classifier,
)
from ragwitness.membership.verdicts import Judged, judge
from ragwitness.runs.calibration import Reference, choose_reference, describe, distinct
from ragwitness.runs.journal import Journal
from ragwitness.runs.result import AuditResult
from ragwitness.runs.worker import Outcome, Progress, Worker
from ragwitness.stats import Evaluation, documents_needed, evaluate
from ragwitness.types import Document, Score, Target, Verdict

__all__ = ["AuditPlan", "run_audit"]

_DECISIVE = 5  # words of evidence kept per document


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """What is to be audited and how.

    Attributes:
        documents: The documents in question.
        known_out: Documents known to be outside the target, like the audited ones in kind.
        auxiliary: Documents for the shadow system; the generated corpus where empty.
        alpha: Level of the verdicts.
        shadow: The shadow system.
        automl: Train the audit classifier with AutoGluon.
        in_flight: Documents probed at the same time.
    """

    documents: tuple[Document, ...]
    known_out: tuple[Document, ...] = ()
    auxiliary: tuple[Document, ...] = ()
    alpha: float = 0.05
    shadow: ShadowConfig = field(default_factory=ShadowConfig)
    automl: bool = False
    in_flight: int = 4

    def __post_init__(self) -> None:
        """Refuse what cannot give a verdict."""
        if not self.documents:
            raise InputError("There is no document to audit.")
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha must lie between 0 and 1, not {self.alpha}.")
        audited = {document.text for document in self.documents}
        shared = [document.id for document in self.known_out if document.text in audited]
        if shared:
            raise InputError(
                f"{len(shared)} documents stand both in --known-out and in --documents"
                f" (first: {shared[0]!r}).",
                "A document in question cannot be known to be outside; remove it from one.",
            )


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
        settings=_settings(plan, audit, shadow, classifier) | _readings(outcomes),
        warnings=(
            *_warnings(plan, reference, scores, verdicts),
            *_kept([*inside, *outside, *known, *outcomes]),
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
    from dataclasses import replace

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


def _settings(
    plan: AuditPlan, audit: SRag, shadow: Shadow, classifier: AuditClassifier
) -> dict[str, str]:
    config = audit.config
    inside = {key: str(value) for key, value in shadow.target.system.describe().items()}
    return {
        "method": audit.name,
        "probe words": f"hardest 1/{config.segment_factor} of the second half, "
        f"{'without' if config.skip_stop_words else 'with'} stop words",
        "difficulty": f"{audit.proxy.name}, no context",
        "alternatives per token": str(config.top_logprobs),
        "features": f"{config.features}, {config.intervals} intervals",
        "audit classifier": classifier.name,
        "auxiliary documents": "given" if plan.auxiliary else "generated corpus of the package",
        **{f"shadow {key}": value for key, value in inside.items()},
        "correction": "Benjamini-Hochberg over all scored documents",
    }


def _readings(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Say how many probe words could be read, and how many only up to a bound."""
    total = {
        key: int(sum(o.score.details.get(key, 0.0) for o in outcomes))
        for key in ("probes", "unread", "censored")
    }
    return {
        "probe words read": f"{total['probes'] - total['unread']} of {total['probes']},"
        f" {total['censored']} of them only as a bound"
    }


def _kept(outcomes: Sequence[Outcome]) -> list[str]:
    queries = sum(outcome.queries for outcome in outcomes)
    kept = queries - sum(outcome.sent for outcome in outcomes)
    if not kept:
        return []
    return [
        f"{kept:,} of {queries:,} answers were kept from an earlier start of this run, not asked"
        " now; if the system has changed since, choose another folder with --run."
    ]


def _warnings(
    plan: AuditPlan,
    reference: Reference,
    scores: Sequence[float],
    verdicts: Sequence[Verdict],
) -> tuple[str, ...]:
    found = []
    if reference.warning:
        found.append(reference.warning)
    needed = documents_needed(plan.alpha)
    if len(scores) < needed:
        found.append(
            f"Only {len(scores)} known-outside documents could be scored; no p-value can reach"
            f" {plan.alpha:g} with fewer than {needed}. Give more with --known-out."
        )
    lost = sum(verdict.score is None for verdict in verdicts)
    if lost * 5 > len(verdicts):
        found.append(f"{lost} of {len(verdicts)} documents could not be scored; see the reasons.")
    return tuple(found)


def _version() -> str:
    from importlib.metadata import version

    return version("ragwitness")
