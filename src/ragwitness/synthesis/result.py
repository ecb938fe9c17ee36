"""The result of a synthesis: the outcome of every record, without any text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ragwitness.core.errors import ExitCode
from ragwitness.core.types import LeftOut, Shown
from ragwitness.report import formatting as fmt
from ragwitness.report import result_type as types
from ragwitness.report.document import Column, Name, Paragraph, ReportDocument, Section, Table
from ragwitness.report.spending import Spending
from ragwitness.synthesis.generator import Fate

_SHOWN = 5  # reasons in a terminal
_PROMISE = ("privacy", "covers", "spent on these records by the runs in this ledger")


@dataclass(frozen=True, slots=True)
class RecordFate:
    """The outcome of one record.

    Attributes:
        id: Its id.
        fate: Its outcome.
        reason: Why it did not pass; our own words, or those of a server that failed.
        rounds: Judgements by the privacy agent.
        violation: Kind of the condition that the last text broke; None where it broke none.
    """

    id: str
    fate: str
    reason: str = ""
    rounds: int = 0
    violation: str | None = None


@dataclass(frozen=True, slots=True)
class SynthesisReport(Shown):
    """The result of ``ragwitness synthesize``, without any text.

    Attributes:
        method: How texts were made.
        model: Name of the language model; empty without one.
        settings: All inputs of the texts.
        counts: Records by outcome.
        reasons: Records by reason why there is no text.
        queries: To the model, kept answers included.
        seconds: Wall time of the last start.
        warnings: Warnings on the use of the texts.
        out: File of the texts; None where none passed.
        records: One by one; of a corpus method, text by text.
        left_out: Files and rows that could not be read.
        sent: Queries that went to the model at the last start.
        spent: Spending of the run folder.
    """

    method: str
    model: str
    settings: Mapping[str, str]
    counts: Mapping[str, int]
    reasons: Mapping[str, int]
    queries: int
    seconds: float
    warnings: tuple[str, ...]
    out: str | None = None
    records: tuple[RecordFate, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    sent: int = 0
    spent: Spending | None = None


def counted(records: Sequence[RecordFate]) -> tuple[dict[str, int], dict[str, int]]:
    """Return records by fate, and those that did not pass by reason; the commonest first."""
    failed = (record for record in records if record.fate != Fate.PASSED)
    fates = Counter(record.fate for record in records)
    reasons = Counter(f"{record.fate}: {record.reason}" for record in failed)
    return dict(fates.most_common()), dict(reasons.most_common())


def _rule(result: SynthesisReport, conditions: Sequence[types.Condition]) -> types.Ruling:
    """Say how it ends; where no record was tried, no condition says anything."""
    # Every record has exactly one fate, so the counts sum to the records.
    total = sum(result.counts.values())
    if conditions and not total:
        return types.Ruling(ExitCode.INCONCLUSIVE, "inconclusive: there was no record")
    return types.rule_counts(result.counts, conditions, f"{fmt.count(total)} records", total)


def _report(result: SynthesisReport) -> ReportDocument:
    total = sum(result.counts.values())
    facts = (
        ("Model", result.model or "none"),
        ("Spent", fmt.spent_text(result.spent) or f"{fmt.count(result.queries)} queries"),
        ("Time", fmt.duration(result.seconds)),
        ("Texts", result.out or "none passed"),
    )
    promise = tuple((label, result.settings.get(label, "")) for label in _PROMISE)
    # Reasons are our own words, or a server's: to quote the text would leak what was withheld.
    reasons = tuple(result.reasons.items())
    fates = (_table("Every record under one name", "Fate", tuple(result.counts.items()), True),)
    whys = (_table("Why there is no text", "Reason", reasons, False),) if reasons else ()
    brief = tuple(Paragraph(f"{n} {reason}", brief=True) for reason, n in reasons[:_SHOWN])
    return ReportDocument(
        kind=RESULT_TYPE.words,
        title=f"{fmt.count(result.counts.get('passed', 0))} of {fmt.count(total)} texts passed",
        sentence="A text that broke a condition, or could not be made, was withheld.",
        method=result.method,
        target=result.model,
        queries=result.queries,
        brief=(*facts[:3], *promise),
        warnings=result.warnings,
        left_out=result.left_out,
        claimed=("Each text that passed met every condition among its settings.",),
        not_claimed=(
            "That a text that passed gives nothing away: a fact told in other words breaks no"
            " condition on words. ragwitness compare attacks the texts.",
        ),
        sections=(
            Section("fates", "Outcome of the records", (*fates, *whys)),
            *([Section("reasons", "", brief, "terminal")] if brief else []),
        ),
        settings=(*facts, *(row for row in result.settings.items() if row[0] != "warning")),
    )


def _load(data: Mapping[str, Any]) -> SynthesisReport:
    now = dict(data)
    # Earlier versions kept what was left out as places with reasons.
    earlier = now.pop("skipped", ())
    now.setdefault("left_out", [{"file": file["where"], "why": file["why"]} for file in earlier])
    return types.restored(SynthesisReport, now, RESULT_TYPE)


def _table(caption: str, name: str, found: tuple[tuple[str, int], ...], brief: bool) -> Table:
    columns = (
        Column(name, "name", name.lower() if brief else None),
        Column("Records", "value", "records" if brief else None),
    )
    return Table(caption, columns, tuple((Name(label), n) for label, n in found), "settings")


RESULT_TYPE: types.ResultType[SynthesisReport, types.Condition] = types.ResultType(
    name="synthesis",
    words="synthesis",
    verb="synthesize",
    load=_load,
    recognises=lambda data: "counts" in data and "reasons" in data,
    conditions=lambda texts: types.parse_conditions(texts, tuple(map(str, Fate))),
    rule=_rule,
    report=_report,
    rows=lambda result: [asdict(one) for one in result.records],
    columns={"id": str, "fate": str, "reason": str, "rounds": int, "violation": str},
)
