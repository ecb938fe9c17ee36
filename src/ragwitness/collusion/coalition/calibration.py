"""Calibration of the paper's estimator on made-up traffic (section 5.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragwitness.collusion.coalition.graph import largest_component
from ragwitness.collusion.coalition.pairs import similar_pairs
from ragwitness.collusion.coalition.patterns import Pattern, coalition_probes, traffic, unit_rows
from ragwitness.errors import InputError
from ragwitness.privacy.accounting.ranges import whole
from ragwitness.stats.evaluation import Rate
from ragwitness.stats.intervals import proportion_interval

__all__ = ["Harness", "NullPoint", "Recovery", "null_curve", "operating_point", "recovery"]


@dataclass(frozen=True, slots=True)
class Harness:
    """The traffic that the threshold is chosen on.

    Attributes:
        accounts: N.
        queries: Of each account.
        dim: Of the vectors.
        thresholds: Tried, ascending; the paper's 16 points.
        trials: Logs per point.
        seed: Of the traffic.
    """

    accounts: int = 50
    queries: int = 10
    dim: int = 64
    thresholds: tuple[float, ...] = tuple(round(0.20 + 0.05 * i, 2) for i in range(16))
    trials: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what is outside its range."""
        whole("accounts", self.accounts, 2)
        whole("queries", self.queries)
        whole("dim", self.dim, 2)
        whole("trials", self.trials)
        if not self.thresholds or list(self.thresholds) != sorted(set(self.thresholds)):
            raise InputError("Thresholds must be given, each once and in ascending order.")


@dataclass(frozen=True, slots=True)
class NullPoint:
    """Unrelated accounts at one threshold.

    Attributes:
        threshold: Least cosine.
        joined: Share of logs in which any two accounts are joined.
        largest: Mean size of the largest component.
    """

    threshold: float
    joined: Rate
    largest: float


@dataclass(frozen=True, slots=True)
class Recovery:
    """A coalition at one threshold.

    Attributes:
        pattern: How it hides.
        size: Its true size.
        detected: Share of logs in which accounts are joined.
        exact: Share in which the estimate is the true size.
        mean: Of the estimates.
        spread: Their standard deviation.
    """

    pattern: str
    size: int
    detected: Rate
    exact: Rate
    mean: float
    spread: float


def null_curve(harness: Harness) -> tuple[NullPoint, ...]:
    """Estimate on unrelated accounts, uniform on the sphere, at every threshold."""
    sizes = np.empty((harness.trials, len(harness.thresholds)), dtype=np.int64)
    for trial in range(harness.trials):
        rng = np.random.default_rng((harness.seed, trial))
        log = traffic(rng, unit_rows(rng, harness.accounts, harness.queries, harness.dim))
        links = similar_pairs(log, harness.thresholds[0])
        sizes[trial] = [len(largest_component(links.above(tau))) for tau in harness.thresholds]
    return tuple(
        NullPoint(tau, _share(sizes[:, at] > 1), float(sizes[:, at].mean()))
        for at, tau in enumerate(harness.thresholds)
    )


def operating_point(points: Sequence[NullPoint], rate: float = 0.05) -> float:
    """Return the smallest threshold that joins unrelated accounts in at most ``rate`` of logs.

    Raises:
        InputError: None does.
    """
    fitting = [point.threshold for point in points if point.joined.value <= rate]
    if not fitting:
        raise InputError(
            f"At every threshold unrelated accounts are joined in over {rate:g} of logs.",
            "Try thresholds nearer to 1.",
        )
    return min(fitting)


def recovery(
    harness: Harness, pattern: Pattern, size: int, threshold: float, similarity: float = 0.8
) -> Recovery:
    """Estimate where some of the accounts are a coalition.

    Args:
        harness: The traffic.
        pattern: How the coalition hides.
        size: Its accounts.
        threshold: Least cosine.
        similarity: Cosine between two of its probes, where they differ.

    Raises:
        InputError: The coalition is larger than the traffic, or a value is outside its range.
    """
    if not 1 <= size <= harness.accounts:
        raise InputError(f"{size} of {harness.accounts} accounts is no coalition.")
    shape = (size, harness.queries, harness.dim)
    sizes = np.empty(harness.trials, dtype=np.int64)
    for trial in range(harness.trials):
        rng = np.random.default_rng((harness.seed, size, trial))
        probes = coalition_probes(rng, pattern, shape, similarity)
        others = unit_rows(rng, harness.accounts, harness.queries, harness.dim)
        sizes[trial] = len(
            largest_component(similar_pairs(traffic(rng, others, probes), threshold))
        )
    return Recovery(
        pattern,
        size,
        _share(sizes > 1),
        _share(sizes == size),
        float(sizes.mean()),
        float(sizes.std()),
    )


def _share(mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Rate:
    hits, n = int(mask.sum()), mask.size
    return Rate(hits / n, *proportion_interval(hits, n), n)
