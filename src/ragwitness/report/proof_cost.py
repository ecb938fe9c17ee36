"""What proofs cost beside what was published: Markdown, JSON and an SVG figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ragwitness.report.lines import Axis, Line, Panel, lines_svg
from ragwitness.runs.proof_cost import CostRow, CostTable

__all__ = ["cost_json", "cost_markdown", "cost_svg"]

_NONE = "\N{EN DASH}"


def cost_json(table: CostTable, rows: Sequence[CostRow]) -> dict[str, Any]:
    """Return every row in full."""
    settings = {name: getattr(table, name) for name in ("dimension", "top", "scale", "reach")}
    return {
        "table": table.name,
        "title": table.title,
        **settings,
        "chunk": table.chunk,
        "rows": [asdict(row) for row in rows],
    }


def cost_markdown(table: CostTable, rows: Sequence[CostRow]) -> str:
    """Return a Markdown table: published and ours side by side, extrapolated figures marked."""
    lines = [
        f"**{table.title}**",
        "",
        "| circuit | back end | documents | constraints | published prove / setup, s | setup, s"
        " | columns, s | prove, s | verify, s | proof, bytes | memory, MB |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    notes: dict[str, int] = {}
    for row in rows:
        mark = f" [{notes.setdefault(row.how, len(notes) + 1)}]" if row.how else ""
        cost = row.cost
        memory = None if cost.memory is None else cost.memory / 2**20
        cells = (
            row.label,
            row.backend,
            f"{row.documents:,}{mark}",
            f"{cost.constraints:,}{_model(row)}",
            _published(row),
            _seconds(cost.setup),
            _seconds(cost.window),
            _seconds(cost.prove),
            _seconds(cost.verify),
            _NONE if cost.proof is None else f"{cost.proof:,}",
            _NONE if memory is None else f"{memory:,.0f}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    told = [
        f"{table.dimension} dimensions, top {table.top}, scale {table.scale}, noise up to"
        f" {table.reach:,}. Seconds are CPU time on one core, each from one run; memory is the"
        " largest resident size of the process. In brackets: the constraints of the paper's model."
        " Back ends behind the first prove the circuit alone, with the first one's key."
    ]
    told += [f"[{number}] extrapolated: {how}." for how, number in notes.items()]
    told += [table.note] if table.note else []
    return "\n\n".join(["\n".join(lines), *told]) + "\n"


def cost_svg(table: CostTable, rows: Sequence[CostRow]) -> str:
    """Return two panels over the documents: seconds to prove, and constraints.

    Measured points are marks, what is extrapolated a dashed line, the paper's model a solid one.
    Seconds are those of the first back end; the table has the others.
    """
    seconds, constraints = [], []
    for colour, label in enumerate(dict.fromkeys(row.label for row in rows)):
        mine = [row for row in rows if row.label == label]
        mine = [row for row in mine if row.backend == mine[0].backend]
        seconds += _curve(label, [(r, r.cost.prove) for r in mine], colour)
        constraints += _curve(label, [(r, r.cost.constraints) for r in mine], colour)
        if any(row.model for row in mine):
            name = f"{label}: published"
            model = {r.documents: r.model for r in mine if r.model}
            seconds.append(_line(name, {n: m[1] for n, m in model.items()}, colour))
            constraints.append(_line(name, {n: float(m[0]) for n, m in model.items()}, colour))
    x = Axis("documents", log=True)
    panels = [
        Panel("proving one answer", x, Axis("CPU seconds", log=True), tuple(seconds)),
        Panel("size of the circuit", x, Axis("constraints", log=True), tuple(constraints)),
    ]
    return lines_svg(table.title, panels)


def _curve(name: str, points: Sequence[tuple[CostRow, float | None]], colour: int) -> list[Line]:
    """Marks where it was measured, a dashed line through all points."""
    known = {row.documents: float(value) for row, value in points if value}
    measured = {row.documents for row, _ in points if not row.how}
    marks = tuple((float(n), value) for n, value in known.items() if n in measured)
    line = _line(name + ", extrapolated", known, colour, dashed=True)
    return [one for one in (Line(name, marks, colour, marks=True), line) if one.points]


def _line(name: str, values: dict[int, float], colour: int, dashed: bool = False) -> Line:
    points = tuple((float(n), value) for n, value in sorted(values.items()))
    return Line(name, points, colour, dashed=dashed)


def _published(row: CostRow) -> str:
    if row.published is None:
        return _NONE
    prove, setup = row.published
    return f"{prove:g} / {setup:g}"


def _model(row: CostRow) -> str:
    return "" if row.model is None else f" ({row.model[0]:,})"


def _seconds(value: float | None) -> str:
    if value is None:
        return _NONE
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
