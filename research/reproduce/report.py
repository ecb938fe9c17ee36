"""A paper's table beside ours: Markdown, JSON and an SVG figure."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import escape

from ragwitness.membership.results.evaluation import RESULT_TYPE, Battery, controls_of, short_rate
from ragwitness.stats.rates import Rate
from research.reproduce.tables import RATES, Case, Table

_ROW, _PLOT = 22, 400


@dataclass(frozen=True, slots=True)
class Row:
    """One audit in one case.

    Attributes:
        case: Label of the case.
        audit: Its name, with the variant of the score.
        published: The paper's rates by field; empty where it prints none.
        ours: Our rates by field, with their intervals; empty where the audit has no figure.
        decided_by: What called documents in.
        unscorable: Share of documents without a score.
        queries: Per document.
        note: Why there is no figure.
    """

    case: str
    audit: str
    published: Mapping[str, float]
    ours: Mapping[str, Rate]
    decided_by: str = ""
    unscorable: float = 0.0
    queries: float = 0.0
    note: str = ""


def rows_of(results: Sequence[tuple[Case, Battery]]) -> list[Row]:
    """Return one row per case and audit, in the order of the cases.

    Variants of a score have a row where the paper prints them, and MBA's weighted one always.
    """
    rows = []
    for case, battery in results:
        for one in battery.audits:
            if "/" in one.audit and one.audit not in {*case.published, "mba/weighted"}:
                continue
            printed = case.published.get(one.audit, {})
            measured = {name: getattr(one, name) for name in RATES}
            ours = {name: rate for name, rate in measured.items() if rate is not None}
            share, cost = one.unscorable.value, one.cost.queries
            rows.append(Row(case.label, one.audit, printed, ours, one.decided_by, share, cost))
        for audit, why in battery.skipped.items():
            rows.append(Row(case.label, audit, case.published.get(audit, {}), {}, note=why))
    return rows


def reproduction_json(
    table: Table, results: Sequence[tuple[Case, Battery]], told: Mapping[str, str]
) -> dict[str, Any]:
    """Return everything measured, with what the paper prints.

    Args:
        table: What was run.
        results: Every case with what was found.
        told: The command and the world, for people.
    """
    return {
        "table": table.name,
        "title": table.title,
        **told,
        "differs": list(table.differs),
        "cases": [
            {"label": case.label, "published": dict(case.published), **RESULT_TYPE.dump(battery)}
            for case, battery in results
        ],
    }


def reproduction_markdown(
    table: Table, results: Sequence[tuple[Case, Battery]], told: Mapping[str, str]
) -> str:
    """Return a Markdown table: published and ours side by side, rate by rate.

    Args:
        table: What was run.
        results: Every case with what was found.
        told: The command and the world, for people.
    """
    rows = rows_of(results)
    heads = ["case", "audit", *RATES.values(), "n", "unscorable", "queries/doc"]
    lines = [
        f"**{table.title}**",
        "",
        "Published / ours [95 %]; where the paper prints nothing, ours alone.",
        "",
        f"| {' | '.join(heads)} |",
        "|" + "---|" * len(heads),
    ]
    for row in rows:
        if not row.ours:
            notes = [row.note, *(f"{RATES[k]} {_short(v)}" for k, v in row.published.items())]
            empty = " |" * len(heads[2:])
            lines.append(f"| {row.case} | {row.audit} | {'; published '.join(notes)}{empty}")
            continue
        cells = [_cell(row, name) for name in RATES]
        n = row.ours["auc"].n
        lines.append(
            f"| {row.case} | {row.audit} | {' | '.join(cells)} | {n} | {row.unscorable:.3f}"
            f" | {row.queries:.3g} |"
        )
    decided = [f"| {row.audit} | {row.decided_by} |" for row in rows if row.ours]
    lines += ["", "| audit | called in by |", "|---|---|", *dict.fromkeys(decided)]
    lines += ["", "| what differs from the paper, and what was in use |", "|---|"]
    lines += [f"| {one} |" for one in (*table.differs, *_used(results))]
    for key, value in told.items():
        lines += ["", f"{key.capitalize()}: {value}"]
    failed = [
        f"{case.label}, {control.name}: {short_rate(control.rate)} ({control.verdict})"
        for case, battery in results
        for control in controls_of(battery)
        if control.fails
    ]
    return "\n".join([*lines, "", f"Controls: {'; '.join(failed) or 'none failed'}."]) + "\n"


def _cell(row: Row, name: str) -> str:
    printed, rate = row.published.get(name), row.ours.get(name)
    ours = "\N{EN DASH}" if rate is None else short_rate(rate)
    return ours if printed is None else f"{_short(printed)} / {ours}"


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _used(results: Sequence[tuple[Case, Battery]]) -> list[str]:
    """What was in use, where the paper has its own: models, retrieval, classifiers, sizes."""
    told: dict[str, None] = {}
    for case, battery in results:
        used = battery.settings
        for key in ("generator", "retrieval", "proxy"):
            if key in used:
                told[f"{key}: {used[key]}"] = None
        for key, value in used.items():
            if key.endswith(": audit classifier"):
                told[f"{case.label}, {key}: {value}"] = None
        for one in battery.audits:
            if one.outcomes.get("fallback"):
                told[
                    f"{case.label}, {one.audit}: of {one.outcomes['masks']:.1f} masks a document"
                    f" the model chose all but {one.outcomes['fallback']:.1f}, left to the proxy"
                ] = None
        sizes = battery.sizes
        if "members" in sizes:
            told[
                f"{case.label}: {sizes['members']} + {sizes['non-members']} documents asked about,"
                f" {sizes['indexed']} in the index, {sizes['calibration outside']} outside for"
                f" calibration; shadow documents: {used.get('shadow documents', 'none')}"
            ] = None
    return list(told)


def reproduction_svg(table: Table, results: Sequence[tuple[Case, Battery]]) -> str:
    """Return a figure: our interval as a bar with its estimate, the published value as a ring."""
    rows = [row for row in rows_of(results) if table.rate in row.ours]
    # A bold letter is at most 8 wide, and one of the title 10: no label stands over another.
    cases, audits = [len(row.case) for row in rows], [len(row.audit) for row in rows]
    left = 48 + 8 * (max(cases, default=0) + max(audits, default=0))
    title = textwrap.wrap(table.title, (left + _PLOT) // 10)
    top = 38 + 18 * len(title)
    height, width = top + _ROW * len(rows) + 46, left + _PLOT + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        f' font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{escape(table.title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#fcfbf8"/>',
        *(
            f'<text x="16" y="{24 + 18 * place}" font-size="14" font-weight="600">'
            f"{escape(line)}</text>"
            for place, line in enumerate(title)
        ),
    ]
    bottom = top + _ROW * len(rows)
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = left + _PLOT * tick
        dash = ' stroke-dasharray="3 3"' if tick == 0.5 else ""
        parts.append(
            f'<path d="M{x:g} {top - 12}V{bottom}" stroke="#c9c5ba"{dash}/>'
            f'<text x="{x:g}" y="{bottom + 16}" text-anchor="middle" fill="#5c5f62">{tick:g}</text>'
        )
    seen = ""
    for index, row in enumerate(rows):
        y = top + _ROW * index
        if row.case != seen:
            parts.append(f'<text x="16" y="{y + 4}" font-weight="600">{escape(row.case)}</text>')
            seen = row.case
        rate = row.ours[table.rate]
        low, mid, high = (left + _PLOT * v for v in (rate.low, rate.value, rate.high))
        parts.append(
            f'<text x="{left - 12}" y="{y + 4}" text-anchor="end">{escape(row.audit)}</text>'
            f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="#17637f" stroke-width="6" opacity=".5"/>'
            f'<path d="M{mid:.1f} {y - 6}V{y + 6}" stroke="#17637f" stroke-width="2"/>'
        )
        if table.rate in row.published:
            x = left + _PLOT * row.published[table.rate]
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y}" r="5" fill="none" stroke="#a83a12"'
                ' stroke-width="2"/>'
            )
    parts.append(
        f'<text x="{left}" y="{bottom + 36}" fill="#5c5f62">{RATES[table.rate]}: stroke and bar'
        " ours with 95 % interval, ring published</text></svg>"
    )
    return "\n".join(parts) + "\n"
