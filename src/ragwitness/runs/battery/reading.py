"""What the outcomes of one audit say: variants of its score, named outcomes, costs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ragwitness.rag import LabTarget
from ragwitness.runs.battery.measure import Cost
from ragwitness.runs.statistic import Statistic
from ragwitness.runs.worker import Outcome
from ragwitness.types import Answer, Document, Query

__all__ = ["Read", "Seen", "by_id", "cost_of", "named_outcomes", "variants"]

_VARIANT = "score/"

Read = Callable[[Sequence[Outcome]], list[float | None]]
"""Statistic of every outcome, None where there is none."""


@dataclass
class Seen:
    """Collects what every answer shows: tokens, and whether the document was retrieved."""

    target: LabTarget
    tokens: int = 0
    counted: int = 0
    retrieved: dict[str, bool] = field(default_factory=lambda: defaultdict(bool))

    def __call__(self, document: Document, query: Query, answer: Answer) -> None:
        """Note one answer."""
        if answer.prompt_tokens is not None and answer.completion_tokens is not None:
            self.tokens += answer.prompt_tokens + answer.completion_tokens
            self.counted += 1
        if not self.retrieved[document.id]:
            system = self.target.system
            hits = system.retrieve(query.prompt)
            self.retrieved[document.id] = any(
                system.passages[hit.index].document == document.id for hit in hits
            )


def variants(statistic: Statistic, outcomes: Sequence[Outcome]) -> dict[str, Read]:
    """The audit's statistic under "", and each further score of the same answers."""
    keys = {key for o in outcomes for key in o.score.details if key.startswith(_VARIANT)}

    def reader(key: str) -> Read:
        return lambda asked: [
            None if o.score.value is None else o.score.details.get(key) for o in asked
        ]

    return {"": statistic.values} | {
        "/" + key.removeprefix(_VARIANT): reader(key) for key in sorted(keys)
    }


def by_id(outcomes: Sequence[Outcome], read: Read) -> dict[str, float]:
    """Return the statistics of scored documents by their ids."""
    values = read(outcomes)
    return {o.document.id: v for o, v in zip(outcomes, values, strict=True) if v is not None}


def cost_of(outcomes: Sequence[Outcome], seen: Seen, seconds: float) -> Cost:
    """Return what one document cost on average."""
    asked = max(1, len(outcomes))
    queries = sum(outcome.queries for outcome in outcomes)
    known = seen.counted == queries and queries > 0
    kept = sum(outcome.sent for outcome in outcomes) < queries
    return Cost(
        queries / asked,
        seen.tokens / asked if known else None,
        None if kept else seconds / asked,
    )


def named_outcomes(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Mean per document of every named outcome, and the share of each reason for no score."""
    total: dict[str, float] = defaultdict(float)
    for outcome in outcomes:
        for key, value in outcome.score.details.items():
            if not key.startswith(_VARIANT):
                total[key] += value
        if outcome.score.value is None:
            total[f"unscorable: {outcome.score.reason}"] += 1
    return {key: value / max(1, len(outcomes)) for key, value in sorted(total.items())}
