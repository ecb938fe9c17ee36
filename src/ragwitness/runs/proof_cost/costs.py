"""Costs, one process per case: its peak memory and CPU time are its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

from ragwitness.errors import InputError, RagwitnessError
from ragwitness.runs.proof_cost.table import CircuitName, CostTable

__all__ = ["Case", "Cost", "Measured", "cases_of", "measure_all"]

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
_MEASURE = "ragwitness.runs.proof_cost.measure"


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
    done = subprocess.run(  # noqa: S603
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
