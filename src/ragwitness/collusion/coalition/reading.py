"""Query logs from a file: one JSON object per line, with the account, the time and the query."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ragwitness.errors import InputError
from ragwitness.text.rows import check_size

__all__ = ["LoggedQueries", "read_log"]

_MOST_BYTES = 2 << 30
_MOST_ROW = 4 << 20
_FORM = 'A row is {"account": "a1", "time": 12.5, "vector": [...]}, or "text" for the vector.'


class _RowError(Exception):
    """Why one row cannot be used."""


@dataclass(frozen=True, slots=True)
class LoggedQueries:
    """The usable rows of a log; all have vectors, or all have texts.

    Attributes:
        accounts: Who asked.
        times: When, in seconds.
        vectors: Of the queries, all of one size; None where there are texts.
        texts: Of the queries; None where there are vectors.
        skipped: Where a row stood and why it is left out.
    """

    accounts: tuple[str, ...]
    times: tuple[float, ...]
    vectors: tuple[tuple[float, ...], ...] | None
    texts: tuple[str, ...] | None
    skipped: tuple[tuple[str, str], ...]


def read_log(path: Path) -> LoggedQueries:
    """Read a log; rows that cannot be used are left out and named.

    What the first usable row holds, a vector or a text, every other must hold too. Times are
    seconds, or dates of ISO 8601 (UTC where they name no zone).

    Raises:
        InputError: The file cannot be read, is too large, or holds no usable row.
    """
    rows: list[tuple[str, float, tuple[float, ...] | str]] = []
    skipped: list[tuple[str, str]] = []
    for number, line in _lines(path):
        try:
            rows.append(_row(line, rows[0][2] if rows else None))
        except _RowError as why:
            skipped.append((f"{path}:{number}", str(why)))
    if not rows:
        first = f": {skipped[0][0]}: {skipped[0][1]}" if skipped else ""
        raise InputError(f"{path} holds no usable query{first}.", _FORM)
    queries = [row[2] for row in rows]
    vectors = tuple(query for query in queries if isinstance(query, tuple))
    texts = tuple(query for query in queries if isinstance(query, str))
    return LoggedQueries(
        tuple(row[0] for row in rows),
        tuple(row[1] for row in rows),
        vectors or None,
        texts or None,
        tuple(skipped),
    )


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        check_size(path, path.stat().st_size, _MOST_BYTES)
        with path.open("rb") as stream:
            number = 0
            while line := stream.readline(_MOST_ROW + 1):
                number += 1
                while not line.endswith(b"\n") and len(line) > _MOST_ROW:
                    more = stream.readline(_MOST_ROW + 1)
                    if not more or more.endswith(b"\n"):
                        break
                if line.strip():
                    yield number, line
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(f"{path} cannot be read: {why}.", "Check the path.") from error


def _row(
    line: bytes, like: tuple[float, ...] | str | None
) -> tuple[str, float, tuple[float, ...] | str]:
    if len(line) > _MOST_ROW:
        raise _RowError("the row is over the size limit")
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise _RowError("invalid JSON") from None
    if not isinstance(row, dict):
        raise _RowError("the row is not an object")
    query = _vector(row.get("vector")) if "vector" in row else _text(row.get("text"))
    if like is not None and type(query) is not type(like):
        raise _RowError("has a text where other rows have vectors, or the reverse")
    if like is not None and isinstance(query, tuple) and len(query) != len(like):
        raise _RowError(f"the vector has {len(query)} values, not {len(like)} as before")
    return _account(row.get("account")), _time(row.get("time")), query


def _account(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise _RowError("the field 'account' is missing, or neither a string nor a whole number")
    return str(value)


def _time(value: object) -> float:
    if isinstance(value, str):
        try:
            when = datetime.fromisoformat(value)
        except ValueError:
            raise _RowError(f"the field 'time' is {value[:40]!r}, no date of ISO 8601") from None
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
        raise _RowError("the field 'time' is missing, or no finite number")
    return float(value)


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond any float
        return False


def _vector(value: object) -> tuple[float, ...]:
    if not isinstance(value, list) or len(value) < 2:
        raise _RowError("the field 'vector' is no list of 2 numbers or more")
    if any(isinstance(v, bool) or not isinstance(v, int | float) or not _finite(v) for v in value):
        raise _RowError("the vector holds something that is no finite number")
    if not any(value):
        raise _RowError("the vector is all zeros, which has no direction")
    return tuple(map(float, value))


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _RowError("it has neither a vector nor a text")
    return value
