"""Communities: accounts that share rare buckets more than their activity explains.

Accounts and buckets of nearly equal queries form a bipartite graph. An account's weight of a
bucket is its number of queries there times ln(N / accounts there): what everybody asks weighs
little. Two accounts are joined where the cosine of their weights is beyond all pairs of logs in
which the queries are dealt out anew, each account as many and each bucket as many as before. Of
the joined, the innermost core is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragwitness.collusion.coalition.buckets import Hashing, hashes
from ragwitness.collusion.coalition.graph import Links, core_group
from ragwitness.collusion.coalition.log import QueryLog
from ragwitness.privacy.accounting.ranges import whole

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Community", "find_community"]

_ALIKE = 0.9  # length of the mean of unit vectors; of two, from cosine .62 on


@dataclass(frozen=True, slots=True, eq=False)
class Community:
    """What was found.

    Attributes:
        strongest: Largest cosine of two accounts.
        null: The same of each log dealt out anew, shape (rounds,).
        p_value: Share of those as large, the log counted among them.
        members: The innermost core of accounts joined beyond all of them; one account if none.
    """

    strongest: float
    null: NDArray[np.float64]
    p_value: float
    members: NDArray[np.int64]


def find_community(
    log: QueryLog,
    rng: np.random.Generator,
    rounds: int = 39,
    config: Hashing | None = None,
) -> Community:
    """Look for accounts that share buckets beyond chance.

    Args:
        log: The queries.
        rng: Of the dealing out.
        rounds: Of it; the least p-value is 1 / (rounds + 1).
        config: Of the hashes; many bits, or accounts that repeat one query meet by chance.

    Raises:
        InputError: There is no round.
    """
    whole("rounds", rounds)
    config = config or Hashing(tables=4, bits=16)
    buckets = _columns(hashes(log, config), log)
    links = _links(log.accounts, buckets, log.size, config.tables)
    null = np.array(
        [
            _peak(_links(rng.permutation(log.accounts), buckets, log.size, config.tables))
            for _ in range(rounds)
        ]
    )
    peak = _peak(links)
    floor = np.nextafter(max(float(null.max()), 0.0), math.inf)
    return Community(
        peak,
        null,
        (1 + int((null >= peak).sum())) / (rounds + 1),
        core_group(links.above(floor)),
    )


def _columns(found: NDArray[np.int64], log: QueryLog) -> NDArray[np.int64]:
    """Number the buckets of all tables through, shape (tables, queries).

    Where a bucket's accounts do not point one way, each query is put into a bucket of its own:
    queries that meet by chance are no agreement, and weigh much in an account that repeats one.
    """
    columns = np.empty_like(found)
    used = 0
    for table, buckets in enumerate(found):
        names, places = np.unique(buckets, return_inverse=True)
        alone = ~_alike(places, log)[places]
        columns[table] = used + places
        columns[table][alone] = used + len(names) + np.arange(int(alone.sum()))
        used += len(names) + int(alone.sum())
    return columns


def _alike(places: NDArray[np.int64], log: QueryLog) -> NDArray[np.bool_]:
    """Whether the accounts of each bucket ask in one direction, each counted once."""
    _, own, counts = np.unique(
        places * log.size + log.accounts, return_inverse=True, return_counts=True
    )
    weights = (1 / counts[own]).astype(np.float32)
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    sums = np.add.reduceat((log.vectors * weights[:, None])[order], starts, axis=0)
    totals = np.add.reduceat(weights[order], starts)
    alike: NDArray[np.bool_] = np.linalg.norm(sums, axis=1) >= _ALIKE * totals
    return alike


def _links(accounts: NDArray[np.int64], columns: NDArray[np.int64], n: int, tables: int) -> Links:
    """Join accounts by the cosine of their weighted buckets."""
    from scipy.sparse import triu

    weights = _weights(np.tile(accounts, tables), columns.ravel(), n)
    cosines = triu(weights @ weights.T, k=1).tocoo()
    return Links(cosines.row.astype(np.int64), cosines.col.astype(np.int64), cosines.data, n)


def _weights(accounts: NDArray[np.int64], columns: NDArray[np.int64], n: int) -> csr_array:
    """TF-IDF of buckets by account, shape (accounts, buckets).

    Rows are of unit length before the buckets of one account alone, which join nobody, are left
    out: who asks much else is less like the others.
    """
    from scipy.sparse import csr_array

    width = int(columns.max()) + 1
    keys, counts = np.unique(accounts * width + columns, return_counts=True)
    row, column = keys // width, keys % width
    users = np.bincount(column, minlength=width)
    weights = counts * np.log(n / users[column])
    lengths = np.sqrt(np.bincount(row, weights**2, minlength=n))
    kept = users[column] > 1
    values = weights[kept] / np.maximum(lengths[row[kept]], 1e-12)
    return csr_array((values, (row[kept], column[kept])), shape=(n, width))


def _peak(links: Links) -> float:
    return float(links.weight.max()) if links.weight.size else 0.0
