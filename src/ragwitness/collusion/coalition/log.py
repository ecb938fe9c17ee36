"""A window of queries as the estimators see it: who asked what, and when."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import InputError
from ragwitness.text.documents import check_size


@dataclass(frozen=True, slots=True, eq=False)
class QueryLog:
    """Queries in order of time; make one with :func:`make_log`.

    Attributes:
        accounts: Index into ``names`` per query, shape (queries,).
        times: Seconds, ascending, shape (queries,).
        vectors: Of unit length, shape (queries, dim).
        names: Of the accounts; each asked at least once.
    """

    accounts: NDArray[np.int64]
    times: NDArray[np.float64]
    vectors: NDArray[np.float32]
    names: tuple[str, ...]

    @property
    def size(self) -> int:
        """Number of accounts."""
        return len(self.names)

    @property
    def dim(self) -> int:
        """Of the vectors."""
        return int(self.vectors.shape[1])


def make_log(
    accounts: Sequence[str], times: Sequence[float], vectors: NDArray[np.floating]
) -> QueryLog:
    """Check, scale to unit length and sort by time.

    Args:
        accounts: Who asked, one per query.
        times: When, in seconds of any clock.
        vectors: Embeddings, shape (queries, dim).

    Raises:
        InputError: The numbers of rows differ, there is no query, or a time or a vector is not
            finite or without direction; the row is named, from 1.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    when = np.asarray(times, dtype=np.float64)
    if rows.ndim != 2 or not len(accounts) == len(when) == len(rows):
        raise InputError("A log needs one account, one time and one vector per query.")
    if not len(rows) or rows.shape[1] < 2:
        raise InputError("The log has no query, or vectors of under 2 dimensions.")
    lengths = np.linalg.norm(rows, axis=1)
    for bad, what in (
        (~np.isfinite(when), "has a time that is no number"),
        (~np.isfinite(lengths), "has a vector with a value that is no number, or too large"),
        (lengths == 0, "has a vector of zeros, which has no direction"),
    ):
        if bad.any():
            raise InputError(f"Query {int(np.flatnonzero(bad)[0]) + 1} {what}.")
    names = tuple(dict.fromkeys(accounts))
    place = {name: at for at, name in enumerate(names)}
    order = np.argsort(when, kind="stable")
    return QueryLog(
        np.array([place[name] for name in accounts], dtype=np.int64)[order],
        when[order],
        (rows / lengths[:, None])[order].astype(np.float32),
        names,
    )


def of_accounts(log: QueryLog, wanted: NDArray[np.int64]) -> QueryLog:
    """Return the part of a log that some of its accounts asked.

    Args:
        log: The whole.
        wanted: Indices of accounts, each once.
    """
    place = np.full(log.size, -1, dtype=np.int64)
    place[wanted] = np.arange(wanted.size)
    kept = place[log.accounts] >= 0
    return QueryLog(
        place[log.accounts[kept]],
        log.times[kept],
        log.vectors[kept],
        tuple(log.names[at] for at in wanted),
    )


# Query logs from a file: one JSON object per line, with the account, the time and the query.

_MOST_BYTES = 2 << 30
_MOST_ROW = 4 << 20
_FORM = 'A row is {"account": "a1", "time": 12.5, "vector": [...]}, or "text" for the vector.'


class _LogRowError(Exception):
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
        except _LogRowError as why:
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
        raise _LogRowError("the row is over the size limit")
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise _LogRowError("invalid JSON") from None
    if not isinstance(row, dict):
        raise _LogRowError("the row is not an object")
    query = _vector(row.get("vector")) if "vector" in row else _text(row.get("text"))
    if like is not None and type(query) is not type(like):
        raise _LogRowError("has a text where other rows have vectors, or the reverse")
    if like is not None and isinstance(query, tuple) and len(query) != len(like):
        raise _LogRowError(f"the vector has {len(query)} values, not {len(like)} as before")
    return _account(row.get("account")), _time(row.get("time")), query


def _account(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise _LogRowError("the field 'account' is missing, or neither a string nor a whole number")
    return str(value)


def _time(value: object) -> float:
    if isinstance(value, str):
        try:
            when = datetime.fromisoformat(value)
        except ValueError:
            raise _LogRowError(f"the field 'time' is {value[:40]!r}, no date of ISO 8601") from None
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
        raise _LogRowError("the field 'time' is missing, or no finite number")
    return float(value)


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond any float
        return False


def _vector(value: object) -> tuple[float, ...]:
    if not isinstance(value, list) or len(value) < 2:
        raise _LogRowError("the field 'vector' is no list of 2 numbers or more")
    if any(isinstance(v, bool) or not isinstance(v, int | float) or not _finite(v) for v in value):
        raise _LogRowError("the vector holds something that is no finite number")
    if not any(value):
        raise _LogRowError("the vector is all zeros, which has no direction")
    return tuple(map(float, value))


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _LogRowError("it has neither a vector nor a text")
    return value
