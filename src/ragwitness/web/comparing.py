"""Two runs side by side: what differs in how they were made, and in what they found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragwitness.report import view
from ragwitness.report import wording as say
from ragwitness.runs.result import AuditResult
from ragwitness.stats.evaluation import Rate, auc_difference
from ragwitness.types import Decision, Verdict
from ragwitness.web.reading import Run

__all__ = ["Changed", "Fact", "Pair", "agreement", "area_difference", "changes", "facts", "rates"]

_DECISIONS = (Decision.IN, Decision.INCONCLUSIVE, Decision.OUT)
_FEWEST = 2  # of each kind, for an interval


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
    first: view.Row
    second: view.Row


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


def area_difference(first: AuditResult, second: AuditResult) -> Rate | None:
    """Return the AUC of the second minus that of the first, on what both scored; None without."""
    ones, others = _by_document(first), _by_document(second)
    both = [
        (one, other)
        for name, one in ones.items()
        if (other := others.get(name)) is not None
        and one.member is not None
        and one.member == other.member
        and one.score is not None
        and other.score is not None
    ]
    labels = np.array([bool(one.member) for one, _ in both], dtype=np.bool_)
    if min(int(labels.sum()), int((~labels).sum())) < _FEWEST:
        return None
    scores = [np.array([pair[i].score for pair in both], dtype=np.float64) for i in (1, 0)]
    return auc_difference(scores[0], scores[1], labels)


def agreement(
    first: AuditResult, second: AuditResult
) -> tuple[int, tuple[tuple[str, tuple[int, ...]], ...]]:
    """Return how many documents both runs judge, and how: rows are the first run's verdicts."""
    others = _by_document(second)
    shared = [
        (verdict.decision, others[verdict.document].decision)
        for verdict in first.verdicts
        if verdict.document in others
    ]
    return len(shared), tuple(
        (say.LABELS[row], tuple(shared.count((row, column)) for column in _DECISIONS))
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
    moved.sort(key=lambda pair: view.strength(pair[0]))
    return tuple(Changed(one.document, view.row(one), view.row(other)) for one, other in moved)


def _by_document(result: AuditResult) -> dict[str, Verdict]:
    return {verdict.document: verdict for verdict in result.verdicts}


def _described(run: Run) -> dict[str, str]:
    """Return label and value of everything that is known of a run."""
    of_kind = (_of_audit, _of_evaluation, _of_collection, _of_leak, _of_comparison, _of_making)
    known = {label: value for of in (*of_kind, _of_canary) for label, value in of(run).items()}
    return {"Kind": str(run.kind), **known}


def _of_audit(run: Run) -> dict[str, str]:
    result = run.audit
    if result is None:
        return {}
    return {
        "System audited": result.target,
        "Level": say.percent(result.alpha),
        "Documents": say.count(len(result.verdicts)),
        "Without a score": say.count(result.unscorable),
        "Calibrated on": f"{result.calibration.source} (n = {say.count(result.calibration.n)})",
        "Started": result.started,
        "Time": say.duration(result.seconds),
        "Queries": say.count(result.queries),
        "Spent by all starts": view.spent_text(result.spent) or say.MISSING,
        **dict(result.settings),
        "Ragwitness": result.ragwitness or say.MISSING,
    }


def _of_canary(run: Run) -> dict[str, str]:
    result = run.canary
    if result is None:
        return {}
    asked = {"System audited": result.target, "Release": result.release}
    return {**asked, "Time": say.duration(result.seconds), **result.settings}


def _of_evaluation(run: Run) -> dict[str, str]:
    result = run.battery
    if result is None:
        return {}
    sizes = {name.capitalize(): say.count(n) for name, n in result.sizes.items()}
    return {**sizes, "Time": say.duration(result.seconds), **result.settings}


def _of_collection(run: Run) -> dict[str, str]:
    result = run.collection
    if result is None:
        return {}
    return {
        "System audited": result.target,
        "method": result.method,
        "Level": say.percent(result.alpha),
        "e-value": f"10^{result.log10_e:.1f}",
        "Anytime-valid p": say.p_text(result.p_value),
        "Asked about": f"{result.documents_asked} of {result.documents}",
        "Queries": say.count(result.queries),
        "Time": say.duration(result.seconds),
    }


def _of_leak(run: Run) -> dict[str, str]:
    result = run.leak
    if result is None:
        return {}
    return {
        "System": result.target or say.MISSING,
        "Records": say.count(result.records),
        **{f"Prompts of {one.name}": say.count(one.prompts) for one in result.attacks},
        "Started": result.started,
        "Time": say.duration(result.seconds),
        **dict(result.settings),
        "Ragwitness": result.ragwitness or say.MISSING,
    }


def _of_comparison(run: Run) -> dict[str, str]:
    result = run.comparison
    if result is None:
        return {}
    return {
        "Records": say.count(result.records),
        "Questions": say.count(result.questions),
        "Variants": ", ".join(one.name for one in result.variants),
        "Started": result.started,
        "Time": say.duration(result.seconds),
        **dict(result.settings),
        "Ragwitness": result.ragwitness or say.MISSING,
    }


def _of_making(run: Run) -> dict[str, str]:
    result = run.making
    if result is None:
        return {}
    return {
        "Model": result.model or "none",
        "Queries": say.count(result.queries),
        "Time": say.duration(result.seconds),
        "Texts": result.out or say.MISSING,
        **result.settings,
    }


def _rates(run: Run) -> dict[str, Rate]:
    if run.audit is not None:
        return {one.name: one.rate for one in view.measures(run.audit)}
    if run.battery is not None:
        return {f"AUC of {one.audit}": one.auc for one in run.battery.audits}
    if run.leak is not None:
        ours = [(one.label, one.rate) for one in run.leak.together if not one.published]
        return {f"Share of {label}": rate for label, rate in ours if rate is not None}
    return {}
