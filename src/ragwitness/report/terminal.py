"""A sheet in a terminal: complete without colour, at 80 columns and through a pipe."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ragwitness.results import wording as say
from ragwitness.results.sheet import (
    Cell,
    Column,
    Mark,
    Name,
    Paragraph,
    Section,
    Sheet,
    Style,
    Table,
    Words,
)
from ragwitness.stats.evaluation import Rate

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table as RichTable
    from rich.text import Text

_LEFT_OUT = 40  # files and rows that are named
_WORDS = 2  # of evidence beside a document
_NAME = 26  # columns of a row's name where columns of numbers need the room; it folds there
_COLOURS: dict[Style, str] = {"": "", "in": "bold red", "out": "cyan", "inconclusive": "yellow"}


def terminal(sheet: Sheet, *, where: str = "") -> Group:
    """Return a rich renderable: what was found, warnings, the tables, what is claimed.

    Args:
        sheet: What is said.
        where: Names the place of everything that is left out, e.g. the path of the page; empty
            where there is none.
    """
    from rich.console import Group
    from rich.text import Text

    # Pass 1: what was found, what it rests on, and warnings, before any table.
    parts: list[RenderableType] = [_summary(sheet, where)]
    # Pass 2: the sections that are not for the page alone, with the columns that have a short
    # heading.
    for section in sheet.sections:
        if section.only != "page":
            parts += _section(section, where)
    # Pass 3: the first claim and the first thing not claimed, however short the terminal.
    claims = f"{sheet.claimed[0]} " if sheet.claimed else ""
    denied = f"Not claimed: {sheet.not_claimed[0]} " if sheet.not_claimed else ""
    rest = f"Everything else is in {where}." if where else ""
    for line in (*sheet.closing, f"{claims}{denied}{rest}"):
        if line:
            parts.append(Text(say.visible(line, 2000), style="dim"))
    return Group(*parts)


def _summary(sheet: Sheet, where: str) -> RenderableType:
    from rich.text import Text

    body = Text(overflow="fold")
    body.append(f"Ragwitness: {sheet.kind}\n", style="dim")
    body.append(f"{say.visible(sheet.title)}\n", style="bold")
    if sheet.sentence:
        body.append(f"{say.visible(sheet.sentence, 1000)}\n")
    body.append("\n")
    for label, value in sheet.brief or sheet.facts:
        if value:
            body.append(f"{say.visible(label)}: " if label else "", style="dim")
            body.append(f"{say.visible(value, 1000)}\n")
    for warning in sheet.warnings:
        body.append("warning: ", style="bold yellow")
        body.append(f"{say.visible(warning, 1000)}\n")
    if sheet.left_out:
        body.append("left out: ", style="bold yellow")
        body.append(f"{say.left_out(sheet.left_out)}\n")
        for one in sheet.left_out[:_LEFT_OUT]:
            body.append(f"  {say.visible(one.name)}: {say.visible(one.why)}\n")
        if (more := len(sheet.left_out) - _LEFT_OUT) > 0:
            body.append(f"  and {say.count(more)} more, named in {where}\n")
    body.rstrip()
    return body


def _section(section: Section, where: str) -> list[RenderableType]:
    from rich.text import Text

    parts: list[RenderableType] = []
    for block in section.blocks:
        if isinstance(block, Table) and any(column.short is not None for column in block.columns):
            parts.append(_table(block))
        elif isinstance(block, Paragraph) and block.brief:
            text = say.visible(block.text.replace("{where}", where), 2000)
            parts.append(Text(text, style="" if block.look == "" else "dim"))
    return parts


def _table(table: Table) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable

    shown = [(at, one) for at, one in enumerate(table.columns) if one.short is not None]
    # A table with evidence takes the whole width and folds; one of numbers keeps to its columns.
    wordy = any(one.kind == "words" for _, one in shown)
    made = RichTable(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=not wordy,
        expand=wordy,
        padding=(0, 1),
    )
    # Numbers never fold: half a number is another number.
    for _, one in shown:
        folds = one.kind in ("words", "name")
        made.add_column(
            say.visible(one.short or ""),
            justify="left" if one.kind in ("name", "text", "words") else "right",
            no_wrap=not folds and one.kind != "text",
            overflow="fold",
            ratio={"words": 5, "name": 2}.get(one.kind) if wordy else None,
            min_width=8 if folds and wordy else None,
            max_width=_NAME if one.kind == "name" and not wordy else None,
        )
    for row in table.rows:
        made.add_row(*(_cell(row[at], one, 60 if wordy else 3 * _NAME) for at, one in shown))
    return made


def _cell(value: Cell, column: Column, longest: int) -> Text:
    """Return a cell that is never read as markup."""
    from rich.text import Text

    # Text objects, never markup: a document's id may hold square brackets.
    if isinstance(value, Words):
        return _words(value)
    if isinstance(value, Mark):
        return Text(say.visible(value.text), _COLOURS[value.style])
    if isinstance(value, Name):
        return Text(say.visible(value.text)[:longest])
    return Text(say.visible(_figure(value, column), 200))


def _figure(value: str | int | float | Rate | None, column: Column) -> str:
    if value is None:
        return say.MISSING
    if isinstance(value, str):
        return value
    if isinstance(value, Rate):
        if column.kind == "interval":
            return say.short_interval(value)
        if column.kind == "ends":
            return f"{say.short_signed(value.low)}, {say.short_signed(value.high)}"
        if column.kind in ("signed", "change"):
            return say.short_signed(value.value)
        return say.short(value.value)
    if isinstance(value, int):
        return say.count(value)
    return say.MISSING if math.isnan(value) else say.short(value)


def _words(words: Words) -> Text:
    from rich.text import Text

    text = Text()
    if words.reason:
        text.append(say.visible(words.reason), style="italic")
    for word in words.items[:_WORDS]:
        text.append("\n" if text else "")
        text.append(f"{word.word} ", style="bold")
        text.append(f"{word.target} / {word.baseline}")
    return text
