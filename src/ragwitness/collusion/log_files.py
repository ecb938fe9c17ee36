"""Query logs from files: JSON Lines, and Parquet in blocks.

A log has three columns: ``account``, ``time``, and ``vector`` or ``text``. The logs that vector
stores write themselves are JSON Lines too, and read as they are. In every format a row is checked
by the same rules, and an unusable row is left out and named. Vectors are scaled to unit length as
they arrive and kept as 4-byte numbers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError, MissingExtraError
from ragwitness.privacy.query_log import QueryLog, in_order, make_log

_MOST_BYTES = 2 << 30  # of JSON Lines
_MOST_ROW = 4 << 20
_BLOCK = 8192  # rows read at a time
_SHOWN = 5  # rows left out that are named; the others are counted
_WIDEST = 1 << 16  # values of a vector
_FORM = 'A row is {"account": "a1", "time": 12.5, "vector": [...]}, or "text" for the vector.'

Floats = NDArray[np.float64]


class _LogRowError(Exception):
    """Why one row cannot be used."""


@dataclass(frozen=True, slots=True, eq=False)
class LoggedQueries:
    """The usable rows of a log; all have vectors, or all have texts.

    Attributes:
        accounts: Index into ``names`` per query, shape (queries,).
        names: Names of the accounts, in order of appearance.
        times: When, in seconds, shape (queries,).
        vectors: Vectors of unit length, shape (queries, dim); None where there are texts.
        texts: Texts of the queries; None where there are vectors.
        skipped: Of the first rows left out: where it stood and why.
        left_out: Number of rows left out.
    """

    accounts: NDArray[np.int64]
    names: tuple[str, ...]
    times: Floats
    vectors: NDArray[np.float32] | None
    texts: tuple[str, ...] | None
    skipped: tuple[tuple[str, str], ...]
    left_out: int

    def log(self, vectors: NDArray[np.floating] | None = None) -> QueryLog:
        """Return the queries in order of time.

        Args:
            vectors: Of the texts, shape (queries, dim); not given where the rows have vectors.

        Raises:
            InputError: A text's vector is not finite or without direction.
        """
        if self.vectors is not None:
            return in_order(self.accounts, self.times, self.vectors, self.names)
        names = [self.names[at] for at in self.accounts]
        return make_log(names, self.times.tolist(), np.asarray(vectors))


def read_log(path: Path) -> LoggedQueries:
    """Read a log; its format is recognised by its first bytes.

    All usable rows must hold vectors, or all texts, like the first one. Times are
    seconds, or dates (UTC where they name no zone).

    Raises:
        InputError: The file cannot be read, is too large, lacks a column, or holds no usable row.
        MissingExtraError: It is Parquet, and pyarrow is not installed.
    """
    try:
        with path.open("rb") as stream:
            is_parquet = stream.read(4) == b"PAR1"
        return _collected(path, (_parquet_rows if is_parquet else _json_rows)(path))
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{path} cannot be read: {reason}.", "Check the path.") from error
    except MemoryError:
        raise InputError(
            f"{path} does not fit into this machine's memory.", "Split it by time."
        ) from None


def _collected(path: Path, rows: Iterator[tuple[int, object]]) -> LoggedQueries:
    """Check each row, and collect the usable ones.

    Args:
        path: Path of the file, for messages.
        rows: Number of each row, and its fields or the reason why it has none.
    """
    numbers: dict[str, int] = {}
    accounts: list[int] = []
    times: list[float] = []
    texts: list[str] = []
    vectors: list[NDArray[np.float32]] = []
    skipped: list[tuple[str, str]] = []
    left_out = 0
    for number, row in rows:
        try:
            account, time, query = _checked(row)
            if isinstance(query, str):
                if vectors:
                    raise _LogRowError("it has a text where other rows have vectors")
                texts.append(query)
            elif texts:
                raise _LogRowError("it has a vector where other rows have texts")
            elif vectors and len(query) != len(vectors[0]):
                raise _LogRowError(
                    f"the vector has {len(query)} values, not {len(vectors[0])} as before"
                )
            else:
                vectors.append(query)
        except _LogRowError as why:
            left_out += 1
            if len(skipped) < _SHOWN:
                skipped.append((f"{path}:{number}", str(why)))
            continue
        accounts.append(numbers.setdefault(account, len(numbers)))
        times.append(time)
    if not accounts:
        first = f": {skipped[0][0]}: {skipped[0][1]}" if skipped else ""
        raise InputError(f"{path} holds no usable query{first}.", _FORM)
    return LoggedQueries(
        np.array(accounts, np.int64),
        tuple(numbers),
        np.array(times),
        np.stack(vectors) if vectors else None,
        tuple(texts) or None,
        tuple(skipped),
        left_out,
    )


def _checked(row: object) -> tuple[str, float, str | NDArray[np.float32]]:
    """Return account, time, and text or vector of unit length."""
    if not isinstance(row, dict):
        raise _LogRowError(row if isinstance(row, str) else "the row is not an object")
    for field, read in _STORES.items():
        if field in row:
            row = read(row)
    query = row.get("text")
    if "vector" in row:
        query = _unit(row["vector"])
    elif not isinstance(query, str) or not query.strip():
        raise _LogRowError("it has neither a vector nor a text")
    account = row.get("account")
    if isinstance(account, bool) or not isinstance(account, str | int) or account == "":
        raise _LogRowError("the field 'account' is missing, or neither a string nor a whole number")
    return str(account), _seconds(row.get("time")), query


# The logs of vector stores, by a field that each of their lines has.


def _elasticsearch(row: dict[str, Any]) -> dict[str, Any]:
    """Read a line of the search slow log, with the search as JSON in a string."""
    # One line a shard: of a search that went to several, the first shard's counts.
    if not str(row.get("elasticsearch.slowlog.message", "[0]")).endswith("[0]"):
        raise _LogRowError("it is of another shard than the first")
    # The user with include.user, or the X-Opaque-Id of the application.
    account = row.get("user.name") or row.get("elasticsearch.slowlog.id")
    vector = _numbers_in(row["elasticsearch.slowlog.source"])
    return {"account": account, "time": row.get("@timestamp"), "vector": vector}


def _postgres(row: dict[str, Any]) -> dict[str, Any]:
    """Read a line of PostgreSQL's jsonlog: the first vector in a statement or its parameters."""
    match = _LITERAL.search(f"{row.get('message', '')} {row.get('detail', '')}")
    if match is None:
        raise _LogRowError("its statement holds no vector")
    time = str(row.get("timestamp", "")).replace(" UTC", "+00:00")
    return {"account": row.get("user"), "time": time, "vector": _numbers_in(match[1])}


