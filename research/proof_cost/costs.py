"""What a proof costs: which circuits a table of a paper asks about, and their measured costs.

Tables are TOML, see ``experiments/collusion``. Each case is measured in a process of its own, so
that its peak memory and CPU time are its own, and is kept in a file: the same table resumes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from ragwitness.errors import InputError, RagwitnessError
from research.reproduce.tables import read_table

if TYPE_CHECKING:
    from research.proof_cost.report import CostRow

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


# The cases of a table, and their costs.

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
_MEASURE = "research.proof_cost.measure"


@dataclass(frozen=True, slots=True)
class Case:
    """What is measured.

    Attributes:
        circuit: What is built.
        backend: What proves, by the name that ``prove --prover`` has for it; ``"none"`` counts
            constraints only.
        documents: Slots of the index.
        slots: Slots that one proof covers; ``documents`` is a multiple of it.
        dimension: Of the vectors.
        top: Winners.
        scale: Bound on the norm of a vector.
        reach: Largest noise.
    """

    circuit: CircuitName
    backend: str
    documents: int
    slots: int
    dimension: int
    top: int
    scale: int
    reach: int

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.circuit}-{self.backend}-{self.documents}"


@dataclass(frozen=True, slots=True)
class Cost:
    """What it takes to prove one answer. Seconds are CPU time on one core.

    Attributes:
        constraints: Of all circuits of one answer.
        setup: Seconds, once per shape, by our own code; other back ends prove with its key.
        window: Seconds, once per index: commitments to its columns.
        prove: Seconds, witness included; None where it was only counted, as are those below.
        verify: Seconds, in pure Python.
        proof: Bytes.
        memory: Largest resident size of the process that sets up and proves, in bytes; None for
            other programs.
    """

    constraints: int
    setup: float | None = None
    window: float | None = None
    prove: float | None = None
    verify: float | None = None
    proof: int | None = None
    memory: int | None = None


Measured: TypeAlias = dict[Case, Cost]


def cases_of(table: CostTable, backends: Sequence[str]) -> list[Case]:
    """Return what a table has measured, the cheapest first.

    Back ends other than the first prove single chunks only: what they are run beside it for is
    the time of one Groth16 proof.
    """
    shape = (table.dimension, table.top, table.scale, table.reach)
    cases = []
    for row in table.rows:
        for wanted in row.measured:
            # The paper's circuits hash the whole index: they have no chunks.
            chunked = row.circuit == "link"
            slots = min(wanted, table.chunk) if chunked else wanted
            documents = -(-wanted // slots) * slots
            for at, backend in enumerate(backends):
                if at == 0 or documents == slots:
                    cases.append(Case(row.circuit, backend, documents, slots, *shape))
        cases += [Case(row.circuit, "none", n, n, *shape) for n in row.counted]
    return sorted(cases, key=lambda case: case.documents)


def measure_all(cases: Sequence[Case], folder: Path, told: Callable[[str], None]) -> Measured:
    """Measure every case that the folder does not hold yet.

    Args:
        cases: What to measure.
        folder: Of one JSON file per case; the same cases resume there.
        told: Is told what is measured next, and what failed: that case is left out.

    Returns:
        What was measured now and before.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found: Measured = {}
    for case in cases:
        path = folder / f"{case.name}.json"
        cost = _stored(path, case)
        if cost is None:
            told(f"measuring {case.circuit}, {case.documents:,} documents, {case.backend}")
            try:
                cost = measure(case)
            except RagwitnessError as error:
                told(f"not measured: {error}")
                continue
            _store(path, case, cost)
        found[case] = cost
    return found


def measure(case: Case) -> Cost:
    """Measure one case in a process of its own.

    Raises:
        InputError: It failed.
    """
    command = [sys.executable, "-m", _MEASURE, json.dumps(asdict(case))]
    # The command line is this interpreter and a module of ours.
    done = subprocess.run(
        command, env=os.environ | _ONE_THREAD, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise InputError(f"{case.name} ended with status {done.returncode}: {last}")
    return Cost(**json.loads(done.stdout))


def _stored(path: Path, case: Case) -> Cost | None:
    """A cost that is of this very case; a file of other settings is measured anew."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Cost(**data["cost"]) if data["case"] == asdict(case) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _store(path: Path, case: Case, cost: Cost) -> None:
    text = json.dumps({"case": asdict(case), "cost": asdict(cost)}, indent=1) + "\n"
    waiting = path.with_suffix(".tmp")
    waiting.write_text(text, encoding="utf-8")
    waiting.replace(path)


# ``ragwitness lab reproduce`` for tables that say what a proof costs.


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
    from research.proof_cost.report import cost_rows

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
    from research.proof_cost.provers import BUILT_IN, PROGRAMS, available

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
    from research.proof_cost.report import cost_json, cost_markdown, cost_svg
    from research.reproduce.files import leave_table

    leave_table(folder, cost_markdown(table, rows), cost_json(table, rows), cost_svg(table, rows))
