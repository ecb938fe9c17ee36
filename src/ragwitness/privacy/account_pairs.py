"""The paper's estimator (R5, section 5.5): accounts with two similar queries belong together.

Two queries of different accounts within a sliding window whose cosine is at least tau join their
accounts; the largest connected component is the estimate. Exact: every pair in the window is
compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.privacy.ranges import probability, whole

if TYPE_CHECKING:
    from ragwitness.privacy.query_log import QueryLog

# Accounts joined by similar queries: components, and dense groups that chains do not make.

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Pairs of accounts, each once, with how strongly they are joined.

    Attributes:
        first: Smaller account, shape (links,).
        second: Larger account.
        weight: Largest cosine of their queries, or another strength.
        accounts: Number of accounts.
    """

    first: Indices
    second: Indices
    weight: NDArray[np.float64]
    accounts: int

    def where(self, kept: NDArray[np.bool_] | Indices) -> Links:
        """Return the links at these places."""
        return Links(self.first[kept], self.second[kept], self.weight[kept], self.accounts)

    def above(self, floor: float) -> Links:
        """Return the links of at least this strength."""
        return self.where(self.weight >= floor)


def strongest(first: Indices, second: Indices, weight: NDArray[np.floating], n: int) -> Links:
    """Keep the strongest link of each pair of different accounts.

    Args:
        first: An account per link, in any order.
        second: The other.
        weight: Strength per link.
        n: Number of accounts.
    """
    # Pairs in one order, strongest first, so that the first of each pair is its strongest link.
    apart = first != second
    low, high = np.minimum(first, second)[apart], np.maximum(first, second)[apart]
    strength = np.asarray(weight, dtype=np.float64)[apart]
    order = np.argsort(-strength, kind="stable")
    keys, first_of_pair = np.unique(low[order] * n + high[order], return_index=True)
    return Links(keys // n, keys % n, strength[order][first_of_pair], n)


def merged(parts: Sequence[Links], n: int) -> Links:
    """Return the links of all parts, the strongest of each pair.

    Args:
        parts: Over the same accounts; may be none.
        n: Number of accounts.
    """
    if not parts:
        nobody = np.zeros(0, dtype=np.int64)
        return Links(nobody, nobody, np.zeros(0), n)
    first, second, weight = (
        np.concatenate([getattr(links, name) for links in parts])
        for name in ("first", "second", "weight")
    )
    return strongest(first, second, weight, n)


def forest(links: Links) -> Links:
    """Return the strongest links that join the same accounts, fewer than there are accounts.

    At every threshold they leave the components that all links leave (a maximum spanning forest).
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    # Strongest is shortest; cosines are at most 1, and a length of 0 would be no link.
    shape = (links.accounts, links.accounts)
    lengths = coo_array((3 - links.weight, (links.first, links.second)), shape=shape)
    tree = minimum_spanning_tree(lengths.tocsr()).tocoo()
    ends = np.sort(np.stack([tree.row, tree.col]).astype(np.int64), axis=0)
    return Links(ends[0], ends[1], 3 - tree.data, links.accounts)


class LinksFound:
    """Links found so far, each pair of accounts once.

    Args:
        n: Number of accounts.
        sparse: Keep a forest alone, which takes the memory of ``n`` links however many are found.
    """

    def __init__(self, n: int, *, sparse: bool) -> None:
        self._n, self._parts, self._size, self._most = n, [merged((), n)], 0, _MOST_LINKS
        self._reduce: Callable[[Links], Links] = forest if sparse else lambda links: links

    def add(self, first: Indices, second: Indices, weight: NDArray[np.floating]) -> None:
        """Add links of accounts in any order."""
        self._parts.append(strongest(first, second, weight, self._n))
        self._size += self._parts[-1].first.size
        if self._size > self._most:
            self._parts = [self.links()]
            self._size = 0
            self._most = max(_MOST_LINKS, self._parts[0].first.size)

    def links(self) -> Links:
        """Return what was found."""
        return self._reduce(merged(self._parts, self._n))


def component_labels(links: Links) -> Indices:
    """Return the number of each account's connected component, shape (accounts,)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    shape = (links.accounts, links.accounts)
    graph = coo_array((np.ones(links.first.size), (links.first, links.second)), shape=shape)
    _, labels = connected_components(graph, directed=False)
    return np.asarray(labels, np.int64)


def largest_component(links: Links) -> Indices:
    """Return the accounts of the largest connected component; one account where none is joined."""
    labels = component_labels(links)
    members: Indices = np.flatnonzero(labels == np.argmax(np.bincount(labels)))
    return members


def core_group(links: Links) -> Indices:
    """Return the largest component of the innermost core.

    The c-core is what is left when accounts with under c links are removed again and again; the
    innermost has the largest c. In it every account is joined to c others, so a chain of chance
    links between groups falls away where a component would keep it. k accounts that are all
    joined to each other are its (k - 1)-core.
    """
    innermost, least = links, 1
    while len(links.first):
        ends = np.concatenate([links.first, links.second])
        degree = np.bincount(ends, minlength=links.accounts)
        inside = (degree[links.first] >= least) & (degree[links.second] >= least)
        if inside.all():  # every remaining account has at least ``least`` links: the core
            innermost, least = links, least + 1
        else:
            links = links.where(inside)
    return largest_component(innermost)


_BLOCK = 2048  # queries compared at a time: 16 MB of cosines
_MOST_LINKS = 1 << 21  # kept beside those of one link per pair: 48 MB


def similar_pairs(
    log: QueryLog,
    tau: float,
    window: float = math.inf,
    *,
    sparse: bool = False,
) -> Links:
    """Return every pair of accounts with two queries of cosine ``tau`` or more.

    Args:
        log: The queries.
        tau: Least cosine, within (-1, 1].
        window: Seconds that may lie between the two.
        sparse: Return the :func:`forest` of the pairs; memory is then bounded by the accounts.

    Raises:
        InputError: ``tau`` or ``window`` is outside its range.
    """
    check_bounds(tau, window)
    collected = LinksFound(log.size, sparse=sparse)
    # Blocks of queries against blocks: each pair once, within the window (R5).
    last = np.searchsorted(log.times, log.times + window, side="right")
    for start in range(0, len(log.times), _BLOCK):
        stop = min(start + _BLOCK, len(log.times))
        for column in range(start, int(last[stop - 1]), _BLOCK):
            end = min(column + _BLOCK, int(last[stop - 1]))
            cosines = log.vectors[start:stop] @ log.vectors[column:end].T
            rows, columns = np.nonzero(cosines >= tau)
            rows, columns, weight = rows + start, columns + column, cosines[rows, columns]
            valid = (columns > rows) & (columns < last[rows])
            if valid.any():
                collected.add(
                    log.accounts[rows[valid]], log.accounts[columns[valid]], weight[valid]
                )
    return collected.links()


def nearest_pair(log: QueryLog, window: float = math.inf) -> float:
    """Return the largest cosine of two accounts' queries within the window; -1 without any.

    Raises:
        InputError: The window is outside its range.
    """
    check_bounds(1.0, window)
    nearest = -1.0
    last = np.searchsorted(log.times, log.times + window, side="right")
    for start in range(0, len(log.times), _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, len(log.times)))
        for column in range(start, int(last[rows[-1]]), _BLOCK):
            columns = np.arange(column, min(column + _BLOCK, int(last[rows[-1]])))
            cosines = log.vectors[rows] @ log.vectors[columns].T
            valid = log.accounts[rows, None] != log.accounts[columns]
            valid &= (columns > rows[:, None]) & (columns < last[rows, None])
            nearest = max(nearest, float(cosines.max(where=valid, initial=-1.0)))
    return nearest


