"""Run folders as the pages see them; a file that is missing or broken is told, never raised."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ragwitness.asking.budget import Use, uses
from ragwitness.asking.journal import files_of
from ragwitness.errors import RagwitnessError
from ragwitness.kit.run_files import ANSWERS, MANIFEST, RESULT, SPENT, TABLE
from ragwitness.results.kind import Kind
from ragwitness.results.membership import AuditResult
from ragwitness.results.registry import open_result
from ragwitness.results.sheet import Sheet

_SIGNS = (RESULT, ANSWERS, SPENT, MANIFEST, TABLE)
_CACHED = 256


@dataclass(frozen=True, slots=True)
class Run:
    """One run folder.

    Attributes:
        key: Names it in addresses; follows from its path.
        name: Of the folder, for a table behind that of its paper.
        folder: Its path.
        changed: When its newest file was written, seconds since the epoch.
        kind: What it holds; None where there is no result yet, or none that can be read.
        result: What was found; None likewise.
        problem: Why it cannot be read.
    """

    key: str
    name: str
    folder: Path
    changed: float
    kind: Kind[Any, Any] | None = None
    result: Any = None
    problem: str = ""

    @property
    def words(self) -> str:
        """What it holds, for people."""
        if self.kind is not None:
            return self.kind.words
        return "not readable" if self.problem else "not finished"

    @property
    def sheet(self) -> Sheet | None:
        """What a report says of it; None without a result."""
        return None if self.kind is None else self.kind.sheet(self.result)

    @property
    def audit(self) -> AuditResult | None:
        """The result of an audit of documents, which have pages of their own; None for others."""
        return self.result if isinstance(self.result, AuditResult) else None


def find_runs(roots: Sequence[Path]) -> tuple[Run, ...]:
    """Return all runs, the newest first.

    Args:
        roots: Run folders, or folders with run folders in them; reproduced tables are found one
            folder further down, where each paper has its own.
    """
    folders: dict[Path, None] = {}
    for root in roots:
        # A root is a run, or a folder of runs; nothing is searched deeper than a reproduced table
        # lies.
        inside = [root] if _is_run(root) else _inside(root)
        folders |= {folder.absolute(): None for folder in inside}
    runs = [_run(folder) for folder in folders]
    return tuple(sorted(runs, key=lambda run: (-run.changed, run.name)))


def spending_of(run: Run) -> tuple[Use, ...]:
    """Return what each query of a run used, in their order; nothing where that is not known.

    Raises:
        InputError: A record of spending cannot be read.
    """
    return tuple(use for path in files_of(run.folder, SPENT) for use in uses(path))


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
    # The address of a run follows from its path: it stays the same over restarts and shows no path.
    key = hashlib.sha256(str(folder).encode("utf-8", "surrogateescape")).hexdigest()[:10]
    kind, result, problem, changed = None, None, "", 0.0
    try:
        changed = max(entry.stat().st_mtime for entry in [folder, *folder.iterdir()])
        # Reading is cached by time and size of the file: a finished run is parsed once, a new
        # result at once.
        path = next((folder / one for one in (RESULT, TABLE) if (folder / one).exists()), None)
        if path is not None:
            state = path.stat()
            kind, result, problem = _read(folder, state.st_mtime_ns, state.st_size)
    except OSError as error:
        problem = f"{folder}: {error.strerror}."
    paper = f"{folder.parent.name}/" if kind is not None and kind.name == "table" else ""
    return Run(key, paper + folder.name, folder, changed, kind, result, problem)


@lru_cache(maxsize=_CACHED)
def _read(folder: Path, _changed: int, _size: int) -> tuple[Kind[Any, Any] | None, Any, str]:
    """Read a result once for each of its states."""
    try:
        kind, result = open_result(folder)
        kind.sheet(result)  # what cannot be shown is found here
    except RagwitnessError as error:
        return None, None, error.message
    # A file from elsewhere can break a renderer; it breaks its own row in the list and not the
    # list.
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        return None, None, f"It cannot be shown: {type(error).__name__}: {error}."
    return kind, result, ""
