"""Run folders as the pages see them; a missing or broken file is a message, not an error."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from ragwitness.core.errors import RagwitnessError
from ragwitness.core.files import at_hand
from ragwitness.core.run_files import ANSWERS, RESULT, SPENT
from ragwitness.core.types import Decision, Verdict
from ragwitness.membership.results.audit import LABELS, AuditResult, documents_table, strength
from ragwitness.report.document import Cell, Column, LazyRows, Name, ReportDocument, Table
from ragwitness.report.result_registry import open_result
from ragwitness.report.result_type import ResultType
from ragwitness.runner.budget import Use, logged_uses
from ragwitness.runner.response_store import files_of
from ragwitness.stats.rates import Rate

_SIGNS = (RESULT, ANSWERS, SPENT)
_BRIEFS, _OPEN = 256, 3  # what is kept of results: what the list says, and results themselves


class OpenedRun:
    """A result with its report and rows for the pages.

    Args:
        kind: Its type.
        result: The result.
    """

    def __init__(self, kind: ResultType[Any, Any], result: Any) -> None:
        self.kind, self.result = kind, result
        self.report: ReportDocument = kind.report(result)

    @cached_property
    def ranked(self) -> tuple[Verdict, ...]:
        """The verdicts of an audit of documents, the most telling first; empty for others."""
        return ranked(self.result) if isinstance(self.result, AuditResult) else ()

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each document stands among them."""
        return {
            verdict.document: position
            for position, verdict in reversed(list(enumerate(self.ranked)))
        }

    @cached_property
    def rows(self) -> Rows:
        """Everything that the result lists."""
        if isinstance(self.result, AuditResult):
            return rows_of_audit(self.result, self.ranked)
        return rows_of_kind(self.kind, self.result)


