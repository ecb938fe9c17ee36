"""Documents that are rows of a table: JSON lines and CSV, read row by row."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from ragwitness.core.types import Document
from ragwitness.text.formats import UnreadableError

_TEXT_FIELDS = ("text", "document")
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}

Row: TypeAlias = tuple[int, Document | str]
"""Number of its line, and the document or the reason why there is none."""
Line: TypeAlias = tuple[int, str | None]
"""Line number with its text, None where the line is over the limit."""


def too_large(most: int) -> str:
    """Say that a document has more characters than one may have."""
    return f"the document is over the size limit of one document, {most:,} characters"


class Fields(NamedTuple):
    """Names of the fields, or columns, of the text (None for the usual ones) and of the group."""

    text: str | None = None
    group: str | None = None


class _UnusableRowError(Exception):
    """Why one row cannot be used."""


def read_jsonl(lines: Iterable[Line], fields: Fields, max_row: int) -> Iterator[Row]:
    """Yield the rows of JSON lines."""
    for number, line in lines:
        if line is None:
            yield number, too_large(max_row)
        elif line.strip():
            yield number, _from_json(line, number, fields)


def _from_json(line: str, number: int, fields: Fields) -> Document | str:
    try:
        row = json.loads(line, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        return f"invalid JSON ({error.msg} at column {error.colno})"
    except _UnusableRowError as reason:
        return str(reason)
    except (ValueError, RecursionError):
        return "invalid JSON (a number too long, or nested too deeply)"
    if not isinstance(row, dict):
        return "the row is not an object"
    return _from_row(row, number, fields)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of JSON in which no key stands twice: the last would hide the others."""
    if len(found := dict(pairs)) < len(pairs):
        raise _UnusableRowError("a key stands twice in it")
    return found


def read_csv(
    lines: Iterable[Line], fields: Fields, max_row: int, *, by_tabs: bool
) -> Iterator[Row]:
    """Yield the rows of a table whose first line names its columns.

    Raises:
        UnreadableError: It has no text column, two of one name, or an open quotation mark.
    """
    rows = iter(lines)
    header = next(rows)[1] or ""
    delimiter = "\t" if by_tabs else max(",;", key=header.count)
    try:
        columns = [column.strip() for column in next(csv.reader([header], delimiter=delimiter))]
    except csv.Error as error:
        why = f"has names of columns that cannot be read ({error})"
        raise UnreadableError(why, "Save it as CSV again, with usual ends of lines.") from None
    wanted = (fields.text,) if fields.text else _TEXT_FIELDS
    if fields.group and fields.group not in columns:
        raise UnreadableError(f"has no column {fields.group!r}", "Correct --group-field.")
    if not set(wanted) & set(columns):
        raise UnreadableError(
            f"has no column {' or '.join(map(repr, wanted))}; "
            f"it has {', '.join(map(repr, columns[:12]))}",
            "Name the column that holds the text with --text-field.",
        )
    if twice := [repr(column) for column, n in Counter(columns).items() if column and n > 1]:
        why = f"has more than one column {', '.join(twice[:12])}"
        raise UnreadableError(why, "Give each column a name of its own.")
    ends = max(at for at, column in enumerate(columns, 1) if column)
    text = min(columns.index(one) for one in wanted if one in columns)
    # the module's limit is global and lower than ours: raised, never lowered
    csv.field_size_limit(max(csv.field_size_limit(), max_row))
    over = False

    def told() -> Iterator[str]:
        nonlocal over
        for _, line in rows:
            over = over or line is None
            yield line or "\n"

    reader = csv.reader(told(), delimiter=delimiter, strict=True)
    while True:
        number, over = reader.line_num + 2, False
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "end of data" in str(error):
                why = f"has a quotation mark in line {number} that is never closed"
                hint = "Close it; within a quoted cell a mark is doubled."
                raise UnreadableError(why, hint) from None
            yield number, f"invalid CSV ({error}), up to line {reader.line_num + 1}"
            continue
        # In a row too long or too short this may be the rest of a text without quotation marks.
        rest = cells[ends if len(cells) >= ends else text + 1 :]
        if over:
            yield number, too_large(max_row)
        elif any(_holds_rows(cell, columns, delimiter) for cell in cells):
            yield number, "holds whole rows: a quotation mark is closed too late"
        elif len(cells) > len(columns) or any(map(str.strip, rest)):
            why = f"has {len(cells)} cells under {ends} columns: a text with {delimiter!r} in it"
            yield number, f"{why} needs quotation marks"
        elif cells:
            row = dict(zip(columns, cells, strict=False))
            yield number, _from_row(row, number, fields)


def _holds_rows(cell: str, columns: list[str], delimiter: str) -> bool:
    """Whether each of several lines within a cell is a row: as many cells, an id of one word."""
    at = columns.index("id") if "id" in columns else 0
    rows = list(csv.reader(cell.splitlines()[1:-1], delimiter=delimiter))
    whole = (len(row) == len(columns) and len(row[at].split()) == 1 for row in rows)
    return len(rows) > 1 and all(whole)


def _from_row(row: Mapping[str, object], number: int, fields: Fields) -> Document | str:
    names = (fields.text,) if fields.text else _TEXT_FIELDS
    name = next((name for name in names if row.get(name) is not None), None)
    if name is None:
        return f"no field {' or '.join(map(repr, names))}"
    text = row[name]
    if not isinstance(text, str):
        return f"the field {name!r} is not a string"
    try:
        known = _identity(row.get("id"), number), text.strip(), _member(row.get("member"))
        return Document(*known, _group(row, fields.group))
    except _UnusableRowError as reason:
        return str(reason)


def _identity(value: object, number: int) -> str:
    if value is None or value == "":
        return f"line-{number}"
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _UnusableRowError("the id is neither a string nor a whole number")
    return str(value)


def _group(row: Mapping[str, object], name: str | None) -> str | None:
    value = row.get(name) if name else None
    if name and (value is None or isinstance(value, dict | list) or not str(value).strip()):
        raise _UnusableRowError(f"no group in the field {name!r}")
    return None if value is None else str(value).strip()


def _member(value: object) -> bool | None:
    if value is None or value == "":
        return None
    known = _TRUTH.get(str(value).strip().lower())
    if known is None:
        raise _UnusableRowError(f"the field 'member' is {str(value)[:40]!r}, not true or false")
    return known
