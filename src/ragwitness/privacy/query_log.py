"""A window of queries as the estimators see it: who asked what, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError

_COLUMNS = 16  # of the vectors, put in order at a time: the whole log never lies there twice


@dataclass(frozen=True, slots=True, eq=False)
class QueryLog:
    """Queries in order of time; make one with :func:`make_log`.

    Attributes:
        accounts: Index into ``names`` per query, shape (queries,).
        times: Seconds, ascending, shape (queries,).
        vectors: Vectors of unit length, shape (queries, dim).
        names: Names of the accounts; each asked at least once.
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
        accounts: Account of each query.
        times: Time of each query, in seconds of any clock.
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
    for bad, problem in (
        (~np.isfinite(when), "has a time that is no number"),
        (~np.isfinite(lengths), "has a vector with a value that is no number, or too large"),
        (lengths == 0, "has a vector of zeros, which has no direction"),
    ):
        if bad.any():
            raise InputError(f"Query {int(np.flatnonzero(bad)[0]) + 1} {problem}.")
    names = tuple(dict.fromkeys(accounts))
    index = {name: at for at, name in enumerate(names)}
    codes = np.array([index[name] for name in accounts], dtype=np.int64)
    return in_order(codes, when, (rows / lengths[:, None]).astype(np.float32), names)


def in_order(
    accounts: NDArray[np.int64],
    times: NDArray[np.float64],
    vectors: NDArray[np.float32],
    names: tuple[str, ...],
) -> QueryLog:
    """Sort queries by time; the vectors are sorted where they lie.

    Args:
        accounts: Index into ``names`` per query, shape (queries,).
        times: Finite seconds, shape (queries,).
        vectors: Vectors of unit length, shape (queries, dim).
        names: Names of the accounts; each asked at least once.
    """
    if (times[1:] < times[:-1]).any():
        order = np.argsort(times, kind="stable")
        accounts, times = accounts[order], times[order]
        for start in range(0, vectors.shape[1], _COLUMNS):
            block = slice(start, start + _COLUMNS)
            vectors[:, block] = vectors[order, block]
    return QueryLog(accounts, times, vectors, names)


def of_accounts(log: QueryLog, wanted: NDArray[np.int64]) -> QueryLog:
    """Return the part of a log that some of its accounts asked.

    Args:
        log: The whole.
        wanted: Indices of accounts, each once.
    """
    index = np.full(log.size, -1, dtype=np.int64)
    index[wanted] = np.arange(wanted.size)
    chosen = index[log.accounts] >= 0
    return QueryLog(
        index[log.accounts[chosen]],
        log.times[chosen],
        log.vectors[chosen],
        tuple(log.names[at] for at in wanted),
    )
