"""A paper's table beside ours: Markdown, JSON and an SVG figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import escape

from ragwitness.results.evaluation import KIND, Battery, controls_of, short_rate
from ragwitness.stats.evaluation import Rate
from research.reproduce.tables import Case, Table

_ROW, _LEFT, _PLOT, _TOP = 22, 300, 400, 56


@dataclass(frozen=True, slots=True)
class Row:
    """One audit in one case.

    Attributes:
        case: Label of the case.
        audit: Its name, with the variant of the score.
        published: The paper's rate; None where it prints none.
        ours: The table's rate with its interval; None where the audit has no figure.
        unscorable: Share of documents without a score.
        queries: Per document.
        note: Why there is no figure.
    """

    case: str
    audit: str
    published: float | None
    ours: Rate | None
    unscorable: float = 0.0
    queries: float = 0.0
    note: str = ""


def rows_of(table: Table, results: Sequence[tuple[Case, Battery]]) -> list[Row]:
    """Return one row per case and audit, in the order of the cases.

    Variants of a score have a row where the paper prints them, and MBA's weighted one always.
    """
    rows = []
    for case, battery in results:
        for one in battery.audits:
            if "/" in one.audit and one.audit not in {*case.published, "mba/weighted"}:
                continue
            printed = case.published.get(one.audit)
            cost = one.cost.queries
            rate = one.f1 if table.rate == "f1" else one.auc
            rows.append(Row(case.label, one.audit, printed, rate, one.unscorable.value, cost))
        for audit, why in battery.skipped.items():
            rows.append(Row(case.label, audit, case.published.get(audit), None, note=why))
    return rows


def reproduction_json(table: Table, results: Sequence[tuple[Case, Battery]]) -> dict[str, Any]:
    """Return everything measured, with the published value beside each AUC."""
    return {
        "table": table.name,
        "title": table.title,
        "cases": [
            {"label": case.label, "published": dict(case.published), **KIND.dump(battery)}
            for case, battery in results
        ],
    }


def reproduction_markdown(table: Table, results: Sequence[tuple[Case, Battery]]) -> str:
    """Return a Markdown table: published and ours side by side."""
    name = table.rate.upper()
    lines = [
        f"**{table.title}**",
        "",
        f"| case | audit | published {name} | our {name} [95 %] | n | unscorable | queries/doc |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows_of(table, results):
        printed = "–" if row.published is None else f"{row.published:.3f}"  # noqa: RUF001
        if row.ours is None:
            lines.append(f"| {row.case} | {row.audit} | {printed} | {row.note} | | | |")
            continue
        lines.append(
            f"| {row.case} | {row.audit} | {printed} | {short_rate(row.ours)} | {row.ours.n}"
            f" | {row.unscorable:.3f} | {row.queries:.3g} |"
        )
    failed = [
        f"{case.label}, {control.name}: {short_rate(control.rate)} ({control.verdict})"
        for case, battery in results
        for control in controls_of(battery)
        if control.fails
    ]
    told = "; ".join(failed) or "none failed"
    return "\n".join([*lines, "", f"Controls: {told}."]) + "\n"


def reproduction_svg(table: Table, results: Sequence[tuple[Case, Battery]]) -> str:
    """Return a figure: our interval as a bar with its estimate, the published value as a ring."""
    rows = [row for row in rows_of(table, results) if row.ours is not None]
    height = _TOP + _ROW * len(rows) + 46
    width = _LEFT + _PLOT + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        f' font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{escape(table.title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#fcfbf8"/>',
        f'<text x="16" y="24" font-size="14" font-weight="600">{escape(table.title)}</text>',
    ]
    bottom = _TOP + _ROW * len(rows)
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = _LEFT + _PLOT * tick
        dash = ' stroke-dasharray="3 3"' if tick == 0.5 else ""
        parts.append(
            f'<path d="M{x:g} {_TOP - 12}V{bottom}" stroke="#c9c5ba"{dash}/>'
            f'<text x="{x:g}" y="{bottom + 16}" text-anchor="middle" fill="#5c5f62">{tick:g}</text>'
        )
    seen = ""
    for index, row in enumerate(rows):
        y = _TOP + _ROW * index
        if row.case != seen:
            parts.append(f'<text x="16" y="{y + 4}" font-weight="600">{escape(row.case)}</text>')
            seen = row.case
        rate = row.ours or Rate(0.0, 0.0, 0.0, 0)
        low, mid, high = (_LEFT + _PLOT * v for v in (rate.low, rate.value, rate.high))
        parts.append(
            f'<text x="{_LEFT - 12}" y="{y + 4}" text-anchor="end">{escape(row.audit)}</text>'
            f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="#17637f" stroke-width="6" opacity=".5"/>'
            f'<path d="M{mid:.1f} {y - 6}V{y + 6}" stroke="#17637f" stroke-width="2"/>'
        )
        if row.published is not None:
            x = _LEFT + _PLOT * row.published
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y}" r="5" fill="none" stroke="#a83a12"'
                ' stroke-width="2"/>'
            )
    parts.append(
        f'<text x="{_LEFT}" y="{bottom + 36}" fill="#5c5f62">{table.rate.upper()}: stroke and bar'
        " ours with 95 % interval, ring published</text></svg>"
    )
    return "\n".join(parts) + "\n"