@dataclass(frozen=True, slots=True)
class Brief:
    """The line of a result in the list of runs, or the reason why it cannot be read."""

    kind: ResultType[Any, Any] | None = None
    problem: str = ""
    method: str = ""
    target: str = ""
    title: str = ""
    queries: int | None = None
    auc: Rate | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One run folder.

    Attributes:
        key: Names it in addresses; follows from its path.
        name: The folder's name.
        folder: Its path.
        changed: When its newest file was written, seconds since the epoch.
        state: Of its result: when it was written, and its size.
        brief: Its line in the list.
    """

    key: str
    name: str
    folder: Path
    changed: float
    state: tuple[int, int] = (0, 0)
    brief: Brief = Brief()

    @property
    def kind(self) -> ResultType[Any, Any] | None:
        """Its type; None where there is no result yet, or none that can be read."""
        return self.brief.kind

    @property
    def problem(self) -> str:
        """Why it cannot be read."""
        return self.brief.problem

    @property
    def words(self) -> str:
        """Its type or state, in words."""
        if self.kind is not None:
            return self.kind.words
        return "not readable" if self.problem else "not finished"

    @property
    def opened(self) -> OpenedRun | None:
        """Its result; None where there is none, or none that can be read."""
        return None if self.kind is None else _opened(self.folder, *self.state)

    @property
    def result(self) -> Any:
        """The result; None likewise."""
        return self.opened.result if self.opened else None

    @property
    def report(self) -> ReportDocument | None:
        """Its report; None likewise."""
        return self.opened.report if self.opened else None

    @property
    def audit(self) -> AuditResult | None:
        """The result of an audit of documents, which have pages of their own; None for others."""
        result = self.result
        return result if isinstance(result, AuditResult) else None


def find_runs(roots: Sequence[Path]) -> tuple[Run, ...]:
    """Return all runs, the newest first.

    Args:
        roots: Run folders, or folders with run folders in them.
    """
    folders: dict[Path, None] = {}
    for root in roots:
        # A root is a run, or a folder of runs; nothing is searched deeper.
        inside = [root] if is_run(root) else _inside(root)
        folders |= {folder.absolute(): None for folder in inside}
    runs = [_run(folder) for folder in folders]
    return tuple(sorted(runs, key=lambda run: (-run.changed, run.name)))


def spending_of(folder: Path) -> tuple[Use, ...]:
    """Return what each query of a run used, in their order; nothing where that is not known.

    Raises:
        InputError: A record of spending cannot be read.
    """
    return tuple(use for path in files_of(folder, SPENT) for use in logged_uses(path))


def _inside(root: Path) -> list[Path]:
    try:
        children = list(root.iterdir())
    except OSError:
        children = []
    return sorted(filter(is_run, children))


def is_run(folder: Path) -> bool:
    """Whether a folder is a run, and no folder of runs."""
    try:
        return folder.is_dir() and any(at_hand(folder / name) for name in _SIGNS)
    except OSError:
        return False


def key_of(folder: Path) -> str:
    """Return the name of a run in addresses, which survives restarts and shows no path."""
    path = str(folder.absolute())
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:10]


def _run(folder: Path) -> Run:
    key = key_of(folder)
    brief, state, changed = Brief(), (0, 0), 0.0
    try:
        changed = max(entry.stat().st_mtime for entry in [folder, *folder.iterdir()])
        # Reading is cached by time and size of the file: a finished run is parsed once, a new
        # result at once.
        path = folder / RESULT
        if path.exists():
            status = path.stat()
            state = (status.st_mtime_ns, status.st_size)
            brief = _brief(folder, *state)
    except OSError as error:
        brief = Brief(problem=f"{folder}: {error.strerror}.")
    return Run(key, folder.name, folder, changed, state, brief)


@lru_cache(maxsize=_BRIEFS)
def _brief(folder: Path, changed: int, size: int) -> Brief:
    """Read a result once for each of its states."""
    try:
        opened = _opened(folder, changed, size)
    except RagwitnessError as error:
        return Brief(problem=error.message)
    # A file from elsewhere can break a renderer; it breaks its own row in the list and not the
    # list.
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        return Brief(problem=f"It cannot be shown: {type(error).__name__}: {error}.")
    report, result = opened.report, opened.result
    evaluation = result.evaluation if isinstance(result, AuditResult) else None
    auc = evaluation.auc if evaluation else None
    named = (report.method, report.target, report.title, report.queries, auc)
    return Brief(opened.kind, "", *named)


@lru_cache(maxsize=_OPEN)
def _opened(folder: Path, _changed: int, _size: int) -> OpenedRun:
    return OpenedRun(*open_result(folder))


# All rows of a run, page by page: searched, and narrowed to a group, by links and a form.

PAGE = 50
"""Rows on a page."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that can be listed, in the order of a report.

    Attributes:
        noun: The noun for a row.
        items: The rows.
        text: Returns the text of a row that is searched.
        table: Returns the table of some rows.
        groups: Labels of the groups by name.
        group: Returns the name of a row's group; None without groups.
    """

    noun: str
    items: Sequence[Any]
    text: Callable[[Any], str]
    table: Callable[[Sequence[Any]], Table]
    groups: Mapping[str, str] = field(default_factory=dict)
    group: Callable[[Any], str] | None = None


@dataclass(frozen=True, slots=True)
class RowsPage:
    """One page of rows, with the number of all rows and of those that match."""

    rows: Rows
    table: Table
    matches: int
    page: int
    pages: int
    chosen: Mapping[str, str]

    def link(self, page: int) -> str:
        """Return the query of another page of the same rows."""
        parameters = {name: value for name, value in self.chosen.items() if value}
        return "?" + urlencode({**parameters, "page": page}, errors="surrogatepass")


def listed(rows: Rows, parameters: Mapping[str, str]) -> RowsPage:
    """Return the page that the parameters of an address ask for; unknown ones are ignored.

    Args:
        rows: All rows.
        parameters: ``search``, ``group`` and ``page``.
    """
    search, group = parameters.get("search", "").strip()[:200], parameters.get("group", "")
    group = group if group in rows.groups else ""
    # 1. The rows that match.
    matches, needle = rows.items, search.casefold()
    if group and rows.group is not None:
        matches = [item for item in matches if rows.group(item) == group]
    if needle:
        matches = [item for item in matches if needle in rows.text(item).casefold()]
    # 2. One page of them; a number beyond the ends is taken back to them.
    pages = max(1, -(-len(matches) // PAGE))
    number = parameters.get("page", "")
    page = min(max(1, int(number) if number.isdecimal() and len(number) < 9 else 1), pages)
    table = rows.table(matches[PAGE * (page - 1) : PAGE * page])
    return RowsPage(rows, table, len(matches), page, pages, {"search": search, "group": group})


def rows_of_audit(result: AuditResult, ranked: Sequence[Verdict]) -> Rows:
    """Return the documents of an audit, in the order of ``ranked``."""
    return Rows(
        "document",
        ranked,
        lambda verdict: str(verdict.document),
        lambda some: documents_table(result, some, "Documents", decided=True),
        {
            decision.value: LABELS[decision]
            for decision in (Decision.IN, Decision.INCONCLUSIVE, Decision.OUT)
        },
        lambda verdict: str(verdict.decision.value),
    )


def rows_of_kind(kind: ResultType[Any, Any], result: Any) -> Rows:
    """Return the rows of a result of any kind, as ``--jsonl`` writes them."""
    # Nested columns do not fit into a cell, and are left out.
    plain = [name for name, type_ in kind.columns.items() if isinstance(type_, type)]
    columns = tuple(
        Column(name.replace("_", " "), "text" if kind.columns[name] in (str, bool) else "value")
        for name in plain
    )
    columns = (Column(columns[0].name, "name"), *columns[1:])

    def cells(row: Mapping[str, Any]) -> tuple[Cell, ...]:
        return (Name(str(row[plain[0]])), *(row.get(name) for name in plain[1:]))

    return Rows(
        "row",
        kind.rows(result),
        lambda row: " ".join(str(row.get(name)) for name in plain if row.get(name) is not None),
        lambda some: Table("Rows", columns, LazyRows(some, cells), "plain-rows"),
    )


def rows_of_responses(stages: Mapping[str, Mapping[str, int]]) -> Rows:
    """Return the documents of a response store with their answers, by stage."""
    columns = (Column("Document", "name"), Column("Stage", "text"), Column("Answers", "value"))
    # Queries about no document, such as those of a check, are left out.
    items = [
        (name, stage, count)
        for stage, documents in stages.items()
        for name, count in documents.items()
        if name
    ]
    return Rows(
        "document",
        items,
        lambda item: str(item[0]),
        lambda some: Table("Documents", columns, LazyRows(some, _asked), "documents"),
        {stage: stage for stage in stages},
        lambda item: str(item[1]),
    )


def _asked(item: tuple[str, str, int]) -> tuple[Cell, ...]:
    name, stage, count = item
    return Name(name, document=name), stage, count


def ranked(result: AuditResult) -> tuple[Verdict, ...]:
    """Return the verdicts of an audit, the strongest evidence first."""
    return tuple(sorted(result.verdicts, key=strength))
