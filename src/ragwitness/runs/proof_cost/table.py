"""Tables of a paper that say what a proof costs, as TOML; see ``experiments/collusion``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from ragwitness.errors import InputError
from ragwitness.runs.tables import read_table

__all__ = ["CircuitName", "CostTable", "TableRow", "load_cost_table"]

CircuitName: TypeAlias = Literal["link", "paper", "naive"]

_MODEL = 2e-6  # seconds for a constraint, section 5.8


@dataclass(frozen=True, slots=True)
class TableRow:
    """One circuit.

    Attributes:
        label: Its name in the paper or ours.
        circuit: What is built.
        measured: Documents at which it is set up, proved and verified; above the table's chunk,
            whole chunks.
        counted: Documents at which its constraints alone are counted.
        published: Seconds to ``"prove"`` and for ``"setup"``, one per size of the table.
        rebuilt: Constraints for a ``"document"``, and ``"once"``, by which the paper's seconds
            can be had back.
    """

    label: str
    circuit: CircuitName
    measured: tuple[int, ...]
    counted: tuple[int, ...] = ()
    published: Mapping[str, Sequence[float]] = field(default_factory=dict)
    rebuilt: Mapping[str, int] = field(default_factory=dict)

    def model(self, documents: int) -> tuple[int, float, float] | None:
        """Return the paper's constraints, seconds to prove and of the setup, if it has a model."""
        if not self.rebuilt:
            return None
        constraints = self.rebuilt["document"] * documents + self.rebuilt.get("once", 0)
        prove = _MODEL * constraints
        return constraints, prove, prove / 2  # "on the order of half the proving cost"


@dataclass(frozen=True, slots=True)
class CostTable:
    """One table.

    Attributes:
        name: ``paper/table``.
        title: What it shows, and under which conditions it was published.
        sizes: Documents, ascending.
        dimension: Of the vectors.
        top: Winners.
        scale: Bound on the norm of a vector.
        reach: Largest noise.
        chunk: Most slots that one proof covers.
        rows: The circuits.
        note: What a reader must know.
    """

    name: str
    title: str
    sizes: tuple[int, ...]
    dimension: int
    top: int
    scale: int
    reach: int
    chunk: int
    rows: tuple[TableRow, ...]
    note: str = ""

    def small(self, documents: Sequence[int]) -> CostTable:
        """Return the table with every circuit measured at these sizes; counts stay.

        Raises:
            InputError: There are none, or one is outside 1 to the chunk.
        """
        chosen = tuple(sorted(set(documents)))
        if not chosen or chosen[0] <= self.top or chosen[-1] > self.chunk:
            raise InputError(
                f"A proof is measured at more than {self.top} documents and at most {self.chunk:,}."
            )
        rows = (replace(row, measured=chosen) for row in self.rows)
        return replace(self, rows=tuple(rows))


def load_cost_table(name: str, folder: Path) -> CostTable:
    """Return a table by its name.

    Args:
        name: ``paper/table``, e.g. ``"collusion/table1"``.
        folder: Holds ``paper/tables.toml``.

    Raises:
        InputError: There is no such table, or it is malformed.
    """
    data = read_table(name, folder)
    try:
        own: dict[str, Any] = {k: v for k, v in data.items() if k not in ("kind", "row", "sizes")}
        rows = tuple(_row(row) for row in data["row"])
        table = CostTable(name=name, rows=rows, sizes=tuple(sorted(data["sizes"])), **own)
        for row in rows:
            if any(len(cells) != len(table.sizes) for cells in row.published.values()):
                raise ValueError(f"{row.label} is not published at every size")
        return table
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"The table {name!r} is malformed: {error}.") from error


def _row(data: dict[str, Any]) -> TableRow:
    if data["circuit"] not in get_args(CircuitName):
        raise ValueError(f"there is no circuit {data['circuit']!r}")
    sizes = {name: tuple(data.get(name, ())) for name in ("measured", "counted")}
    return TableRow(**data | sizes)
