"""Every estimator behind one form: a log goes in, a suspicion and a group of accounts come out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.privacy.account_pairs import (
    Links,
    chance_of_pair,
    core_group,
    largest_component,
    similar_pairs,
    threshold_for,
)
from ragwitness.privacy.query_log import QueryLog
from ragwitness.privacy.ranges import whole

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Account means: jitter that is fresh in each query averages out, so the means of a coalition meet.
#
# With m queries of pairwise cosine tau the means' cosine is 1 / (1 + (1 - tau) / (tau m)).

Matrix = NDArray[np.float64]
_MOST = 20_000  # accounts, all pairs of which are compared
_SHRINK = 0.1  # share of the mean variance that is added to each direction
_ROWS = 16_384  # queries widened to 8-byte numbers at a time


class Whitening:
    """Makes the directions of ordinary traffic alike, so that an embedder's own do not count.

    Args:
        reference: Ordinary queries, shape (queries, dim). Never the log in question: a coalition
            would make its own direction ordinary.
    """

    def __init__(self, reference: NDArray[np.float32]) -> None:
        # The inverse root of the covariance, shrunk towards its mean eigenvalue.
        rows = np.asarray(reference, dtype=np.float64)
        self._centre: Matrix = rows.mean(axis=0)
        values, axes = np.linalg.eigh(np.cov(rows, rowvar=False))
        floor = _SHRINK * float(values.mean()) + 1e-12
        self._scale: Matrix = (axes / np.sqrt(np.maximum(values, 0) + floor)) @ axes.T

    def __call__(self, vectors: NDArray[np.float32]) -> Matrix:
        """Return centred and scaled vectors, shape (n, dim).

        Raises:
            InputError: They are of another dimension.
        """
        if vectors.shape[1] != len(self._centre):
            raise InputError(
                f"The logs hold vectors of {vectors.shape[1]} and {len(self._centre)} dimensions."
            )
        white: Matrix = (vectors - self._centre) @ self._scale
        return white


def account_means(log: QueryLog, whitening: Whitening | None = None) -> Matrix:
    """Return one unit vector per account: the direction of its mean query.

    Args:
        log: The queries.
        whitening: From ordinary traffic; without it queries count as they are.

    Returns:
        Shape (accounts, dim).
    """
    sums = np.zeros((log.size, log.dim))
    for start in range(0, len(log.times), _ROWS):
        block = log.vectors[start : start + _ROWS]
        rows = block.astype(np.float64) if whitening is None else whitening(block)
        # Every query counts alike, then every account.
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        np.add.at(sums, log.accounts[start : start + _ROWS], rows)
    means: Matrix = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return means


def mean_links(means: Matrix, floor: float) -> Links:
    """Return all pairs of accounts whose means have cosine ``floor`` or more.

    Raises:
        InputError: Too many accounts to compare all pairs.
    """
    cosines = _cosines(means)
    first, second = np.nonzero(np.triu(cosines >= floor, 1))
    return Links(first, second, cosines[first, second], len(means))


def nearest_means(means: Matrix) -> float:
    """Return the largest cosine of two accounts' means; -1 for one account.

    Raises:
        InputError: Too many accounts to compare all pairs.
    """
    cosines = _cosines(means)
    np.fill_diagonal(cosines, -1.0)
    return float(cosines.max())


def _cosines(means: Matrix) -> Matrix:
    n = len(means)
    if n > _MOST:
        raise InputError(
            f"{n:,} accounts are too many to compare all pairs; at most {_MOST:,}.",
            "Estimate on a shorter window, or on a part of the accounts.",
        )
    cosines: Matrix = means @ means.T
    return cosines


def mean_p_value(largest: float, accounts: int, dim: int) -> float:
    """Return how often unrelated means, uniform on the sphere, come as close as ``largest``."""
    if largest <= 0:
        return 1.0
    return -math.expm1(-math.comb(accounts, 2) * chance_of_pair(min(largest, 1.0), dim))


# Communities: accounts that share rare buckets more than their activity explains.
#
# Accounts and buckets of nearly equal queries form a bipartite graph. An account's weight of a
# bucket is its number of queries there times ln(N / accounts there): common questions weigh little.
# In reference logs the queries are dealt out anew, with the same number for each account and each
# bucket. Two accounts are joined if the cosine of their weights is above that of all pairs in
# these logs. The innermost core of the joined accounts is the community.

# Many bits, or accounts that repeat one query meet by chance.
_TABLES, _BITS = 4, 16
_ALIKE = 0.9  # length of the mean of unit vectors; of two, from cosine .62 on


@dataclass(frozen=True, slots=True, eq=False)
class Community:
    """Accounts that share buckets.

    Attributes:
        strongest: Largest sum of one account's squared cosines with the others: as many as it
            is one with.
        p_value: Share of logs dealt out anew with one as large, the log counted among them.
        members: The innermost core of accounts joined beyond all of them; one account if none.
    """

    strongest: float
    p_value: float
    members: NDArray[np.int64]


def find_community(log: QueryLog, rng: np.random.Generator, rounds: int = 39) -> Community:
    """Look for accounts that share buckets beyond chance.

    Args:
        log: The queries.
        rng: Random generator of the dealing out.
        rounds: Of it; the least p-value is 1 / (rounds + 1).

    Raises:
        InputError: There is no round.
    """
    whole("rounds", rounds)
    # 1. Buckets of alike queries. 2. Cosines of accounts over them.
    buckets = _columns(hashes(log, _TABLES, _BITS), log)
    links = _links(log.accounts, buckets, log.size, _TABLES)
    # 3. The null: queries are dealt out anew, activity of accounts and buckets kept.
    dealt = [
        _links(rng.permutation(log.accounts), buckets, log.size, _TABLES) for _ in range(rounds)
    ]
    null, strongest = np.array([_strength(null_links) for null_links in dealt]), _strength(links)
    # 4. Links beyond every null log, and their innermost core.
    peak = max(float(null_links.weight.max(initial=0.0)) for null_links in dealt)
    return Community(
        strongest,
        (1 + int((null >= strongest).sum())) / (rounds + 1),
        core_group(links.above(np.nextafter(peak, math.inf))),
    )


def hashes(log: QueryLog, tables: int, bits: int, seed: int = 0) -> NDArray[np.int64]:
    """Return the bucket of each query in each table by sign hashes, shape (tables, queries).

    Two vectors at angle a agree in one random sign with probability 1 - a/pi (Charikar 2002), and
    in all ``bits`` of a table with its power.
    """
    rng = np.random.default_rng(seed)
    powers = 1 << np.arange(bits, dtype=np.int64)
    buckets = np.empty((tables, len(log.times)), dtype=np.int64)
    for table in range(tables):
        # A bit for the side of each random plane.
        directions = rng.standard_normal((log.dim, bits)).astype(np.float32)
        buckets[table] = ((log.vectors @ directions) > 0) @ powers
    return buckets


def _columns(found: NDArray[np.int64], log: QueryLog) -> NDArray[np.int64]:
    """Number the buckets of all tables through, shape (tables, queries).

    If a bucket's accounts do not share a direction, each of its queries gets a separate bucket.
    Queries that meet by chance are no agreement, and weigh much in an account that repeats one.
    """
    columns = np.empty_like(found)
    used = 0
    for table, buckets in enumerate(found):
        names, numbers = np.unique(buckets, return_inverse=True)
        alone = ~_alike(numbers, log)[numbers]
        columns[table] = used + numbers
        columns[table][alone] = used + len(names) + np.arange(int(alone.sum()))
        used += len(names) + int(alone.sum())
    return columns


def _alike(places: NDArray[np.int64], log: QueryLog) -> NDArray[np.bool_]:
    """Whether the accounts of each bucket ask in one direction, each counted once."""
    from scipy.sparse import csr_array

    _, pair, counts = np.unique(
        places * log.size + log.accounts, return_inverse=True, return_counts=True
    )
    weights = (1 / counts[pair]).astype(np.float32)
    # Summed by a matrix of buckets by queries: no weighted copy of the vectors is made.
    every = np.arange(len(places))
    sums = csr_array((weights, (places, every))) @ log.vectors
    totals = np.bincount(places, weights)
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
    out: an account with many other questions is less like the others.
    """
    from scipy.sparse import csr_array

    width = int(columns.max()) + 1
    # Queries per account and bucket, times ln(N / accounts in the bucket); rows of length 1.
    keys, counts = np.unique(accounts * width + columns, return_counts=True)
    row, column = keys // width, keys % width
    users = np.bincount(column, minlength=width)
    weights = counts * np.log(n / users[column])
    lengths = np.sqrt(np.bincount(row, weights**2, minlength=n))
    shared = users[column] > 1
    values = weights[shared] / np.maximum(lengths[row[shared]], 1e-12)
    return csr_array((values, (row[shared], column[shared])), shape=(n, width))


