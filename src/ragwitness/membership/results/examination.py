"""The result of ``ragwitness doctor``: capabilities of a target, and the audits that it admits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ragwitness.core.quotes import quote
from ragwitness.core.types import Shown
from ragwitness.report.document import ReportDocument
from ragwitness.report.result_type import ResultType, Row, plain, restored
from ragwitness.runner.capabilities import CapabilityReport


@dataclass(frozen=True, slots=True)
class PilotOutcome:
    """Whether a method reads the target.

    Attributes:
        possible: It tells texts that were shown in the question from texts that were not.
        told: The outcome of the pilot, in words.
        queries: Sent for it.
    """

    possible: bool
    told: str
    queries: int


@dataclass(frozen=True, slots=True)
class Examination(Shown):
    """The observed abilities of a target.

    Attributes:
        seen: Its answers to a few harmless questions.
        audits: Audits that it admits.
        pilots: By the name of a method: whether it reads the target; empty where none was tried.
    """

    seen: CapabilityReport
    audits: tuple[str, ...]
    pilots: Mapping[str, PilotOutcome]


def _dump(result: Examination) -> Row:
    row = asdict(result)
    row |= row.pop("seen") | {"capabilities": sorted(result.seen.capabilities)}
    return dict(plain(row))


def _load(data: Mapping[str, Any]) -> Examination:
    fields = {"seen": data, "audits": data["audits"], "pilots": data["pilots"]}
    return restored(Examination, fields, RESULT_TYPE)


def _facts(result: Examination) -> tuple[tuple[str, str], ...]:
    report = result.seen
    # Pilots try only the candidates of auto: whether another method can read is not known.
    untried = {name for name in result.audits if result.pilots and name not in result.pilots}
    named = [name + " (no pilot)" * (name in untried) for name in result.audits]
    return (
        ("capabilities", ", ".join(sorted(report.capabilities))),
        ("alternatives per token", str(report.alternatives)),
        ("prompt scores (echo)", {True: "yes", False: "no", None: "not asked"}[report.echo]),
        ("first answer", quote(report.text)),
        ("seconds of one answer", f"{report.latency:.2f}"),
        ("queries spent", str(report.requests + sum(p.queries for p in result.pilots.values()))),
        *((f"pilot of {name}", pilot.told) for name, pilot in result.pilots.items()),
        ("audits possible", ", ".join(named) or "none"),
        ("cost and power", "ragwitness plan --documents FILE"),
        *(("note", note) for note in report.notes),
    )


RESULT_TYPE: ResultType[Examination, str] = ResultType(
    name="doctor",
    words="examination of a target",
    verb="doctor --json",
    dump=_dump,
    load=_load,
    report=lambda result: ReportDocument(
        RESULT_TYPE.words, result.seen.target, target=result.seen.target, facts=_facts(result)
    ),
    rows=lambda result: [
        {"row": label, "column": "seen", "value": value} for label, value in _facts(result)
    ],
)