def _proxy(row: dict[str, Any]) -> dict[str, Any]:
    """Read a line of a proxy before Qdrant, whose own logs hold no vectors."""
    vector = _numbers_in(row["request_body"])
    return {"account": row.get("account"), "time": row.get("time"), "vector": vector}


_STORES = {
    "elasticsearch.slowlog.source": _elasticsearch,
    "error_severity": _postgres,
    "request_body": _proxy,
}
_LITERAL = re.compile(r"'(\[[-+0-9.eE, ]+\])'")  # of pgvector


def _numbers_in(text: object) -> list[float]:
    """Return the first list of numbers in JSON, at any depth."""
    try:
        levels = [json.loads(str(text))]
        while levels:
            value = levels.pop(0)
            if isinstance(value, list) and {*map(type, value)} <= {int, float} and value:
                return value
            if isinstance(value, dict | list):
                levels += value.values() if isinstance(value, dict) else value
    except (ValueError, RecursionError):
        pass
    raise _LogRowError("its search holds no vector")


def _seconds(value: object) -> float:
    if isinstance(value, str):
        text = value
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            raise _LogRowError(f"the field 'time' is {text[:40]!r}, no date of ISO 8601") from None
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    try:
        if not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value):
            return float(value)
    except OverflowError:  # a whole number beyond any float
        pass
    raise _LogRowError("the field 'time' is missing, or no finite number")


def _unit(value: object) -> NDArray[np.float32]:
    vector = np.asarray(value if isinstance(value, list | np.ndarray) else None)
    if vector.ndim != 1 or not 2 <= len(vector) <= _WIDEST or vector.dtype.kind not in "iuf":
        raise _LogRowError("the field 'vector' is no list of 2 numbers or more")
    vector = vector.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        length = float(np.linalg.norm(vector))
    if not math.isfinite(length):
        raise _LogRowError("the vector holds something that is no finite number")
    if not length:
        raise _LogRowError("the vector is all zeros, which has no direction")
    return (vector / length).astype(np.float32)


def _json_rows(path: Path) -> Iterator[tuple[int, object]]:
    """Yield the rows of JSON Lines; a line that is too long is read past, not into memory."""
    size = path.stat().st_size
    if size > _MOST_BYTES:
        raise InputError(
            f"{path} is larger than {_MOST_BYTES / 1024**2:,.0f} MiB.",
            "Write it as Parquet, which is read in blocks.",
        )
    with path.open("rb") as stream:
        number = 0
        while line := stream.readline(_MOST_ROW + 1):
            number += 1
            if len(line) > _MOST_ROW:
                while line and not line.endswith(b"\n"):
                    line = stream.readline(_MOST_ROW + 1)
                yield number, "the row is over the size limit"
            elif line.strip():
                try:
                    yield number, json.loads(line)
                except (ValueError, RecursionError):
                    yield number, "invalid JSON"


def _parquet_rows(path: Path) -> Iterator[tuple[int, object]]:
    """Yield the rows of Parquet, block by block."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("Reading Parquet", "data") from error
    try:
        # Buffered: without it a row group's column is loaded whole.
        table = pa.parquet.ParquetFile(path, buffer_size=1 << 20)
        names = table.schema_arrow.names
        query = "vector" if "vector" in names else "text"
        columns = ("account", "time", query)
        if missing := next((name for name in columns if name not in names), None):
            names_missing = "vector' or 'text" if missing == "text" else missing
            raise InputError(f"{path} has no column '{names_missing}'.", _FORM)
        number = 0
        for batch in table.iter_batches(_BLOCK):
            values = [_values(batch.column(name)) for name in columns]
            for row in zip(*values, strict=True):
                number += 1
                yield number, dict(zip(columns, row, strict=True))
    except pa.ArrowException as error:
        raise InputError(
            f"{path} cannot be read: {str(error).splitlines()[0]}.", "Write it anew."
        ) from error


def _values(column: Any) -> Any:
    """Return a column's values; lists of numbers as arrays, dates to the microsecond."""
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    if kinds.is_fixed_size_list(column.type):
        column = column.cast(pa.list_(column.type.value_type))
    if kinds.is_list(column.type) or kinds.is_large_list(column.type):
        return column.to_numpy(zero_copy_only=False)
    return column.to_pylist()
