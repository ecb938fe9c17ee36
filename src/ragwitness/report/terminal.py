"""A report in a terminal: complete without colour, at 80 columns and through a pipe."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ragwitness.report import formatting as fmt
from ragwitness.report.document import (
    Cell,
    Column,
    Mark,
    Name,
    Paragraph,
    ReportDocument,
    Section,
    Style,
    Table,
    Words,
)

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table as RichTable
    from rich.text import Text

    from ragwitness.stats.rates import Rate

_LEFT_OUT, _NAMED = 40, 1  # files and rows that are named: all, and in a short report
_WORDS = 2  # of evidence beside a document
_WORDY = 28  # columns that evidence takes at least
_COLOURS: dict[Style, str] = {"": "", "in": "bold red", "out": "cyan", "inconclusive": "yellow"}


def terminal(
    report: ReportDocument, *, where: str = "", width: int = 80, verbose: bool = False
) -> Group:
    """Return a rich renderable: what was found, the tables, what limits it, what is claimed.

    Where a page has the rest, some ten lines follow the tables: grounds, a warning and a claim.

    Args:
        report: The report.
        where: Names the place of everything that is left out, e.g. the path of the page; empty
            where there is none.
        width: Columns of the terminal.
        verbose: Whether all settings, warnings and files are shown, and sections without a page.
    """
    from rich.console import Group
    from rich.text import Text

    # Pass 1: what was found.
    title = Text(f"Ragwitness: {report.kind}\n", style="dim", overflow="fold")
    title.append(fmt.visible(report.title), style="not dim bold")
    elements: list[RenderableType] = [title]
    if report.sentence:
        elements.append(Text(fmt.visible(report.sentence, 1000), overflow="fold"))
    # Pass 2: the sections, with the columns that have a short heading.
    left_out = "terminal" if verbose and not where else "page"
    for section in report.sections:
        if section.only != left_out:
            elements += _section(section, where, width)
    # Pass 3: what it rests on, and what limits it.
    limits = _limits(report, where, verbose or not where)
    elements += [Text(), limits] if limits else []
    # Pass 4: the first claim, however short the terminal.
    lines = [*report.closing, *report.claimed[:1]]
    if verbose:
        lines += [*report.claimed[1:], *(f"Not claimed: {line}" for line in report.not_claimed)]
    elements += [Text(fmt.visible(line, 2000), style="dim") for line in lines]
    return Group(*elements)


def _limits(report: ReportDocument, where: str, every: bool) -> Text:
    from rich.text import Text

    body = Text(overflow="fold")
    rows, warnings = report.brief or report.facts, report.warnings
    if where and every:
        rows = (*report.facts, *report.rests_on, *report.settings)
    for label, value in rows:
        if value:
            body.append(f"{fmt.visible(label)}: " if label else "", style="dim")
            body.append(f"{fmt.visible(value, 1000)}\n")
    for warning in warnings if every else warnings[:1]:
        body.append("warning: ", style="bold yellow")
        body.append(f"{fmt.visible(warning, 1000)}\n")
    if not every and (more := len(warnings) - 1) > 0:
        body.append(f"{fmt.count(more)} more warning{'s' * (more > 1)} in {where}\n")
    if report.left_out:
        body.append("left out: ", style="bold yellow")
        body.append(f"{fmt.left_out(report.left_out)}\n")
        for item in report.left_out[: _LEFT_OUT if every else _NAMED]:
            body.append(f"  {fmt.visible(item.name)}: {fmt.visible(item.why)}\n")
        if (more := len(report.left_out) - (_LEFT_OUT if every else _NAMED)) > 0:
            body.append(f"  and {fmt.count(more)} more, named in {where}\n")
    body.rstrip()
    return body


def _section(section: Section, where: str, width: int) -> list[RenderableType]:
    from rich.text import Text

    renderables: list[RenderableType] = []
    for block in section.blocks:
        if isinstance(block, Table) and any(column.short is not None for column in block.columns):
            renderables.append(_table(block, width))
        elif isinstance(block, Paragraph) and block.brief:
            text = fmt.visible(block.text.replace("{where}", where), 2000)
            renderables.append(Text(text, style="" if block.look == "" else "dim"))
    return renderables


def _table(table: Table, width: int) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable

    rows = list(table.rows)
    # A column that no row fills is left out; the first one names the rows.
    columns = [
        (at, column)
        for at, column in enumerate(table.columns)
        if column.short is not None and (not at or any(row[at] not in _EMPTY for row in rows))
    ]
    cells = [[_cell(row[at], column) for at, column in columns] for row in rows]
    grid = RichTable(
        box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, padding=(0, 1), width=None
    )
    # Names have the room that the other columns leave.
    room = width - 2
    for at, (_, column) in enumerate(columns[1:], start=1):
        longest = max([len(column.short or ""), *(row[at].cell_len for row in cells)])
        room -= 2 + (min(longest, _WORDY) if column.kind in ("words", "text") else longest)
    room = max(room, 12)
    # Numbers never fold: half a number is another number.
    for _, column in columns:
        folds = column.kind in ("words", "name", "text")
        grid.add_column(
            fmt.visible(column.short or ""),
            justify="left" if folds else "right",
            no_wrap=not folds,
            overflow="fold",
            max_width=room if column.kind == "name" else None,
        )
    for row, line in zip(rows, cells, strict=True):
        if isinstance(name := row[0], Name) and name.document is not None:
            line[0] = _whole(line[0], room)
        grid.add_row(*line)
    return grid


_EMPTY = (None, "", fmt.MISSING, Words())


def _whole(name: Text, room: int) -> Text:
    """Leave out the middle of a name that has no room on one line."""
    from rich.cells import set_cell_size
    from rich.text import Text

    if name.cell_len <= room:
        return name
    end = room // 2
    last = set_cell_size(name.plain[::-1], end)[::-1]
    return Text(f"{set_cell_size(name.plain, room - 1 - end)}…{last}")


def _cell(value: Cell, column: Column) -> Text:
    """Return a cell that is never read as markup."""
    from rich.text import Text

    # Text objects, never markup: a document's id may hold square brackets.
    if isinstance(value, Words):
        words = value.items[:_WORDS]
        baselines = (
            "" if word.baseline == fmt.MISSING else f" / {word.baseline}" for word in words
        )
        lines = (
            f"{word.word} {word.target}{more}" for word, more in zip(words, baselines, strict=True)
        )
        return Text("\n".join(lines))
    if isinstance(value, Mark):
        return Text(fmt.visible(value.text), _COLOURS[value.style])
    if isinstance(value, Name):
        return Text(fmt.visible(value.text))
    return Text(fmt.visible(_figure(value, column), 200))


def _figure(value: str | int | float | Rate | None, column: Column) -> str:
    if value is None:
        return fmt.MISSING
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return fmt.count(value)
    if isinstance(value, float):
        return fmt.MISSING if math.isnan(value) else fmt.short(value)
    # The rest are rates: their class is not named here, because it imports numpy.
    if column.kind == "interval":
        return fmt.short_interval(value)
    if column.kind == "ends":
        return f"{fmt.short_signed(value.low)}, {fmt.short_signed(value.high)}"
    if column.kind in ("signed", "change"):
        return fmt.short_signed(value.value)
    return fmt.short(value.value)
