"""Query logs from files: JSON Lines, and Parquet and Arrow in blocks.

A log has three columns: ``account``, ``time``, and ``vector`` or ``text``. Whatever its form, a
row is checked by the same rules, and one that cannot be used is left out and named. Vectors are
scaled to unit length as they arrive and kept as 4-byte numbers: a log of n queries takes 4 n dim
bytes, and a block more while it is read.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError, MissingExtraError
from ragwitness.privacy.account_pairs import QueryLog, in_order, make_log

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
    """Read a log; its form is told by how it begins.

    What the first usable row holds, a vector or a text, every other must hold too. Times are
    seconds, or dates (UTC where they name no zone).

    Raises:
        InputError: The file cannot be read, is too large, lacks a column, or holds no usable row.
        MissingExtraError: It is Parquet or Arrow, and pyarrow is not installed.
    """
    rows = _Rows(path)
    try:
        with path.open("rb") as stream:
            begins = stream.read(8)
        if begins.startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")):
            _read_arrow(path, rows, begins)
        else:
            _read_lines(path, rows)
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(f"{path} cannot be read: {why}.", "Check the path.") from error
    except MemoryError:
        raise InputError(
            f"{path} does not fit into this machine's memory.", "Split it by time."
        ) from None
    return rows.done()


class _Rows:
    """Usable rows so far.

    Args:
        path: Path of the file, for what is said of its rows.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._accounts = array("q")
        self._times = array("d")
        self._places: dict[str, int] = {}
        self._texts: list[str] = []
        self._vectors = np.zeros((0, 0), np.float32)
        self._skipped: list[tuple[str, str]] = []
        self._left_out = 0
        self.dim: int | None = None  # of the vectors; 0 for texts; None before the first row

    def skip(self, number: int, why: str) -> None:
        """Leave out a row, counted from 1."""
        self._left_out += 1
        if len(self._skipped) < _SHOWN:
            self._skipped.append((f"{self._path}:{number}", why))

    def place(self, account: str) -> int:
        """Return the account's index."""
        return self._places.setdefault(account, len(self._places))

    def add(self, accounts: NDArray[np.int64], times: Floats, units: Floats) -> None:
        """Add rows with vectors of unit length, shape (rows, dim)."""
        used, self.dim = len(self._accounts), units.shape[1]
        needed = used + len(units)
        if needed > len(self._vectors):
            # Grown where it lies: the pages beyond what is used cost nothing yet.
            rows = max(needed, used + used // 8, _BLOCK)
            if self._vectors.size:
                self._vectors.resize((rows, self.dim), refcheck=False)
            else:
                self._vectors = np.zeros((rows, self.dim), np.float32)
        self._vectors[used:needed] = units
        self._accounts.frombytes(accounts.astype(np.int64).tobytes())
        self._times.frombytes(times.astype(np.float64).tobytes())

    def add_block(
        self, first: int, accounts: NDArray[np.int64], times: Floats, queries: Floats | list[Any]
    ) -> None:
        """Check and add a block of columns.

        Args:
            first: Number of its first row, from 1.
            accounts: Index per row, -1 where there is none.
            times: Per row, NaN where there is none.
            queries: Vectors, shape (rows, dim); or texts.
        """
        no_time = ~np.isfinite(times)
        bad = {
            "the field 'account' is missing, or neither a string nor a whole number": accounts < 0,
            "the field 'time' is missing, or neither a finite number nor a date": no_time,
        }
        if isinstance(queries, list):
            lengths = np.ones(1)
            empty = [not isinstance(text, str) or not text.strip() for text in queries]
            bad["it has neither a vector nor a text"] = np.array(empty, dtype=bool)
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                lengths = np.linalg.norm(queries, axis=1)
            bad["the vector holds something that is no finite number"] = ~np.isfinite(lengths)
            bad["the vector is all zeros, which has no direction"] = lengths == 0
        good = ~np.logical_or.reduce([*bad.values()])
        for at in np.flatnonzero(~good).tolist():
            self.skip(first + at, next(why for why, which in bad.items() if which[at]))
        if not good.any():
            return  # which of the two a log holds is told by its first usable row
        if not isinstance(queries, list):
            self.add(accounts[good], times[good], queries[good] / lengths[good, None])
            return
        self.dim = 0
        self._accounts.frombytes(accounts[good].tobytes())
        self._times.frombytes(times[good].tobytes())
        self._texts += [queries[at] for at in np.flatnonzero(good).tolist()]

    def done(self) -> LoggedQueries:
        """Return what was read.

        Raises:
            InputError: There is no usable row.
        """
        used = len(self._accounts)
        if not used:
            first = f": {self._skipped[0][0]}: {self._skipped[0][1]}" if self._skipped else ""
            raise InputError(f"{self._path} holds no usable query{first}.", _FORM)
        # Accounts all of whose rows were left out asked nothing.
        seen, firsts, codes = np.unique(
            np.frombuffer(self._accounts, np.int64), return_index=True, return_inverse=True
        )
        order = np.argsort(firsts)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        known = list(self._places)
        if self._vectors.size:
            self._vectors.resize((used, self._vectors.shape[1]), refcheck=False)
        return LoggedQueries(
            rank[codes],
            tuple(known[at] for at in seen[order]),
            np.frombuffer(self._times, np.float64),
            self._vectors if self._vectors.size else None,
            tuple(self._texts) or None,
            tuple(self._skipped),
            self._left_out,
        )


# JSON Lines: one object per line.


def _read_lines(path: Path, rows: _Rows) -> None:
    size = path.stat().st_size
    if size > _MOST_BYTES:
        raise InputError(
            f"{path} is larger than {_MOST_BYTES / 1024**2:,.0f} MiB.",
            "Write it as Parquet or Arrow, which are read in blocks.",
        )
    for number, line in _lines(path):
        try:
            account, time, query = _row(line, rows.dim)
        except _LogRowError as why:
            rows.skip(number, str(why))
            continue
        rows.add_block(number, np.array([rows.place(account)]), np.array([time]), query)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
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


def _row(line: bytes, dim: int | None) -> tuple[str, float, Floats | list[Any]]:
    if len(line) > _MOST_ROW:
        raise _LogRowError("the row is over the size limit")
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise _LogRowError("invalid JSON") from None
    if not isinstance(row, dict):
        raise _LogRowError("the row is not an object")
    query = _vector(row["vector"]) if "vector" in row else [row.get("text")]
    if dim is not None and isinstance(query, list) != (dim == 0):
        raise _LogRowError("has a text where other rows have vectors, or the reverse")
    if dim and not isinstance(query, list) and query.shape[1] != dim:
        raise _LogRowError(f"the vector has {query.shape[1]} values, not {dim} as before")
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


def _vector(value: object) -> Floats:
    if not isinstance(value, list) or len(value) < 2:
        raise _LogRowError("the field 'vector' is no list of 2 numbers or more")
    if any(isinstance(v, bool) or not isinstance(v, int | float) or not _finite(v) for v in value):
        raise _LogRowError("the vector holds something that is no finite number")
    return np.array([value], dtype=np.float64)


def _dates(values: Sequence[object]) -> Floats:
    """Return seconds of dates as text, NaN for what is none."""
    found = np.full(len(values), math.nan)
    for at, value in enumerate(values):
        try:
            found[at] = _time(value)
        except _LogRowError:
            continue
    return found


# Parquet and Arrow, by pyarrow.


def _read_arrow(path: Path, rows: _Rows, begins: bytes) -> None:
    try:
        import pyarrow as pa
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("Reading Parquet and Arrow", "data") from error
    try:
        if begins.startswith(b"PAR1"):
            # Buffered: without it a row group's column is loaded whole.
            table = pa.parquet.ParquetFile(path, buffer_size=1 << 20)
            wanted = _wanted(path, table.schema_arrow.names)
            batches = table.iter_batches(_BLOCK, columns=wanted)
        else:
            source = pa.memory_map(str(path))
            if begins.startswith(b"ARROW1"):
                whole = pa.ipc.open_file(source)
                batches = (whole.get_batch(at) for at in range(whole.num_record_batches))
            else:
                whole = pa.ipc.open_stream(source)
                batches = iter(whole)
            wanted = _wanted(path, whole.schema.names)
        first = 1
        for batch in batches:
            for start in range(0, batch.num_rows, _BLOCK):
                part = batch.slice(start, _BLOCK)
                _add_batch(path, rows, first, [part.column(name) for name in wanted])
                first += part.num_rows
    except pa.ArrowException as error:
        raise InputError(
            f"{path} cannot be read: {str(error).splitlines()[0]}.", "Write it anew."
        ) from error


def _wanted(path: Path, names: Sequence[str]) -> list[str]:
    """Return the columns that are read.

    Raises:
        InputError: One is missing.
    """
    query = "vector" if "vector" in names else "text"
    for name in ("account", "time", query):
        if name not in names:
            missing = "vector' or 'text" if name == "text" else name
            raise InputError(f"{path} has no column '{missing}'.", _FORM)
    return ["account", "time", query]


def _add_batch(path: Path, rows: _Rows, first: int, columns: list[Any]) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    account, time, query = columns
    kinds = pa.types
    # Accounts: each name once, then numbers.
    coded = account if kinds.is_dictionary(account.type) else account.dictionary_encode()
    if not _is_text(coded.type.value_type) and not kinds.is_integer(coded.type.value_type):
        raise _wrong(path, "account", account.type, "texts or whole numbers")
    names = coded.dictionary.cast(pa.string()).to_pylist()
    codes = np.array([rows.place(name) if name else -1 for name in names] + [-1], np.int64)
    accounts = codes[coded.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)]
    # Times: seconds, or dates.
    if kinds.is_timestamp(time.type):
        micro = time.cast(pa.timestamp("us", time.type.tz), safe=False).cast(pa.int64())
        times = micro.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) / 1e6
    elif _is_text(time.type):
        times = _dates(time.to_pylist())
    elif kinds.is_integer(time.type) or kinds.is_floating(time.type):
        times = time.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    else:
        raise _wrong(path, "time", time.type, "numbers, dates or texts")
    if _is_text(query.type):
        rows.add_block(first, accounts, times, query.to_pylist())
        return
    lists = kinds.is_list(query.type) or kinds.is_large_list(query.type)
    if not (lists or kinds.is_fixed_size_list(query.type)) or not (
        kinds.is_floating(query.type.value_type) or kinds.is_integer(query.type.value_type)
    ):
        raise _wrong(path, "vector", query.type, "lists of numbers")
    # Vectors: those of one dimension together, what is none of them named row by row.
    lengths = pc.list_value_length(query).fill_null(0).to_numpy(zero_copy_only=False)
    fitting = lengths[(lengths >= 2) & (lengths <= _WIDEST)]
    dim = rows.dim or (int(fitting[0]) if len(fitting) else 0)
    fits = lengths == dim if dim else np.zeros(len(lengths), bool)
    for at in np.flatnonzero(~fits).tolist():
        rows.skip(first + at, _unlike(int(lengths[at]), dim))
    if not fits.any():
        return
    flat = query.filter(pa.array(fits)).flatten().cast(pa.float64(), safe=False)
    vectors = flat.to_numpy(zero_copy_only=False).reshape(-1, dim)
    if fits.all():
        rows.add_block(first, accounts, times, vectors)
        return
    for at, row in zip(np.flatnonzero(fits).tolist(), vectors, strict=True):
        part = slice(at, at + 1)
        rows.add_block(first + at, accounts[part], times[part], row[None])


def _unlike(length: int, dim: int) -> str:
    if length < 2 or not dim:
        return "the field 'vector' is no list of 2 numbers or more"
    return f"the vector has {length} values, not {dim} as before"


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _wrong(path: Path, name: str, kind: object, wanted: str) -> InputError:
    return InputError(f"The column '{name}' of {path} holds {kind}; it must hold {wanted}.", _FORM)
