"""Run folders as the pages see them; a file that is missing or broken is told, never raised."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ragwitness.errors import InputError, RagwitnessError
from ragwitness.runs.budget import Use
from ragwitness.runs.ledger import LEDGER, uses
from ragwitness.runs.result import AuditResult
from ragwitness.runs.transcript import JOURNAL, files_of
from ragwitness.web.results import CanaryProbe, Collection, Kind, Making, Result, parsed
from ragwitness.web.tables import TABLE, Reproduced, read_reproduced

if TYPE_CHECKING:
    from ragwitness.runs.battery import Battery
    from ragwitness.runs.comparison import Comparison
    from ragwitness.runs.leak_score import LeakResult

__all__ = ["Run", "find_runs", "spending_of"]

RESULT = "result.json"
_SIGNS = (RESULT, JOURNAL, LEDGER, "manifest.json", TABLE)
_CACHED = 256


@dataclass(frozen=True, slots=True)
class Run:
    """One run folder.

    Attributes:
        key: Names it in addresses; follows from its path.
        name: Of the folder, for a table behind that of its paper.
        folder: Its path.
        kind: What it holds.
        changed: When its newest file was written, seconds since the epoch.
        result: What was found; None where there is none yet, or none that can be read.
        problem: Why it cannot be read.
    """

    key: str
    name: str
    folder: Path
    kind: Kind
    changed: float
    result: Result | None = None
    problem: str = ""

    @property
    def audit(self) -> AuditResult | None:
        """The result of an audit; None for other runs."""
        return self.result if isinstance(self.result, AuditResult) else None

    @property
    def collection(self) -> Collection | None:
        """The result about a collection; None for other runs."""
        return self.result if isinstance(self.result, Collection) else None

    @property
    def battery(self) -> Battery | None:
        """The evaluation; None for other runs."""
        # Its class brings the machinery of evaluations, which no other page needs.
        return cast("Battery", self.result) if self.kind is Kind.EVALUATION else None

    @property
    def leak(self) -> LeakResult | None:
        """The leak measurement; None for other runs."""
        return cast("LeakResult", self.result) if self.kind is Kind.LEAK else None

    @property
    def comparison(self) -> Comparison | None:
        """What may stand in a corpus's place, side by side; None for other runs."""
        return cast("Comparison", self.result) if self.kind is Kind.COMPARISON else None

    @property
    def making(self) -> Making | None:
        """What became of the records that synthetic data was made from; None for other runs."""
        return self.result if isinstance(self.result, Making) else None

    @property
    def canary(self) -> CanaryProbe | None:
        """What a probe of canaries says; None for other runs."""
        return self.result if isinstance(self.result, CanaryProbe) else None

    @property
    def table(self) -> Reproduced | None:
        """A reproduced table; None for other runs."""
        return self.result if isinstance(self.result, Reproduced) else None


def find_runs(roots: Sequence[Path]) -> tuple[Run, ...]:
    """Return all runs, the newest first.

    Args:
        roots: Run folders, or folders with run folders in them; reproduced tables are found one
            folder further down, where each paper has its own.
    """
    folders: dict[Path, None] = {}
    for root in roots:
        inside = [root] if _is_run(root) else _inside(root)
        folders |= {folder.absolute(): None for folder in inside}
    runs = [_run(folder) for folder in folders]
    return tuple(sorted(runs, key=lambda run: (-run.changed, run.name)))


def spending_of(run: Run) -> tuple[Use, ...]:
    """Return what each query of a run used, in their order; nothing where that is not known.

    Raises:
        InputError: A record of spending cannot be read.
    """
    return tuple(use for path in files_of(run.folder, LEDGER) for use in uses(path))


def _inside(root: Path) -> list[Path]:
    children = _children(root)
    tables = [path.parent for path in root.glob(f"*/*/{TABLE}")]
    return sorted({*filter(_is_run, children), *tables})


def _children(root: Path) -> list[Path]:
    try:
        return list(root.iterdir())
    except OSError:
        return []


def _is_run(folder: Path) -> bool:
    try:
        return folder.is_dir() and any((folder / name).exists() for name in _SIGNS)
    except OSError:
        return False


def _run(folder: Path) -> Run:
    key = hashlib.sha256(str(folder).encode("utf-8", "surrogateescape")).hexdigest()[:10]
    kind, result, problem = Kind.UNFINISHED, None, ""
    try:
        changed = max(entry.stat().st_mtime for entry in [folder, *folder.iterdir()])
        path = folder / RESULT
        if path.exists():
            state = path.stat()
            kind, result, problem = _read(path, state.st_mtime_ns, state.st_size)
        elif (folder / TABLE).exists():
            kind, result, problem = _read_table(folder)
    except OSError as error:
        kind, problem, changed = Kind.BROKEN, f"{folder}: {error.strerror}.", 0.0
    paper = f"{folder.parent.name}/" if kind is Kind.TABLE else ""
    return Run(key, paper + folder.name, folder, kind, changed, result, problem)


def _read_table(folder: Path) -> tuple[Kind, Result | None, str]:
    try:
        return Kind.TABLE, read_reproduced(folder), ""
    except InputError as error:
        return Kind.BROKEN, None, error.message


@lru_cache(maxsize=_CACHED)
def _read(path: Path, _changed: int, _size: int) -> tuple[Kind, Result | None, str]:
    """Read a result once for each of its states."""
    try:
        data = json.loads(path.read_bytes())
        if not isinstance(data, dict):
            raise InputError(f"{path} holds no result.")
        kind, result = parsed(data)
    except RagwitnessError as error:
        return Kind.BROKEN, None, error.message
    except (OSError, ValueError, RecursionError) as error:
        return Kind.BROKEN, None, f"{path.name} is not JSON, or not whole: {error}."
    return kind, result, ""
