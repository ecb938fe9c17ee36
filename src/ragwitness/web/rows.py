"""All rows of a run, page by page: searched, sorted and narrowed to a group by links and a form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from ragwitness.core.types import Decision, Verdict
from ragwitness.membership.results.audit import LABELS, AuditResult, documents_table, strength
from ragwitness.report.document import Cell, Column, LazyRows, Name, Table
from ragwitness.report.result_type import ResultType

PAGE = 50
"""Rows on a page."""

_LAST = (1, 0.0)  # after every number: what has none


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that can be listed, in the order of a report; what of each is searched and sorted by.

    The first of ``sorts`` is that order itself; ``groups`` are labels by name.
    """

    what: str
    items: Sequence[Any]
    text: Callable[[Any], str]
    table: Callable[[Sequence[Any]], Table]
    sorts: Mapping[str, Callable[[Any], Any] | None]
    groups: Mapping[str, str] = field(default_factory=dict)
    group: Callable[[Any], str] | None = None


@dataclass(frozen=True, slots=True)
class RowsPage:
    """One page of rows: how many there are in all, how many fit, and what was asked for."""

    rows: Rows
    table: Table
    total: int
    found: int
    page: int
    pages: int
    chosen: Mapping[str, str]

    def link(self, page: int) -> str:
        """Return the query of another page of the same rows."""
        kept = {name: value for name, value in self.chosen.items() if value}
        return "?" + urlencode({**kept, "page": page}, errors="surrogatepass")


def listed(rows: Rows, given: Mapping[str, str]) -> RowsPage:
    """Return the page that the parameters of an address ask for; what is not known is ignored.

    Args:
        rows: What is listed.
        given: ``search``, ``group``, ``sort`` (with a minus sign downwards) and ``page``.
    """
    search, group = given.get("search", "").strip()[:200], given.get("group", "")
    order = given.get("sort", "")
    first = next(iter(rows.sorts))
    group = group if group in rows.groups else ""
    order = order if order.removeprefix("-") in rows.sorts else first
    # 1. Those that fit.
    found, wanted = rows.items, search.casefold()
    if group and rows.group is not None:
        found = [one for one in found if rows.group(one) == group]
    if wanted:
        found = [one for one in found if wanted in rows.text(one).casefold()]
    # 2. In order; equal ones stay in the order of the report.
    key = rows.sorts[order.removeprefix("-")]
    if key is not None:
        found = sorted(found, key=key, reverse=order.startswith("-"))
        found.sort(key=lambda one: key(one) == _LAST)  # what has no number comes last either way
    elif order.startswith("-"):
        found = found[::-1]
    # 3. One page of them; a number beyond the ends is taken back to them.
    pages = max(1, -(-len(found) // PAGE))
    number = given.get("page", "")
    page = min(max(1, int(number) if number.isdecimal() and len(number) < 9 else 1), pages)
    shown = rows.table(found[PAGE * (page - 1) : PAGE * page])
    chosen = {"search": search, "group": group, "sort": order if order != first else ""}
    return RowsPage(rows, shown, len(rows.items), len(found), page, pages, chosen)


def rows_of_audit(result: AuditResult, ranked: Sequence[Verdict]) -> Rows:
    """Return the documents of an audit, in the order of ``ranked``."""
    fields: dict[str, Callable[[Verdict], float | None]] = {
        "p": lambda one: one.p_value,
        "p if inside": lambda one: one.p_out,
        "score": lambda one: one.score,
        "queries": lambda one: one.queries,
    }
    sorts: dict[str, Callable[[Any], Any] | None] = {"evidence": None, "document": _document}
    sorts |= {name: _number(field) for name, field in fields.items()}
    return Rows(
        "document",
        ranked,
        _document,
        lambda some: documents_table(result, some, "Documents", decided=True),
        sorts,
        {one.value: LABELS[one] for one in (Decision.IN, Decision.INCONCLUSIVE, Decision.OUT)},
        lambda one: str(one.decision.value),
    )


def rows_of_kind(kind: ResultType[Any, Any], result: Any) -> Rows:
    """Return the rows of a result of any kind, as ``--jsonl`` writes them."""
    plain = [name for name, type_ in kind.columns.items() if isinstance(type_, type)]
    columns = tuple(
        Column(name.replace("_", " "), "text" if kind.columns[name] in (str, bool) else "value")
        for name in plain
    )
    columns = (Column(columns[0].name, "name"), *columns[1:])
    sorts: dict[str, Callable[[Any], Any] | None] = {"report": None}
    sorts |= {name: _field(name, text=kind.columns[name] is str) for name in plain}

    def cells(row: Mapping[str, Any]) -> tuple[Cell, ...]:
        return (Name(str(row[plain[0]])), *(row.get(name) for name in plain[1:]))

    return Rows(
        "row",
        kind.rows(result),
        lambda row: " ".join(str(row.get(name)) for name in plain if row.get(name) is not None),
        lambda some: Table("Rows", columns, LazyRows(some, cells), "plain-rows"),
        sorts,
    )


def rows_of_journal(stages: Mapping[str, Mapping[str, int]]) -> Rows:
    """Return the documents that a journal speaks of, with their answers, by stage."""
    columns = (Column("Document", "name"), Column("Stage", "text"), Column("Answers", "value"))
    items = [
        (name, stage, count)
        for stage, documents in stages.items()
        for name, count in documents.items()
        if name
    ]
    return Rows(
        "document",
        items,
        lambda one: one[0],
        lambda some: Table("Documents", columns, LazyRows(some, _asked), "documents"),
        {"arrival": None, "document": lambda one: one[0], "answers": lambda one: one[2]},
        {stage: stage for stage in stages},
        lambda one: str(one[1]),
    )


def _asked(one: tuple[str, str, int]) -> tuple[Cell, ...]:
    return (Name(one[0], document=one[0]), one[1], one[2])


def ranked(result: AuditResult) -> tuple[Verdict, ...]:
    """Return the verdicts of an audit, the most telling first."""
    return tuple(sorted(result.verdicts, key=strength))


def _document(one: Verdict) -> str:
    return one.document


def _number(field: Callable[[Any], float | None]) -> Callable[[Any], tuple[int, float]]:
    def key(one: Any) -> tuple[int, float]:
        value = field(one)
        return (0, value) if value is not None and value == value else _LAST

    return key


def _field(name: str, *, text: bool) -> Callable[[Any], Any]:
    if text:
        return lambda row: str(row.get(name) or "")
    return _number(lambda row: row.get(name))
