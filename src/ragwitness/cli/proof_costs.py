"""``ragwitness reproduce`` for tables that say what a proof costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragwitness.errors import InputError

if TYPE_CHECKING:
    from ragwitness.runs.proof_cost import CostRow, CostTable

__all__ = ["reproduce_costs"]


def reproduce_costs(table: CostTable, out: Path, sizes: str | None, backends: str | None) -> None:
    """Measure what a table has measured, and write it beside the published figures.

    Args:
        table: The table.
        out: Folder of the results; what it holds is not measured again.
        sizes: Documents to measure at instead of the table's, separated by commas.
        backends: Names separated by commas; the first proves every size. All that are installed
            by default.

    Raises:
        InputError: A size or a back end is unusable, or nothing could be measured.
    """
    from ragwitness.cli.common import console
    from ragwitness.runs.proof_cost import cost_rows, measure_all
    from ragwitness.runs.proof_cost.costs import cases_of

    if sizes is not None:
        table = table.small(_numbers(sizes))
    folder = out / table.name
    screen = console()
    names = _backends(backends)
    measured = measure_all(
        cases_of(table, names),
        folder / "cases",
        lambda said: screen.print(said, markup=False, soft_wrap=True),
    )
    rows = cost_rows(table, measured, names)
    if not rows:
        raise InputError(
            f"Nothing of {table.name} could be measured.",
            "Install the prover: pip install 'ragwitness[zk]'.",
        )
    _write(table, rows, folder)


def _backends(text: str | None) -> list[str]:
    from ragwitness.crypto.proofs.groth16.processes import PROGRAMS, available
    from ragwitness.crypto.proofs.groth16.provers import BUILT_IN

    if text is None:
        return [BUILT_IN, *available()]
    names = [name.strip() for name in text.split(",")]
    known = [BUILT_IN, *PROGRAMS]
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"There is no back end {unknown[0]!r}.", f"Known: {', '.join(known)}.")
    return names


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(
            f"--sizes {text!r} is no list of whole numbers.", "Write it like --sizes 64,256."
        ) from error


def _write(table: CostTable, rows: Sequence[CostRow], folder: Path) -> None:
    from ragwitness.cli.reproduced import leave_table
    from ragwitness.report.proof_cost import cost_json, cost_markdown, cost_svg

    leave_table(folder, cost_markdown(table, rows), cost_json(table, rows), cost_svg(table, rows))
