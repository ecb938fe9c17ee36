"""Every estimator behind one form: a log goes in, a suspicion and a group of accounts come out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ragwitness.collusion.coalition.buckets import Hashing, bucketed_pairs
from ragwitness.collusion.coalition.communities import find_community
from ragwitness.collusion.coalition.graph import Links, core_group, largest_component
from ragwitness.collusion.coalition.log import QueryLog
from ragwitness.collusion.coalition.means import (
    Whitening,
    account_means,
    mean_links,
    mean_p_value,
    nearest_means,
)
from ragwitness.collusion.coalition.pairs import similar_pairs, threshold_for
from ragwitness.collusion.coalition.spectral import scan, top_direction

__all__ = ["DETECTORS", "Detection", "Settings", "detect", "suspicion"]


@dataclass(frozen=True, slots=True, eq=False)
class Settings:
    """What the estimators share.

    Attributes:
        threshold: Least cosine of two queries; None for the one that unrelated uniform queries
            pass in 5 % of such logs.
        window: Seconds that may lie between two queries.
        hashing: Of the bucketed search.
        rounds: Permutations of a null.
        whitening: From ordinary traffic; None for none.
        seed: Of the permutations.
    """

    threshold: float | None = None
    window: float = math.inf
    hashing: Hashing = field(default_factory=Hashing)
    rounds: int = 99
    whitening: Whitening | None = None
    seed: int = 0

    def tau(self, log: QueryLog) -> float:
        """Return the threshold for a log."""
        if self.threshold is not None:
            return self.threshold
        each = math.ceil(len(log.times) / log.size)
        return threshold_for(0.05, max(2, log.size), each, log.dim)


@dataclass(frozen=True, slots=True, eq=False)
class Detection:
    """What one estimator says of a log.

    Attributes:
        suspicion: Higher means more; comparable within one estimator and one size of log.
        members: The group it would name, fewer than 2 where it names none.
        p_value: Against its own null; None where it has none.
        note: What the suspicion is.
    """

    suspicion: float
    members: NDArray[np.int64]
    p_value: float | None
    note: str


_NOBODY: NDArray[np.int64] = np.zeros(0, dtype=np.int64)


def _pairs(log: QueryLog, settings: Settings) -> Detection:
    links = similar_pairs(log, settings.tau(log), settings.window)
    return _of_links(links, largest_component(links), "largest component")


def _cores(log: QueryLog, settings: Settings) -> Detection:
    links = similar_pairs(log, settings.tau(log), settings.window)
    return _of_links(links, core_group(links), "innermost core")


def _hashed(log: QueryLog, settings: Settings) -> Detection:
    links = bucketed_pairs(log, settings.tau(log), settings.window, settings.hashing)
    return _of_links(links, largest_component(links), "largest component, by hashes")


def _of_links(links: Links, group: NDArray[np.int64], note: str) -> Detection:
    """Suspicion by the size of the group, and by the nearest pair among equals."""
    if len(group) < 2:
        return Detection(1.0, _NOBODY, None, note)
    return Detection(len(group) + float(links.weight.max()) / 2, group, None, note)


def _means(log: QueryLog, settings: Settings) -> Detection:
    means = account_means(log, settings.whitening)
    links = mean_links(means, threshold_for(0.05, max(2, log.size), 1, log.dim))
    nearest = nearest_means(means)
    group = largest_component(links)
    return Detection(
        nearest,
        group if len(group) > 1 else _NOBODY,
        mean_p_value(nearest, log.size, log.dim),
        "nearest two means",
    )


def _spectral(log: QueryLog, settings: Settings) -> Detection:
    means = account_means(log, settings.whitening)
    found = scan(means, np.random.default_rng(settings.seed), settings.rounds)
    named = found.members if found.p_value <= 0.05 else _NOBODY
    note = f"largest eigenvalue; k tau about {found.shared:.1f}"
    return Detection(found.largest, named, found.p_value, note)


def _community(log: QueryLog, settings: Settings) -> Detection:
    found = find_community(log, np.random.default_rng(settings.seed), settings.rounds)
    named = found.members if found.p_value <= 0.05 and len(found.members) > 1 else _NOBODY
    return Detection(found.strongest, named, found.p_value, "cosine of rare buckets")


DETECTORS: Mapping[str, Callable[[QueryLog, Settings], Detection]] = {
    "pairs": _pairs,
    "cores": _cores,
    "lsh": _hashed,
    "means": _means,
    "spectral": _spectral,
    "communities": _community,
}
"""By name: the paper's R5, the same links by their innermost core, R5 by hashes, and ours."""


def detect(name: str, log: QueryLog, settings: Settings) -> Detection:
    """Run one estimator."""
    return DETECTORS[name](log, settings)


def suspicion(name: str, log: QueryLog, settings: Settings) -> float:
    """Return an estimator's suspicion alone, without its permutations where it needs none."""
    if name == "spectral":
        return top_direction(account_means(log, settings.whitening))[0]
    return detect(name, log, settings).suspicion
