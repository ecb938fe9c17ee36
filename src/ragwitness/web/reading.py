"""Run folders as the pages see them; a file that is missing or broken is told, never raised."""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ragwitness.errors import InputError, RagwitnessError
from ragwitness.report.jsonout import from_json
from ragwitness.runs.budget import Use
from ragwitness.runs.ledger import LEDGER, uses
from ragwitness.runs.result import AuditResult
from ragwitness.runs.transcript import JOURNAL, files_of

if TYPE_CHECKING:
    from ragwitness.runs.battery import Battery

__all__ = ["Collection", "Kind", "Run", "find_runs", "spending_of"]

RESULT = "result.json"
_SIGNS = (RESULT, JOURNAL, LEDGER, "manifest.json")
_CACHED = 256


class Kind(enum.StrEnum):
    """What a run folder holds; the value is what it is called."""

    AUDIT = "audit"
    COLLECTION = "collection"
    EVALUATION = "evaluation"
    UNFINISHED = "not finished"
    BROKEN = "not readable"


@dataclass(frozen=True, slots=True)
class Collection:
    """The result of ``ragwitness owner``.

    Attributes:
        method: Name of the audit.
        target: Name of the system.
        alpha: Level.
        decided: Whether "the collection is like documents outside" is refused.
        log10_e: Decimal logarithm of the e-value.
        p_value: Anytime-valid.
        documents_asked: Until it was decided.
        documents: In the collection.
        known_out: Scored documents known to be outside.
        unscorable: Documents left out.
        queries: Calibration included.
        seconds: Wall time.
        path: log10 of the e-value after each scored document.
        permutation_p_value: Over all documents; None after an early stop.
    """

    method: str
    target: str
    alpha: float
    decided: bool
    log10_e: float
    p_value: float
    documents_asked: int
    documents: int
    known_out: int
    unscorable: int
    queries: int
    seconds: float
    path: tuple[float, ...]
    permutation_p_value: float | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One run folder.

    Attributes:
        key: Names it in addresses; follows from its path.
        name: Of the folder.
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
    result: AuditResult | Battery | Collection | None = None
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


def find_runs(roots: Sequence[Path]) -> tuple[Run, ...]:
    """Return all runs, the newest first.

    Args:
        roots: Run folders, or folders with run folders in them.
    """
    folders: dict[Path, None] = {}
    for root in roots:
        inside = [root] if _is_run(root) else sorted(filter(_is_run, _children(root)))
        folders |= {folder.absolute(): None for folder in inside}
    runs = [_run(folder) for folder in folders]
    return tuple(sorted(runs, key=lambda run: (-run.changed, run.name)))


def spending_of(run: Run) -> tuple[Use, ...]:
    """Return what each query of a run used, in their order; nothing where that is not known.

    Raises:
        InputError: A record of spending cannot be read.
    """
    return tuple(use for path in files_of(run.folder, LEDGER) for use in uses(path))


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
    except OSError as error:
        kind, problem, changed = Kind.BROKEN, f"{folder}: {error.strerror}.", 0.0
    return Run(key, folder.name, folder, kind, changed, result, problem)


@lru_cache(maxsize=_CACHED)
def _read(
    path: Path, _changed: int, _size: int
) -> tuple[Kind, AuditResult | Battery | Collection | None, str]:
    """Read a result once for each of its states."""
    try:
        data = json.loads(path.read_bytes())
        if not isinstance(data, dict):
            raise InputError(f"{path} holds no result.")
        kind, result = _parsed(data)
    except RagwitnessError as error:
        return Kind.BROKEN, None, error.message
    except (OSError, ValueError, RecursionError) as error:
        return Kind.BROKEN, None, f"{path.name} is not JSON, or not whole: {error}."
    return kind, result, ""


def _parsed(data: Mapping[str, Any]) -> tuple[Kind, AuditResult | Battery | Collection]:
    if data.get("kind") == "leak":
        raise InputError("A leak measurement has a page of its own: report.html in its folder.")
    if "audits" in data:
        from ragwitness.report.stored import battery_from_json

        return Kind.EVALUATION, battery_from_json(data)
    if "summary" not in data and "log10_e" in data:
        return Kind.COLLECTION, _collection(data)
    return Kind.AUDIT, from_json(data)


def _collection(data: Mapping[str, Any]) -> Collection:
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(Collection).validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"The stored result is malformed at {where}: {first['msg']}.") from error
