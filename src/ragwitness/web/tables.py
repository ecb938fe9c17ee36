"""A reproduced table as the pages see it: the Markdown that ``ragwitness reproduce`` wrote."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ragwitness.errors import InputError

__all__ = ["FIGURE", "TABLE", "Part", "Reproduced", "read_reproduced"]

TABLE = "table.md"
FIGURE = "table.svg"

_CELLS = re.compile(r"(?<!\\)\|")
_LONGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class Part:
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
class Reproduced:
    """The result of ``ragwitness reproduce``.

    Attributes:
        title: What the table shows.
        parts: Below it.
        figure: Path of its figure; None where there is none.
    """

    title: str
    parts: tuple[Part, ...]
    figure: Path | None


def read_reproduced(folder: Path) -> Reproduced:
    """Read a folder of a reproduced table.

    Raises:
        InputError: It cannot be read, or holds no table.
    """
    path = folder / TABLE
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
    if len(text) > _LONGEST:
        raise InputError(f"{path} is longer than any table that was reproduced.")
    first, *blocks = [one.strip() for one in re.split(r"\n\s*\n", text) if one.strip()] or [""]
    if not (first.startswith("**") and first.endswith("**") and len(first) > 4):
        raise InputError(f"{path} does not begin with a title.")
    figure = folder / FIGURE
    return Reproduced(first[2:-2], tuple(map(_part, blocks)), figure if figure.is_file() else None)


def _part(block: str) -> Part:
    lines = block.splitlines()
    if len(lines) < 2 or not block.startswith("|") or not lines[1].startswith("|-"):
        return Part(" ".join(lines))
    head, rows = _cells(lines[0]), [_cells(line) for line in lines[2:]]
    width = len(head)
    return Part("", head, tuple((row + ("",) * width)[:width] for row in rows))


def _cells(line: str) -> tuple[str, ...]:
    cells = _CELLS.split(line.strip().removeprefix("|").removesuffix("|"))
    return tuple(cell.strip().replace("\\|", "|") for cell in cells)