def check_bounds(tau: float, window: float) -> None:
    """Refuse a threshold or a window outside its range.

    Raises:
        InputError: One is.
    """
    if not -1 < tau <= 1:
        raise InputError(f"The threshold is a cosine above -1 and at most 1, not {tau:g}.")
    if not window > 0:
        raise InputError(f"The window must be above 0 seconds, not {window:g}.")


def chance_of_pair(tau: float, dim: int) -> float:
    """Return the probability that two uniform unit vectors have cosine ``tau`` or more.

    Args:
        tau: From 0 to 1.
        dim: Dimension of the vectors.
    """
    from scipy.special import betainc

    return float(betainc((dim - 1) / 2, 0.5, 1 - tau * tau)) / 2


def threshold_for(rate: float, accounts: int, queries: int, dim: int) -> float:
    """Return the threshold that joins unrelated accounts at ``rate``; 0 where every one is below.

    The accounts' queries are uniform on the sphere; the rate is 1 - exp(-C(N, 2) m^2 p_tau).

    Args:
        rate: Share of logs in which any two accounts are joined.
        accounts: N.
        queries: m, of each account.
        dim: Dimension of the vectors.

    Raises:
        InputError: A value is outside its range.
    """
    from scipy.special import betaincinv

    pairs = math.comb(whole("accounts", accounts), 2) * whole("queries", queries) ** 2
    # C(N, 2) m² pairs of queries, each joined with p_tau: Poisson. Solved for p_tau, then for the
    # cosine.
    tail = -math.log1p(-probability("rate", rate)) / max(1, pairs)
    if tail >= 0.5:
        return 0.0
    return math.sqrt(1 - float(betaincinv((whole("dim", dim, 2) - 1) / 2, 0.5, 2 * tail)))


# A window of queries as the estimators see it: who asked what, and when.
