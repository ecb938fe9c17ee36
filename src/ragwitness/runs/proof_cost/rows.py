"""A table's rows from what was measured: what was not is extrapolated, and says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragwitness.runs.proof_cost.costs import Case, Cost, Measured
from ragwitness.runs.proof_cost.table import CostTable, TableRow

__all__ = ["CostRow", "cost_rows"]


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
