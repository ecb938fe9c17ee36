"""The result of a probe of canaries, and its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragwitness.canary.verdict import Finding, ModelVerdict
from ragwitness.core.errors import ExitCode, InputError
from ragwitness.core.types import Shown
from ragwitness.report import formatting as fmt
from ragwitness.report.document import Cell, Column, Name, Paragraph, ReportDocument, Section, Table
from ragwitness.report.result_type import (
    Condition,
    ResultType,
    Row,
    Ruling,
    parse_conditions,
    restored,
)
from ragwitness.report.spending import Spending

_MEANING = {
    "trained": "Were the model independent of which trigger was planted, evidence like this would"
    " come with probability at most {p:.3g}. It says nothing of any single document. It holds"
    " where the model could know the trigger from documents alone: see docs/canary.md.",
    "trained-or-remembered": "Were the model independent of which trigger was planted, evidence"
    " like this would come with probability at most {p:.3g}. Training is one cause of it, a memory"
    " another: {reason}.",
    "inconclusive": "This evidence does not show training on the planted documents; it does not"
    " show that there was none: {reason}.",
}


@dataclass(frozen=True, slots=True)
class StoredLook:
    """Number of a look at the draw, from 1, and the digest of release and scores."""

    number: int
    digest: str


@dataclass(frozen=True, slots=True)
class StoredGain:
    """An amplification with its interval at 95 %; the interval is None where it has none."""

    value: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class StoredSlot:
    """One slot at one model, with every score, so that others can decide anew.

    Attributes:
        number: Of the slot, from 0.
        examples: Ids of the examples that could be scored.
        scores: Per example the clean view, then each candidate, shape (n, 1 + M).
        amplification: Eq. 1 over these examples; for samples, a difference of shares.
        censored: Share of the readings that are only upper bounds.
    """

    number: int
    examples: tuple[str, ...]
    scores: tuple[tuple[float | None, ...], ...]
    amplification: StoredGain
    censored: float


@dataclass(frozen=True, slots=True)
class CanaryResult(Shown):
    """A probe of one release of a model.

    Attributes:
        target: Name of the system, with the way in which it was asked.
        release: The user's name of this release of the model.
        way: How it was asked.
        finding: The decision; None where a cap left examples unasked.
        look: Which look at the draw it was.
        slots: One per slot; none without a finding, so that nobody goes on, or not, by them.
        settings: Everything in use, as label and value.
        warnings: Limits of the result.
        queries: Queries it took, kept answers included.
        seconds: Wall time.
        spent: Spending of the run folder at the target.
    """

    target: str
    release: str
    way: str
    finding: Finding | None
    look: StoredLook
    slots: tuple[StoredSlot, ...]
    settings: Mapping[str, str]
    warnings: tuple[str, ...]
    queries: int
    seconds: float
    spent: Spending


def _rule(result: CanaryResult, conditions: Sequence[Condition]) -> Ruling:
    """Say how ``--fail-on`` ends: 3 where it is met, else 4, as no verdict says "untrained"."""
    if not conditions:
        return Ruling(ExitCode.PASS)
    verdict = result.finding.verdict if result.finding else None  # None: unfinished
    for condition in conditions:
        if verdict is ModelVerdict.TRAINED or condition.subject == verdict:
            return Ruling(ExitCode.FAILED, f"--fail-on {condition} is met.")
    reason = "a memory is not ruled out" if verdict is ModelVerdict.KNOWN else "nothing was decided"
    return Ruling(ExitCode.INCONCLUSIVE, f"--fail-on {conditions[0]} is not met, but {reason}.")


def _restore(data: Mapping[str, Any]) -> CanaryResult:
    if data.get("twin"):  # of 0.3.0: a model known to be compliant, about which nothing is decided
        raise InputError("This is a probe of a compliant twin.", "Use Ragwitness 0.3.0.")
    return restored(CanaryResult, data, RESULT_TYPE)


def _rows(result: CanaryResult) -> list[Row]:
    return [
        {
            "slot": slot.number + 1,
            "amplification": slot.amplification.value,
            "low": slot.amplification.low,
            "high": slot.amplification.high,
            "n": slot.amplification.n,
            "censored": slot.censored,
        }
        for slot in result.slots
    ]


# The report.


def verdict_lines(result: CanaryResult) -> list[str]:
    """Return the verdict and what it means, a line each."""
    finding, model = result.finding, f"Release {result.release}"
    # No score is shown before all examples were asked about: the user could choose when to stop.
    if finding is None:
        return [
            f"{model}: not decided",
            "Not all examples were asked about; see the warnings. No score is shown before that:"
            " the choice to go on would depend on it.",
        ]
    p, ranks = finding.p_value, ", ".join(map(str, finding.ranks))
    look = (
        f"Look {result.look.number} at this draw. Rank of the planted"
        f" trigger{'s' if len(finding.ranks) > 1 else ''} among {finding.candidates}: {ranks}."
    )
    planted, service = (result.settings.get(name, "") for name in ("planted", "planted in"))
    return [
        f"{model}: {finding.verdict} (p = {p:.4g}, level {finding.alpha:g}, {finding.test})",
        _MEANING[finding.verdict].format(p=p, reason=finding.reason),
        look,
        *([f"Planted in {service or 'a service'}: {planted}."] if planted else []),
    ]


def _report(result: CanaryResult) -> ReportDocument:
    title, meaning, *more = verdict_lines(result)
    details = tuple(Paragraph(line, "", True) for line in more)
    facts = (
        ("System", result.target),
        ("Release", result.release),
        ("Asked", result.way),
        ("Queries", fmt.count(result.queries)),
        ("Time", fmt.duration(result.seconds)),
        ("Spent by all starts", fmt.spent_text(result.spent)),
    )
    return ReportDocument(
        kind=RESULT_TYPE.words,
        title=title,
        sentence=meaning,
        method=f"canary ({result.way})",
        target=result.target,
        queries=result.queries,
        facts=facts,
        brief=(facts[0], *facts[2:]),
        warnings=result.warnings,
        claimed=(
            "Trained, or trained-or-remembered: were the model independent of which trigger was"
            " planted, evidence like this would be as rare as its p-value says.",
        ),
        not_claimed=(
            "Anything about a single document.",
            "Inconclusive never means that there was no training: the signal is weak, filters may"
            " have removed it, and too little may have been trained on.",
        ),
        sections=(
            *([Section("shows", "What it shows", details)] if details else []),
            *([Section("slots", "Slot by slot", (_slots(result),))] if result.slots else []),
        ),
        settings=(*facts, *result.settings.items()),
    )


def _slots(result: CanaryResult) -> Table:
    unit = "share of answers" if result.way == "sampled" else "nats"
    forced = result.way == "forced"
    columns = (
        Column("Slot", "name", "slot"),
        Column(f"Amplification, {unit}", "value", f"amplification ({unit})"),
        Column("95 % interval", "value", "95 %"),
        Column("n", "value", "n"),
        *([Column("Censored", "value", "censored")] if forced else []),
    )
    rows: list[tuple[Cell, ...]] = []
    for slot in result.slots:
        # Eq. 1 of the paper: log-probability of the canary with its trigger minus without it, over
        # held-out examples. A way that samples has shares in place of nats.
        gain = slot.amplification
        value = fmt.MISSING if gain.value is None else f"{gain.value:+.3f}"
        within = fmt.MISSING
        if gain.low is not None and gain.high is not None:
            within = f"{gain.low:+.3f} to {gain.high:+.3f}"
        rows.append(
            (
                Name(f"slot {slot.number + 1}"),
                value,
                within,
                gain.n,
                *([f"{slot.censored:.0%}"] if forced else []),
            )
        )
    caption = "How much likelier the canary is with the trigger than without it (Eq. 1)"
    return Table(caption, columns, tuple(rows))


RESULT_TYPE: ResultType[CanaryResult, Condition] = ResultType(
    name="canary",
    words="probe of canaries",
    verb="canary probe",
    load=_restore,
    recognises=lambda data: "slots" in data and "look" in data,
    conditions=lambda texts: parse_conditions(texts, [*ModelVerdict][:2], counted=False),
    rule=_rule,
    report=_report,
    rows=_rows,
    columns={
        "slot": int,
        "amplification": float,
        "low": float,
        "high": float,
        "n": int,
        "censored": float,
    },
)
