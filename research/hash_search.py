"""The paper's search by hash collisions (§5.5): near-linear, sign hashes and verified pairs.

Queries of one bucket in at least one of several tables are compared. The wheel compares every pair
(``similar_pairs``), which misses none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ragwitness.collusion.detectors import hashes
from ragwitness.core.errors import InputError
from ragwitness.privacy.account_pairs import Links, LinksFound, check_bounds
from ragwitness.privacy.query_log import QueryLog

_BLOCK = 2048  # queries of a table compared at a time


@dataclass(frozen=True, slots=True)
class Hashing:
    """Sign hashes.

    Attributes:
        tables: Independent ones; more find more.
        bits: Number of bits of each; more make smaller buckets.
        reach: Following queries of a bucket that each is compared with.
        seed: Seed of the random directions.
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


_STRIP = 64  # queries of a bucket compared at a time: few more pairs than ``reach`` asks for


def bucketed_pairs(
    log: QueryLog,
    tau: float,
    window: float = math.inf,
    config: Hashing | None = None,
    *,
    sparse: bool = False,
) -> Links:
    """Return pairs of accounts with two queries of cosine ``tau`` or more that share a bucket.

    Every pair returned is verified; one that shares no bucket is missed. Within a bucket each
    query is compared with those that follow it in time, as many as ``reach``: enough for the
    components, not for every pair.

    Args:
        log: The queries.
        tau: Least cosine, within (-1, 1].
        window: Seconds that may lie between the two.
        config: Settings of the hashes.
        sparse: Return the :func:`forest` of the pairs; memory is then bounded by the accounts.

    Raises:
        InputError: ``tau`` or ``window`` is outside its range.
    """
    check_bounds(tau, window)
    config = config or Hashing()
    found = LinksFound(log.size, sparse=sparse)
    # In each table, neighbours within a bucket up to ``reach`` apart; cosines decide.
    for buckets in hashes(log, config.tables, config.bits, config.seed):
        order = np.argsort(buckets, kind="stable")  # by bucket, and by time within it
        for start in range(0, len(order), _BLOCK):
            stop = min(start + _BLOCK, len(order))
            near = order[start : stop + config.reach]  # these, and whom the last is compared with
            vectors = log.vectors[near]
            for low, high in pairwise([*range(0, stop - start, _STRIP), stop - start]):
                # A strip of neighbours against all whom one of them reaches.
                end = min(high + config.reach, len(near))
                cosines = vectors[low:high] @ vectors[low:end].T
                rows, columns = np.nonzero(cosines >= tau)
                apart, weight = columns - rows, cosines[rows, columns]
                one, other = near[rows + low], near[columns + low]
                kept = (apart > 0) & (apart <= config.reach) & (buckets[one] == buckets[other])
                kept &= (log.times[other] - log.times[one]) <= window
                kept &= log.accounts[one] != log.accounts[other]
                if kept.any():
                    found.add(log.accounts[one[kept]], log.accounts[other[kept]], weight[kept])
    return found.links()