def _strength(links: Links) -> float:
    """The largest sum of squared cosines of one account with the others.

    A sum, not the largest cosine: of a coalition of k, a log drawn from more accounts holds some
    members, of which two are as much alike as all.
    """
    squares = links.weight**2
    n = links.accounts
    sums = np.bincount(links.first, squares, n) + np.bincount(links.second, squares, n)
    return float(sums.max(initial=0.0))


# Spectral scan: many accounts that share a little of one direction, seen together.
#
# The statistic is the largest eigenvalue of the sum of m_a m_a^T over unit account means m_a. The
# reference permutes every coordinate among the accounts: coordinates keep their values, a common
# direction is gone. Detection starts at k tau > sqrt(N/d) (Baik, Ben Arous & Peche), for any
# number of accounts.


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """A common direction.

    Attributes:
        largest: Eigenvalue.
        p_value: Share of permutations with one as large, the log counted among them.
        shared: Estimate of k tau: the size of a coalition in accounts that hold nothing back.
        members: Accounts that lie along the direction more than chance allows.
    """

    largest: float
    p_value: float
    shared: float
    members: NDArray[np.int64]


def scan(means: Matrix, rng: np.random.Generator, rounds: int = 99) -> Scan:
    """Scan account means for a common direction.

    Args:
        means: Unit rows, shape (accounts, dim).
        rng: Random generator of the permutations.
        rounds: Their number; the least p-value is 1 / (rounds + 1).

    Raises:
        InputError: There is no round.
    """
    whole("rounds", rounds)
    # 1. The statistic. 2. Its null by permuted coordinates. 3. Accounts along the direction.
    largest, direction = top_direction(means)
    null = np.array([top_direction(_permuted(means, rng))[0] for _ in range(rounds)])
    return Scan(
        largest,
        (1 + int((null >= largest).sum())) / (rounds + 1),
        effective_size(largest, *means.shape),
        _members(means, direction),
    )


