"""The verdict on a sealed file: what every report of it says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

from ragwitness.attest.verdict import BundleVerdict, Check, Sampling
from ragwitness.report import formatting as fmt
from ragwitness.report.document import (
    Block,
    Cell,
    Column,
    Mark,
    Name,
    Paragraph,
    ReportDocument,
    Section,
    Style,
    Table,
    plain_table,
    table_rows,
)
from ragwitness.report.result_type import ResultType, Row, TestCase, plain, restored

_STYLES: dict[str, Style] = {"pass": "out", "fail": "in", "not checked": "inconclusive"}
_STATES: Mapping[str, Literal["passed", "failed", "skipped"]] = {
    "pass": "passed",
    "fail": "failed",
    "not checked": "skipped",
}


def _dump(verdict: BundleVerdict) -> Row:
    fields: Row = plain(asdict(verdict))
    # The first failure by itself: scripts compare its name.
    fields["failure"] = verdict.failures[0].failure if verdict.failures else None
    fields["epsilon"] = verdict.epsilon
    if verdict.sampling is not None:
        fields["sampling"]["mode"] = verdict.sampling.mode
    return fields


def _cases(verdict: BundleVerdict, _conditions: Sequence[str]) -> list[TestCase]:
    return [
        TestCase(check.name, _STATES[check.status], check.detail, type=check.failure or "check")
        for check in verdict.checks
    ]


def _report(verdict: BundleVerdict) -> ReportDocument:
    # Outcome and window, why, the checks, then numbers: a reader who stops early has read the
    # verdict.
    title = verdict.outcome.upper()
    if verdict.window:
        title += f"  window {verdict.window}"
    title += _epsilon(verdict)
    # The first page has coverage, assumptions and exclusions of the outcome. The checks by name and
    # the numbers follow.
    scope = (
        ("Covers", verdict.covers),
        ("Depends on", verdict.rests),
        ("Does not cover", verdict.uncovered),
        ("The holder of this file also learns", verdict.learned),
    )
    first_page = [
        Paragraph(line, "", brief=True)
        for heading, lines in scope
        if lines
        for line in (f"{heading}:", *(f"- {item}" for item in lines))
    ]
    lead = [Paragraph(line, "", brief=True) for line in verdict.lead]
    open_ = [check for check in verdict.checks if check.status != "pass"]
    sampled = verdict.sampling
    blocks: list[Block] = []
    if verdict.numbers:
        blocks += [_numbers(verdict), *_legend(verdict)]
    if sampled is not None:
        blocks.append(Paragraph(sampling_line(sampled), "", brief=True))
    return ReportDocument(
        RESULT_TYPE.words,
        title,
        _counted(verdict) if lead else f"{verdict.why.rstrip('.')}. {_counted(verdict)}",
        warnings=verdict.notes,
        sections=(
            *([Section("lead", "In plain words", tuple(lead))] if lead else ()),
            Section("scope", "Coverage and assumptions", tuple(first_page), "page"),
            Section("numbers", "Possible disclosure", tuple(blocks), "page"),
            Section("checks", "The checks", (_checks(verdict.checks),), "page"),
            Section("open", "", (_checks(open_),) if open_ else (), "terminal"),
        ),
        closing=("All checks, and what the verdict covers: ragwitness --verbose verify FILE",),
    )


def _epsilon(verdict: BundleVerdict) -> str:
    """Epsilon of the window, and of all windows over its index that the provider's log shows."""
    worst = verdict.worst
    if worst is None:
        return ""
    text = (
        f": epsilon {fmt.three(worst.exact)} at delta* {worst.delta:g} towards accounts in this"
        f" window (index {worst.tenant})"
    )
    if worst.windows is None:
        return f"{text}; other windows are not known"
    largest = max(verdict.numbers, key=lambda number: number.together or math.inf)
    return (
        f"{text}; in all windows over {largest.tenant} ({largest.windows}) on the provider's log,"
        f" {verdict.listed}: at most {fmt.three(largest.together)}"
    )


def _counted(verdict: BundleVerdict) -> str:
    """How many checks hold, and how many were not made: no check that was not made is a pass."""
    ended = Counter(check.status for check in verdict.checks)
    hold, failed, open_ = ended["pass"], ended["fail"], ended["not checked"]
    counts = {"hold": hold, "failed": failed, "not made": open_}
    summary = ", ".join(f"{fmt.count(n)} {how}" for how, n in counts.items() if n)
    return f"Of {fmt.count(len(verdict.checks))} checks: {summary}."


def _checks(checks: Sequence[Check]) -> Table:
    rows = (
        (
            Name(check.name),
            Mark(check.status, _STYLES[check.status]),
            Mark(f"{check.failure}: {check.detail}" if check.failure else check.detail),
        )
        for check in checks
    )
    columns = Column("check", "name", "check"), Column("", "value", ""), Column("", "text", "")
    return Table("Every check by name", columns, tuple(rows))


def _numbers(verdict: BundleVerdict) -> Table:
    # Three epsilons of the same noise: the paper's bound (5.2), the exact one, and the odometer's
    # over everything answered.
    rows: list[tuple[Cell, ...]] = []
    for row in verdict.numbers:
        values = (row.paper, row.exact, row.odometer)
        rows.append((Name(row.tenant), *map(fmt.three, values)))
    names = ("epsilon of", "paper (5.2)", "exact", "odometer")
    return plain_table("Epsilon towards accounts", names, rows)


def _legend(verdict: BundleVerdict) -> list[Paragraph]:
    first = verdict.numbers[0]
    lines = [
        f"All at delta* {first.delta:g}. Paper: from the epsilon promised to one account. Exact:"
        f" of the committed noise, k_max accounts with {fmt.count(first.cap)} answers in all."
        " Odometer: of every answer given, whoever asked."
    ]
    if first.paper is None:
        lines.append(f"{fmt.MISSING} {first.why}")
    return [Paragraph(line, brief=True) for line in lines]


def sampling_line(sampling: Sampling) -> str:
    """Return in words which records were looked at, and what that finds."""
    everything = (
        f"Mode {sampling.mode}: {fmt.count(sampling.challenged)} of"
        f" {fmt.count(sampling.population)} answers were proved."
    )
    # Mode A proves every answer; otherwise the verdict covers the others only with the chances
    # given.
    if sampling.mode == "A":
        return everything
    chances = ", ".join(f"{fmt.count(bad)}: {chance:.2%}" for bad, chance in sampling.detection)
    return (
        f"{everything} The verdict is conditional on the others. Chance to have checked one of a"
        f" number of bad records: {chances}."
    )


def _load(data: Mapping[str, Any]) -> BundleVerdict:
    return restored(BundleVerdict, data, RESULT_TYPE)


RESULT_TYPE: ResultType[BundleVerdict, str] = ResultType(
    name="verification",
    words="verdict on a sealed file",
    verb="verify --json",
    dump=_dump,
    load=_load,
    recognises=lambda data: {"outcome", "checks", "why"} <= data.keys(),
    report=_report,
    rows=lambda verdict: table_rows(_report(verdict)),
    cases=_cases,
)
