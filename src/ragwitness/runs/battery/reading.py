"""What the outcomes of one audit say: variants of its score, named outcomes, costs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ragwitness.rag import LabTarget
from ragwitness.runs.battery.measure import Cost
from ragwitness.runs.statistic import Statistic
from ragwitness.runs.worker import Outcome
from ragwitness.types import Answer, Document, Query

__all__ = ["Read", "Seen", "by_id", "cost_of", "main_reason", "named_outcomes", "variants"]

_VARIANT = "score/"

Read = Callable[[Sequence[Outcome]], list[float | None]]
"""Statistic of every outcome, None where there is none."""


@dataclass
class Seen:
    """Collects what every answer shows; retrieval is looked up when the clock has stopped."""

    target: LabTarget
    tokens: int = 0
    counted: int = 0
    asked: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def __call__(self, document: Document, query: Query, answer: Answer) -> None:
        """Note one answer."""
        if answer.prompt_tokens is not None and answer.completion_tokens is not None:
            self.tokens += answer.prompt_tokens + answer.completion_tokens
            self.counted += 1
        self.asked[document.id].append(query.prompt)

    def retrieved(self, documents: Sequence[Document]) -> dict[str, bool]:
        """Whether any of its queries retrieved each document."""
        system = self.target.system

        def finds(document: Document) -> bool:
            return any(
                system.passages[hit.index].document == document.id
                for prompt in self.asked[document.id]
                for hit in system.retrieve(prompt)
            )

        return {document.id: finds(document) for document in documents}


def variants(statistic: Statistic, outcomes: Sequence[Outcome]) -> dict[str, Read]:
    """The audit's statistic under "", and each further score of the same answers."""
    keys = {key for o in outcomes for key in o.score.details if key.startswith(_VARIANT)}

    def reader(key: str) -> Read:
        # A variant may score what the audit itself does not: a published rule counts silence.
        return lambda asked: [o.score.details.get(key) for o in asked]

    own = statistic.values(outcomes)
    return {"": statistic.values} | {
        "/" + key.removeprefix(_VARIANT): reader(key)
        for key in sorted(keys)
        if reader(key)(outcomes) != own
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


def main_reason(outcomes: Sequence[Outcome]) -> str:
    """Return the most frequent reason for no score."""
    reasons = Counter(o.score.reason or "no score" for o in outcomes if o.score.value is None)
    return reasons.most_common(1)[0][0] if reasons else "too few documents of one kind"


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
