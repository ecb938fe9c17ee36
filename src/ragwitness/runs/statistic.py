"""What p-values are computed from: an audit's own score, or a classifier trained on a shadow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.membership.srag import (
    AuditClassifier,
    Shadow,
    build_shadow,
    train_autogluon,
    train_classifier,
)
from ragwitness.membership.verdicts import Judged
from ragwitness.runs.journal import Journal
from ragwitness.runs.plan import AuditPlan
from ragwitness.runs.units import SHADOW_STAGES
from ragwitness.runs.worker import Outcome, Progress, Worker
from ragwitness.types import Audit, Document, Score

__all__ = ["Statistic", "learn", "trained"]


@dataclass(frozen=True, slots=True)
class Statistic:
    """Turns scores into the statistic that is ranked.

    Attributes:
        classifier: Trained on a shadow system; None ranks the audit's own score.
        shadow: That system.
        inside: Statistics of documents known to be inside, for the verdict ``out``.
        asked: Outcomes at the shadow system.
    """

    classifier: AuditClassifier | None = None
    shadow: Shadow | None = None
    inside: tuple[float, ...] = ()
    asked: tuple[Outcome, ...] = ()

    def values(self, outcomes: Sequence[Outcome]) -> list[float | None]:
        """Return one statistic per outcome, None where it is unscorable."""
        scores = [o.score for o in outcomes if o.score.value is not None]
        if self.classifier is None or not scores:
            return [o.score.value for o in outcomes]
        p = self.classifier.member_probability([score.features for score in scores])
        found = iter(_log_odds(p, scores))
        return [None if o.score.value is None else next(found) for o in outcomes]

    def judged(self, outcomes: Sequence[Outcome]) -> list[Judged]:
        """Set each outcome beside its statistic."""
        learnt = self.classifier is not None
        return [
            Judged(
                document=outcome.document,
                score=outcome.score,
                statistic=value,
                classifier=1 / (1 + math.exp(-value)) if learnt and value is not None else None,
                queries=outcome.queries,
            )
            for outcome, value in zip(outcomes, self.values(outcomes), strict=True)
        ]


async def learn(
    plan: AuditPlan,
    audit: Audit,
    auxiliary: Sequence[Document],
    journal: Journal | None,
    progress: Progress | None,
) -> Statistic:
    """Ask a shadow system and train the audit classifier on its answers.

    Raises:
        InputError: Too few auxiliary documents, or too few of them can be scored.
    """
    shadow = build_shadow(auxiliary, plan.shadow)
    worker = Worker(shadow.target, journal, plan.in_flight)
    parts = zip(SHADOW_STAGES, (shadow.inside, shadow.outside), strict=True)
    inside, outside = [await worker.run(audit, part, stage, progress) for stage, part in parts]
    return trained(shadow, inside, outside, automl=plan.automl)


def trained(
    shadow: Shadow, inside: Sequence[Outcome], outside: Sequence[Outcome], *, automl: bool = False
) -> Statistic:
    """Train the audit classifier.

    Args:
        shadow: The system that was asked.
        inside: Outcomes of documents that it holds.
        outside: Outcomes of documents that it does not.
        automl: With AutoGluon.

    Raises:
        InputError: Too few of them can be scored.
    """
    members = [o.score for o in inside if o.score.value is not None]
    scores = members + [o.score for o in outside if o.score.value is not None]
    train = train_autogluon if automl else train_classifier
    labels = [True] * len(members) + [False] * (len(scores) - len(members))
    classifier = train([score.features for score in scores], labels)
    known = _log_odds(classifier.held_out[: len(members)], members)
    return Statistic(classifier, shadow, tuple(known), (*inside, *outside))


def _log_odds(probabilities: NDArray[np.float64], scores: Sequence[Score]) -> list[float]:
    """Log-odds of the classifier; the training-free score decides where it ties."""
    clipped = np.clip(probabilities, 1e-6, 1 - 1e-6)
    odds = np.log(clipped / (1 - clipped)).tolist()
    return [value + 1e-3 * (score.value or 0.0) for value, score in zip(odds, scores, strict=True)]
