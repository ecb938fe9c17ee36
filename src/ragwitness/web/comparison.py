"""Two runs side by side: what differs in how they were made, and in what they found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragwitness.core.types import Decision, Verdict
from ragwitness.membership.results.audit import LABELS, AuditResult, strength
from ragwitness.stats.evaluation import Rate
from ragwitness.web.runs import Run

_DECISIONS = (Decision.IN, Decision.INCONCLUSIVE, Decision.OUT)


Sides = tuple[tuple[str, Any, Any], ...]
"""Names, each with what it is in the first run and in the second; None where a run has none."""


def facts(first: Run, second: Run) -> Sides:
    """Return what both runs are, and every setting."""
    return _beside(_described(first), _described(second))


def rates(first: Run, second: Run) -> Sides:
    """Return the rates that either run has, in the order of the first."""
    return _beside(_rates(first), _rates(second))


def _beside(one: Mapping[str, Any], other: Mapping[str, Any]) -> Sides:
    return tuple((name, one.get(name), other.get(name)) for name in {**one, **other})


def agreement(
    first: AuditResult, second: AuditResult
) -> tuple[int, tuple[tuple[str, tuple[int, ...]], ...]]:
    """Return how many documents both runs judge, and how: rows are the first run's verdicts."""
    shared = [(one.decision, other.decision) for one, other in _both(first, second)]
    return len(shared), tuple(
        (LABELS[row], tuple(shared.count((row, column)) for column in _DECISIONS))
        for row in _DECISIONS
    )


def changes(first: AuditResult, second: AuditResult) -> list[tuple[Verdict, Verdict]]:
    """Return the verdicts on which the two runs differ, strongest in the first first."""
    moved = [pair for pair in _both(first, second) if pair[0].decision is not pair[1].decision]
    return sorted(moved, key=lambda pair: strength(pair[0]))


def _both(first: AuditResult, second: AuditResult) -> list[tuple[Verdict, Verdict]]:
    """Pair the verdicts on documents that both runs judge; the rest is no disagreement."""
    others = {one.document: one for one in second.verdicts}
    return [(one, others[one.document]) for one in first.verdicts if one.document in others]


def _described(run: Run) -> dict[str, str]:
    """Return label and value of everything that is known of a run."""
    # The sheets already name facts and settings; comparing words keeps this page free of kinds.
    sheet = run.sheet
    known = (*sheet.facts, *sheet.rests_on, *sheet.settings) if sheet else ()
    return {"Kind": run.words, **dict(known)}


def _rates(run: Run) -> dict[str, Rate]:
    return dict(run.sheet.rates) if run.sheet else {}
