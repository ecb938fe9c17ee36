"""A reproduced table: the Markdown that ``lab reproduce`` wrote, and what a report says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ragwitness.errors import InputError
from ragwitness.kit.files import read_file
from ragwitness.kit.run_files import TABLE, TABLE_FIGURE
from ragwitness.kit.shown import Shown
from ragwitness.results.kind import Kind, Row, passed, restored, unknown_condition
from ragwitness.results.sheet import Block, Cell, Column, Name, Paragraph, Section, Sheet, Table

_CELLS = re.compile(r"(?<!\\)\|")
_LONGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class TablePart:
    """A table, or a paragraph.

    Attributes:
        text: Of a paragraph; empty for a table.
        head: Names of the columns.
        rows: Cells, as many as there are columns.
    """

    text: str = ""
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Reproduced(Shown):
    """The result of ``ragwitness lab reproduce``.

    Attributes:
        title: What the table shows.
        parts: Below it.
        figure: Path of its figure; None where there is none.
    """

    title: str
    parts: tuple[TablePart, ...]
    figure: Path | None = None


def read_reproduced(folder: Path) -> Reproduced:
    """Read a folder of a reproduced table.

    Raises:
        InputError: It cannot be read, or holds no table.
    """
    path = folder / TABLE
    hint = "Reproduce the table again: ragwitness lab reproduce."
    try:
        text = read_file(path, _LONGEST, hint).decode()
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text.", hint) from None
    # A bold title, then tables and paragraphs with empty lines between: the form that `reproduce`
    # writes.
    first, *blocks = [one.strip() for one in re.split(r"\n\s*\n", text) if one.strip()] or [""]
    if not (first.startswith("**") and first.endswith("**") and len(first) > 4):
        raise InputError(f"{path} does not begin with a title.", hint)
    figure = folder / TABLE_FIGURE
    return Reproduced(first[2:-2], tuple(map(_part, blocks)), figure if figure.is_file() else None)


def _part(block: str) -> TablePart:
    lines = block.splitlines()
    if len(lines) < 2 or not block.startswith("|") or not lines[1].startswith("|-"):
        return TablePart(" ".join(lines))
    head, rows = _cells(lines[0]), [_cells(line) for line in lines[2:]]
    # Short rows are filled and long ones cut: a table that was edited by hand is still shown.
    width = len(head)
    return TablePart("", head, tuple((row + ("",) * width)[:width] for row in rows))


def _cells(line: str) -> tuple[str, ...]:
    cells = _CELLS.split(line.strip().removeprefix("|").removesuffix("|"))
    return tuple(cell.strip().replace("\\|", "|") for cell in cells)


def _dump(result: Reproduced) -> Row:
    return {**asdict(result), "figure": None if result.figure is None else str(result.figure)}


def _conditions(texts: Sequence[str]) -> tuple[str, ...]:
    for text in texts:
        raise unknown_condition(text, "none; a reproduced table has no verdict")
    return ()


def _rows(result: Reproduced) -> list[Row]:
    """One row per line of a table and column: what it is about, which column, what stands there."""
    return [
        {"row": row[0], "column": name, "value": cell}
        for part in result.parts
        for row in part.rows
        for name, cell in zip(part.head[1:], row[1:], strict=True)
    ]


def _sheet(result: Reproduced) -> Sheet:
    blocks = tuple(_block(result.title, part) for part in result.parts)
    sections = (Section("table", "Published beside ours", blocks),)
    return Sheet(kind=KIND.words, title=result.title, method="reproduce", sections=sections)


def _block(title: str, part: TablePart) -> Block:
    if not part.head:
        return Paragraph(part.text, "", brief=True)
    columns = tuple(
        Column(name, "text" if at else "name", name) for at, name in enumerate(part.head)
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple((Name(row[0]), *row[1:]) for row in part.rows)
    return Table(title, columns, rows, "reproduced")


KIND: Kind[Reproduced, str] = Kind(
    name="table",
    words="reproduced table",
    verb="reproduce",
    dump=_dump,
    load=lambda data: restored(Reproduced, data, KIND),
    recognises=lambda data: "parts" in data and "title" in data,
    conditions=_conditions,
    rule=lambda _result, conditions: passed(conditions),
    sheet=_sheet,
    rows=_rows,
    columns={"row": str, "column": str, "value": str},
)
