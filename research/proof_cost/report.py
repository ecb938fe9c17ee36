"""What proofs cost beside what was published, as Markdown, JSON and an SVG figure.

A size that was not measured is extrapolated from those that were, and its row says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ragwitness.report.figures import lines_svg
from ragwitness.results.curves import Axis, Line
from ragwitness.results.curves import LinesPanel as Panel
from research.proof_cost.costs import Case, Cost, CostTable, Measured, TableRow


@dataclass(frozen=True, slots=True)
class CostRow:
    """One circuit with one back end at one size.

    Attributes:
        label: Of the circuit.
        backend: What proves.
        documents: Of the index.
        cost: What it takes.
        how: Empty where this size was measured, else from what it was extrapolated.
        model: Constraints, seconds to prove and of the setup that the paper's model gives.
        published: Seconds to prove and of the setup as printed.
    """

    label: str
    backend: str
    documents: int
    cost: Cost
    how: str = ""
    model: tuple[int, float, float] | None = None
    published: tuple[float, float] | None = None


def cost_rows(table: CostTable, measured: Measured, backends: Sequence[str]) -> list[CostRow]:
    """Return the table's rows, circuits in its order.

    Args:
        table: The table.
        measured: What was measured of it.
        backends: The first has a row for every size of the table and every size measured, others
            for what was measured.
    """
    rows = []
    for row in table.rows:
        mine = {case: cost for case, cost in measured.items() if case.circuit == row.circuit}
        for at, backend in enumerate(backends):
            if not any(case.backend == backend for case in mine):
                continue
            found = _of_backend(table, row, mine, backend)
            rows += found if at == 0 else [one for one in found if not one.how]
    return rows


def _of_backend(table: CostTable, row: TableRow, found: Measured, backend: str) -> list[CostRow]:
    proved = {case.documents: (case, cost) for case, cost in found.items()
              if case.backend == backend}  # fmt: skip
    filled = {n: -(-n // table.chunk) * table.chunk if _chunked(table, row, n) else n
              for n in table.sizes}  # fmt: skip
    rows = []
    extra = sorted(set(proved) - set(filled.values()))
    for documents in sorted({*extra, *table.sizes}):
        slots = filled.get(documents, documents)
        if slots in proved:
            cost, how = proved[slots][1], ""
        elif row.circuit == "link":
            cost, how = _by_chunks(proved, documents)
        else:
            cost, how = _by_documents(found, proved, documents)
        at = table.sizes.index(documents) if documents in table.sizes else None
        printed = None
        if at is not None and row.published:
            printed = row.published["prove"][at], row.published["setup"][at]
        model = row.model(documents)
        rows.append(CostRow(row.label, backend, documents, cost, how, model, printed))
    return rows


def _chunked(table: CostTable, row: TableRow, documents: int) -> bool:
    return row.circuit == "link" and documents > table.chunk


def _by_chunks(proved: dict[int, tuple[Case, Cost]], documents: int) -> tuple[Cost, str]:
    """From the largest index that was measured: each further chunk costs what one of its did.

    The setup is that of one chunk.
    """
    case, cost = proved[max(proved)]
    chunks, were = -(-documents // case.slots), case.documents // case.slots
    times = chunks / were

    def more(seconds: float | None) -> float | None:
        return None if seconds is None else seconds * times

    grown = replace(
        cost,
        constraints=cost.constraints // were * chunks,
        window=more(cost.window),
        prove=more(cost.prove),
        verify=more(cost.verify),
        proof=None if cost.proof is None else cost.proof // were * chunks,
        memory=None,
    )
    return grown, f"chunks of {case.slots:,}: {chunks}, each at the mean of {were} measured"


def _by_documents(
    found: Measured, proved: dict[int, tuple[Case, Cost]], documents: int
) -> tuple[Cost, str]:
    """Constraints along the line through the two largest sizes counted; seconds follow them."""
    counted = sorted({case.documents: cost.constraints for case, cost in found.items()}.items())
    last = proved[max(proved)]
    if len(counted) > 1:
        slope = _slope(counted)
        constraints = round(counted[-1][1] + slope * (documents - counted[-1][0]))
    else:
        constraints = round(counted[-1][1] / counted[-1][0] * documents)
    how = f"constraints counted to {counted[-1][0]:,}, proved to {last[0].documents:,} documents"
    return _scaled(last[1], constraints), how


def _scaled(cost: Cost, constraints: int) -> Cost:
    """Seconds in proportion to the constraints; proof and check stay as they are."""
    times = constraints / cost.constraints
    setup = None if cost.setup is None else cost.setup * times
    prove = None if cost.prove is None else cost.prove * times
    return replace(cost, constraints=constraints, setup=setup, prove=prove, memory=None)


def _slope(counted: Sequence[tuple[int, int]]) -> float:
    (few, low), (many, high) = counted[-2:]
    return (high - low) / (many - few)


# Rows as a page, as data and as a figure.

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
