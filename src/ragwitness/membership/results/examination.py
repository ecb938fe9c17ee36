"""The result of ``ragwitness doctor``: what a target can do, and which audits it admits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ragwitness.core.quotes import quote
from ragwitness.core.types import Shown
from ragwitness.membership.results import forecast
from ragwitness.membership.results.forecast import Outlook
from ragwitness.report.document import ReportDocument, table_rows
from ragwitness.report.result_type import ResultType, Row, plain, restored
from ragwitness.runner.capabilities import CapabilityReport


@dataclass(frozen=True, slots=True)
class PilotOutcome:
    """Whether a method reads the target.

    Attributes:
        possible: It tells texts that were shown in the question from texts that were not.
        told: What the pilot showed, in words.
        queries: Sent for it.
    """

    possible: bool
    told: str
    queries: int


@dataclass(frozen=True, slots=True)
class Examination(Shown):
    """What a target was seen to do.

    Attributes:
        seen: What it answered to a few harmless questions.
        audits: Audits that it admits.
        pilots: By the name of a method: whether it reads the target; empty where none was tried.
        forecast: What the audits would cost; None without documents.
    """

    seen: CapabilityReport
    audits: tuple[str, ...]
    pilots: Mapping[str, PilotOutcome]
    forecast: Outlook | None = None


def _dump(result: Examination) -> Row:
    told = asdict(result)
    told |= told.pop("seen") | {"capabilities": sorted(result.seen.capabilities)}
    told["forecast"] = result.forecast and forecast.dump(result.forecast)
    return dict(plain(told))


def _load(data: Mapping[str, Any]) -> Examination:
    own = {"seen": data, "audits": data["audits"], "pilots": data["pilots"]}
    told = data["forecast"]
    found = restored(Examination, own, RESULT_TYPE)
    return found if told is None else replace(found, forecast=forecast.load(told))


def _report(result: Examination) -> ReportDocument:
    seen, outlook = result.seen, result.forecast
    # Only what auto chooses from is tried: of another it is not known whether it can be read.
    untried = {one for one in result.audits if result.pilots and one not in result.pilots}
    named = [one + " (no pilot)" * (one in untried) for one in result.audits]
    facts = (
        ("capabilities", ", ".join(sorted(seen.capabilities))),
        ("alternatives per token", str(seen.alternatives)),
        ("prompt scores (echo)", {True: "yes", False: "no", None: "not asked"}[seen.echo]),
        ("first answer", quote(seen.text)),
        ("seconds per answer", f"{seen.latency:.2f}"),
        ("queries spent", str(seen.requests + sum(p.queries for p in result.pilots.values()))),
        *((f"pilot of {name}", one.told) for name, one in result.pilots.items()),
        ("audits possible", ", ".join(named) or "none"),
        *((("cost and power", "ragwitness plan --documents FILE"),) if outlook is None else ()),
        *(("note", note) for note in seen.notes),
    )
    return ReportDocument(
        RESULT_TYPE.words,
        seen.target,
        target=seen.target,
        facts=facts,
        warnings=() if outlook is None else outlook.warnings,
        sections=() if outlook is None else forecast.sections(outlook),
    )


def _rows(result: Examination) -> list[Row]:
    report = _report(result)
    seen = [{"row": label, "column": "seen", "value": value} for label, value in report.facts]
    return [*seen, *table_rows(report)]


RESULT_TYPE: ResultType[Examination, str] = ResultType(
    name="doctor",
    words="examination of a target",
    verb="doctor --json",
    dump=_dump,
    load=_load,
    report=_report,
    rows=_rows,
)
