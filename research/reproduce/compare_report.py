"""A paper's table of compared texts beside ours, as Markdown and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragwitness.comparison.result import RESULT_TYPE, Compared, Comparison
from ragwitness.leakage.score.table import LeakMeasure
from ragwitness.report import formatting as fmt
from ragwitness.synthesis.run import SynthesisResult
from research.reproduce.compare import CompareCase, CompareTable


@dataclass(frozen=True, slots=True)
class Done:
    """What was found for one case.

    Attributes:
        case: Of the table.
        result: The comparison; None where nothing was run.
        made: What methods made, by method.
        lacking: Why a method has no row, by method.
        counts: Published counts of answers, and of the texts as if each were one, by method.
    """

    case: CompareCase
    result: Comparison | None = None
    made: Mapping[str, SynthesisResult] | None = None
    lacking: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, tuple[Sequence[LeakMeasure], Sequence[LeakMeasure]]] = field(
        default_factory=dict
    )


@dataclass(frozen=True, slots=True)
class TableRow:
    """One figure.

    Attributes:
        case: Label of the case.
        row: The paper's name of the method, or ours.
        column: The paper's.
        published: As printed; empty where the paper prints none.
        ours: Our figure, or why there is none.
        interval: At 95 %; empty where it has none.
        n: Prompts, questions or texts behind it.
    """

    case: str
    row: str
    column: str
    published: str
    ours: str
    interval: str = ""
    n: str = ""


def table_rows(table: CompareTable, done: Sequence[Done]) -> list[TableRow]:
    """Return every figure of a table, refused and missing ones with their reasons."""
    found = []
    for one in done:
        if one.case.refused:
            found.append(TableRow(one.case.label, "", "", "", f"not run: {one.case.refused}"))
            continue
        for label, method in table.rows.items():
            for column, where in one.case.columns.items():
                printed = one.case.published.get(label, {}).get(column, "")
                ours = _figure(where, method, one)
                found.append(TableRow(one.case.label, label, column, printed, *ours))
    return found


def _figure(where: str, method: str, done: Done) -> tuple[str, str, str]:
    """Our figure with its interval and n, or why there is none."""
    variants = done.result.variants if done.result else ()
    one = next((variant for variant in variants if variant.name == method), None)
    if one is None:
        return f"not run: {done.lacking.get(method, 'needs --model')}", "", ""
    kind, _, name = where.partition(" ")
    if kind == "words":
        return f"{one.words:.0f}", "", fmt.count(one.indexed)
    if kind == "rounds":
        return _rounds((done.made or {}).get(method))
    if kind == "queries":
        made = (done.made or {}).get(method)
        records, asked = (len(made.made), made.report.queries) if made else (0, 0)
        return (f"{asked / records:.2f}", "", fmt.count(records)) if records else ("0", "", "")
    if kind == "use":
        return _use(one, name)
    answers, texts = done.counts.get(method, ((), ()))
    measures = texts if kind == "worst" else answers
    return _count(measures, name.removeprefix("published "))


def _count(measures: Sequence[LeakMeasure], label: str) -> tuple[str, str, str]:
    found = next((one for one in measures if one.label == label), None)
    if found is None or found.note:
        return f"not counted{f': {found.note}' if found and found.note else ''}", "", ""
    interval = f"{found.of * found.rate.low:.0f} to {found.of * found.rate.high:.0f}" if (
        found.rate
    ) else ""  # fmt: skip
    return fmt.count(int(found.count)), interval, fmt.count(found.of) if found.of else ""


def _use(one: Compared, name: str) -> tuple[str, str, str]:
    found = one.usefulness.get(name)
    if found is None:
        return "not run: needs --judge" if "judged" in name else "not measured", "", ""
    return f"{found.mean.value:.4f}", fmt.interval(found.mean), fmt.count(found.mean.n)


def _rounds(made: SynthesisResult | None) -> tuple[str, str, str]:
    rounds = [one.rounds for one in made.made if one.rounds] if made else []
    if not rounds:
        return "no text was judged", "", ""
    return f"{sum(rounds) / len(rounds):.2f}", "", fmt.count(len(rounds))


def table_markdown(table: CompareTable, done: Sequence[Done]) -> str:
    """Return a Markdown table: published and ours side by side."""
    lines = [
        f"**{table.title}**",
        "",
        "| case | method | figure | published | ours | 95 % | n |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in table_rows(table, done):
        printed = row.published or "–"  # noqa: RUF001
        lines.append(
            f"| {row.case} | {row.row} | {row.column} | {printed} | {row.ours} | {row.interval}"
            f" | {row.n} |"
        )
    return "\n".join([*lines, *(["", table.note] if table.note else [])]) + "\n"


def table_json(table: CompareTable, done: Sequence[Done]) -> dict[str, Any]:
    """Return everything measured, with the published values beside."""
    return {
        "table": table.name,
        "title": table.title,
        "note": table.note,
        "cases": [
            {
                "label": one.case.label,
                "published": dict(one.case.published),
                "refused": one.case.refused,
                "result": {"kind": RESULT_TYPE.name, **RESULT_TYPE.dump(one.result)}
                if one.result
                else None,
            }
            for one in done
        ],
    }