def _permuted(means: Matrix, rng: np.random.Generator) -> Matrix:
    """Permute each coordinate among the accounts; rows are made unit again, as the means are."""
    rows = rng.permuted(means, axis=0)
    unit: Matrix = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return unit


def top_direction(means: Matrix) -> tuple[float, NDArray[np.float64]]:
    """Return the largest eigenvalue of the sum of outer products, and its direction."""
    from scipy.linalg import eigh

    n, dim = means.shape
    small = min(n, dim)
    gram = means.T @ means if dim == small else means @ means.T
    values, axes = eigh(gram, subset_by_index=(small - 1, small - 1))
    axis = axes[:, 0] if dim == small else means.T @ axes[:, 0]
    return float(values[0]), np.asarray(axis / max(float(np.linalg.norm(axis)), 1e-300))


def effective_size(largest: float, accounts: int, dim: int) -> float:
    """Return k tau from the largest eigenvalue; 0 where there is none.

    For N unit rows in d dimensions let g = d/N. A common part of k tau = s N/d with s > sqrt(g)
    moves the eigenvalue to N/d (1 + s)(1 + g/s). This is solved for s.
    """
    ratio = dim / accounts
    # The spiked model solved for the spike: lambda = (1 + l)(1 + gamma / l) (Baik and Silverstein).
    above = largest * ratio - 1 - ratio
    inside = above * above - 4 * ratio
    if above <= 0 or inside <= 0:
        return 0.0
    return (above + math.sqrt(inside)) / 2 / ratio


