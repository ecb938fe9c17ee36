"""Two runs side by side: what differs in how they were made, and in what they found."""

from __future__ import annotations

from dataclasses import dataclass

from ragwitness.results import wording as say
from ragwitness.results.membership import LABELS, AuditResult, strength
from ragwitness.stats.evaluation import Rate
from ragwitness.types import Decision, Verdict
from ragwitness.web.runs import Run

_DECISIONS = (Decision.IN, Decision.INCONCLUSIVE, Decision.OUT)


@dataclass(frozen=True, slots=True)
class Fact:
    """A property of both runs, in words."""

    name: str
    first: str
    second: str

    @property
    def differs(self) -> bool:
        """Whether the two are not the same."""
        return self.first != self.second


@dataclass(frozen=True, slots=True)
class Pair:
    """A rate in both runs; None where one has none."""

    name: str
    first: Rate | None
    second: Rate | None


@dataclass(frozen=True, slots=True)
class Changed:
    """A document that the two runs judge differently."""

    document: str
    first: Verdict
    second: Verdict


def facts(first: Run, second: Run) -> tuple[Fact, ...]:
    """Return what both runs are, and every setting."""
    one, other = _described(first), _described(second)
    return tuple(
        Fact(name, one.get(name, say.MISSING), other.get(name, say.MISSING))
        for name in [*one, *(name for name in other if name not in one)]
    )


def rates(first: Run, second: Run) -> tuple[Pair, ...]:
    """Return the rates that either run has, in the order of the first."""
    one, other = _rates(first), _rates(second)
    names = [*one, *(name for name in other if name not in one)]
    return tuple(Pair(name, one.get(name), other.get(name)) for name in names)


def agreement(
    first: AuditResult, second: AuditResult
) -> tuple[int, tuple[tuple[str, tuple[int, ...]], ...]]:
    """Return how many documents both runs judge, and how: rows are the first run's verdicts."""
    others = _by_document(second)
    # Only documents that both runs judge; the rest is no disagreement.
    shared = [
        (verdict.decision, others[verdict.document].decision)
        for verdict in first.verdicts
        if verdict.document in others
    ]
    return len(shared), tuple(
        (LABELS[row], tuple(shared.count((row, column)) for column in _DECISIONS))
        for row in _DECISIONS
    )


def changes(first: AuditResult, second: AuditResult) -> tuple[Changed, ...]:
    """Return the documents that the two runs judge differently, strongest in the first first."""
    others = _by_document(second)
    moved = [
        (one, others[one.document])
        for one in first.verdicts
        if one.document in others and others[one.document].decision is not one.decision
    ]
    moved.sort(key=lambda pair: strength(pair[0]))
    return tuple(Changed(one.document, one, other) for one, other in moved)


def _by_document(result: AuditResult) -> dict[str, Verdict]:
    return {verdict.document: verdict for verdict in result.verdicts}


def _described(run: Run) -> dict[str, str]:
    """Return label and value of everything that is known of a run."""
    # The sheets already name facts and settings; comparing words keeps this page free of kinds.
    sheet = run.sheet
    known = (*sheet.facts, *sheet.rests_on, *sheet.settings) if sheet else ()
    return {"Kind": run.words, **dict(known)}


def _rates(run: Run) -> dict[str, Rate]:
    return dict(run.sheet.rates) if run.sheet else {}
