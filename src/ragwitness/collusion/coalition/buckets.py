"""Near-linear search for similar queries: sign hashes (SimHash), windows and verified pairs.

Two vectors at angle a agree in one random sign with probability 1 - a/pi (Charikar 2002), in all
``bits`` of a table with its power, and in at least one of ``tables`` accordingly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.collusion.coalition.graph import Links, merged, strongest
from ragwitness.collusion.coalition.log import QueryLog
from ragwitness.collusion.coalition.pairs import check_bounds
from ragwitness.errors import InputError

__all__ = ["Hashing", "bucketed_pairs", "chance_to_meet", "hashes"]


@dataclass(frozen=True, slots=True)
class Hashing:
    """Sign hashes.

    Attributes:
        tables: Independent ones; more find more.
        bits: Of each; more make smaller buckets.
        reach: Following queries of a bucket that each is compared with.
        seed: Of the random directions.
    """

    tables: int = 16
    bits: int = 12
    reach: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what is outside its range."""
        if not (1 <= self.tables <= 256 and 1 <= self.bits <= 62 and self.reach >= 1):
            raise InputError(
                "Hashing needs 1 to 256 tables of 1 to 62 bits and a reach of at least 1, not"
                f" {self.tables}, {self.bits} and {self.reach}."
            )


def hashes(log: QueryLog, config: Hashing) -> NDArray[np.int64]:
    """Return the bucket of each query in each table, shape (tables, queries)."""
    rng = np.random.default_rng(config.seed)
    powers = 1 << np.arange(config.bits, dtype=np.int64)
    found = np.empty((config.tables, len(log.times)), dtype=np.int64)
    for table in range(config.tables):
        directions = rng.standard_normal((log.dim, config.bits)).astype(np.float32)
        found[table] = ((log.vectors @ directions) > 0) @ powers
    return found


def chance_to_meet(cosine: float, config: Hashing) -> float:
    """Return the probability that two vectors share a bucket in some table."""
    alike = (1 - math.acos(max(-1.0, min(1.0, cosine))) / math.pi) ** config.bits
    return -math.expm1(config.tables * math.log1p(-alike)) if alike < 1 else 1.0


def bucketed_pairs(
    log: QueryLog, tau: float, window: float = math.inf, config: Hashing | None = None
) -> Links:
    """Return pairs of accounts with two queries of cosine ``tau`` or more that share a bucket.

    Every pair returned is verified; one that shares no bucket is missed. Within a bucket each
    query is compared with those that follow it in time, as many as ``reach``: enough for the
    components, not for every pair.

    Args:
        log: The queries.
        tau: Least cosine, within (-1, 1].
        window: Seconds that may lie between the two.
        config: Of the hashes.

    Raises:
        InputError: ``tau`` or ``window`` is outside its range.
    """
    check_bounds(tau, window)
    config = config or Hashing()
    found: list[Links] = []
    for buckets in hashes(log, config):
        order = np.argsort(buckets, kind="stable")  # by bucket, and by time within it
        for step in range(1, min(config.reach, len(order) - 1) + 1):
            one, other = order[:-step], order[step:]
            near = buckets[one] == buckets[other]
            if not near.any():
                break
            near &= (log.times[other] - log.times[one]) <= window
            near &= log.accounts[one] != log.accounts[other]
            one, other = one[near], other[near]
            cosines = np.einsum("ij,ij->i", log.vectors[one], log.vectors[other])
            kept = cosines >= tau
            first, second = log.accounts[one[kept]], log.accounts[other[kept]]
            found.append(strongest(first, second, cosines[kept], log.size))
    return merged(found, log.size)