def _members(means: Matrix, direction: NDArray[np.float64]) -> NDArray[np.int64]:
    """Accounts whose squared cosine with the direction is beyond chance at 5 % for all together."""
    from scipy.special import betaincinv

    n, dim = means.shape
    # The squared cosine of a uniform vector is Beta(1/2, (d - 1)/2); 5 % for all accounts.
    bound = float(betaincinv(0.5, (dim - 1) / 2, 1 - 0.05 / n))
    along = means @ direction
    sign = 1.0 if (along**3).sum() >= 0 else -1.0
    members: NDArray[np.int64] = np.flatnonzero((along**2 > bound) & (sign * along > 0))
    return members


@dataclass(frozen=True, slots=True, eq=False)
class Settings:
    """Settings of all estimators.

    Attributes:
        threshold: Least cosine of two queries; None for the one that unrelated uniform queries
            pass in 5 % of such logs.
        window: Seconds that may lie between two queries.
        rounds: Permutations of a null.
        whitening: From ordinary traffic; None for none.
        seed: Seed of the permutations.
    """

    threshold: float | None = None
    window: float = math.inf
    rounds: int = 99
    whitening: Whitening | None = None
    seed: int = 0

    def tau(self, log: QueryLog) -> float:
        """Return the threshold for a log."""
        if self.threshold is not None:
            return self.threshold
        per_account = math.ceil(len(log.times) / log.size)
        return threshold_for(0.05, max(2, log.size), per_account, log.dim)


@dataclass(frozen=True, slots=True, eq=False)
class Detection:
    """The result of one estimator.

    Attributes:
        suspicion: Higher means more; comparable within one estimator and one size of log.
        members: The group it would name, fewer than 2 where it names none.
        p_value: Against its own null; None where it has none.
        note: The suspicion in words.
    """

    suspicion: float
    members: NDArray[np.int64]
    p_value: float | None
    note: str


_NOBODY: NDArray[np.int64] = np.zeros(0, dtype=np.int64)


def _pairs(log: QueryLog, settings: Settings) -> Detection:
    links = similar_pairs(log, settings.tau(log), settings.window, sparse=True)
    group = largest_component(links)
    if len(group) < 2:
        return Detection(1.0, _NOBODY, None, "largest component")
    # By the size of the group, and by the nearest pair among equals.
    return Detection(len(group) + float(links.weight.max()) / 2, group, None, "largest component")


def _means(log: QueryLog, settings: Settings) -> Detection:
    means = account_means(log, settings.whitening)
    links = mean_links(means, threshold_for(0.05, max(2, log.size), 1, log.dim))
    nearest = nearest_means(means)
    group = largest_component(links)
    return Detection(
        (len(group) if len(group) > 1 else 1) + nearest / 2,
        group if len(group) > 1 else _NOBODY,
        mean_p_value(nearest, log.size, log.dim),
        "accounts of similar means",
    )


def _spectral(log: QueryLog, settings: Settings) -> Detection:
    means = account_means(log, settings.whitening)
    result = scan(means, np.random.default_rng(settings.seed), settings.rounds)
    named = result.members if result.p_value <= 0.05 else _NOBODY
    note = f"largest eigenvalue; k tau about {result.shared:.1f}"
    return Detection(result.largest, named, result.p_value, note)


def _community(log: QueryLog, settings: Settings) -> Detection:
    community = find_community(log, np.random.default_rng(settings.seed), settings.rounds)
    named = (
        community.members if community.p_value <= 0.05 and len(community.members) > 1 else _NOBODY
    )
    return Detection(
        community.strongest, named, community.p_value, "accounts alike by rare buckets"
    )


DETECTORS: Mapping[str, Callable[[QueryLog, Settings], Detection]] = {
    "pairs": _pairs,
    "means": _means,
    "spectral": _spectral,
    "communities": _community,
}
"""By name: the paper's R5, and ours."""


def detect(name: str, log: QueryLog, settings: Settings) -> Detection:
    """Run one estimator."""
    return DETECTORS[name](log, settings)


def suspicion(name: str, log: QueryLog, settings: Settings) -> float:
    """Return an estimator's suspicion alone, without its permutations."""
    if name == "spectral":
        return top_direction(account_means(log, settings.whitening))[0]
    if name == "communities":
        buckets = _columns(hashes(log, _TABLES, _BITS), log)
        return _strength(_links(log.accounts, buckets, log.size, _TABLES))
    return detect(name, log, settings).suspicion
