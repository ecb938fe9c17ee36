"""Made-up traffic: unrelated accounts, benign shared intents, and coalitions that hide.

The paper's patterns: P-A, one probe for all; P-B, the probe with fresh jitter per query; P-C, a
fixed set of paraphrases. Evasion in general: every probe has cosine sqrt(tau) with the target,
so two of them have cosine tau, and each account keeps the share tau of its signal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.privacy.account_pairs import largest_component, similar_pairs
from ragwitness.privacy.query_log import QueryLog, make_log
from ragwitness.privacy.ranges import whole
from ragwitness.stats.rates import Rate, proportion_interval

Vectors = NDArray[np.float64]
Pattern: TypeAlias = Literal["identical", "jittered", "paraphrased", "steady"]
PATTERNS: tuple[Pattern, ...] = ("identical", "jittered", "paraphrased", "steady")
"""P-A, P-B (jitter fresh in each query), P-C (drawn from few fixed paraphrases), and one fixed
jitter per account."""


def unit_rows(rng: np.random.Generator, *shape: int) -> Vectors:
    """Draw vectors uniform on the unit sphere; the last of ``shape`` is their dimension."""
    rows = rng.standard_normal(shape)
    unit: Vectors = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return unit


def coalition_probes(
    rng: np.random.Generator,
    pattern: Pattern,
    shape: tuple[int, int, int],
    tau: float = 1.0,
    intents: int = 5,
) -> Vectors:
    """Draw the probes of a coalition.

    Args:
        rng: Source of randomness.
        pattern: How it hides; see :data:`PATTERNS`.
        shape: Accounts, queries of each, dimension.
        tau: Cosine between two probes of different jitter, above 0 and at most 1.
        intents: Fixed paraphrases of P-C.

    Returns:
        Shape ``shape``, each of unit length.

    Raises:
        InputError: An unknown pattern, or a value outside its range.
    """
    if pattern not in PATTERNS:
        raise InputError(f"There is no pattern {pattern!r}.", f"Available: {', '.join(PATTERNS)}.")
    if not 0 < tau <= 1:
        raise InputError(f"tau is a cosine above 0 and at most 1, not {tau:g}.")
    k, m, dim = shape
    # sqrt(tau) of the common target, sqrt(1 - tau) of a side direction of its own.
    target = unit_rows(rng, dim)
    if pattern == "identical":
        return np.broadcast_to(target, shape).copy()
    sizes = {"jittered": (k, m), "paraphrased": (whole("intents", intents),), "steady": (k, 1)}
    # What is drawn once and what fresh tells the patterns apart.
    sides = unit_rows(rng, *sizes[pattern], dim)
    sides -= (sides @ target)[..., None] * target
    sides /= np.linalg.norm(sides, axis=-1, keepdims=True)
    probes = math.sqrt(tau) * target + math.sqrt(1 - tau) * sides
    if pattern == "paraphrased":
        return np.asarray(probes[rng.integers(0, intents, (k, m))])
    return np.broadcast_to(probes, shape).copy()


def with_intents(
    rng: np.random.Generator, queries: Vectors, share: float, intents: Vectors
) -> Vectors:
    """Replace a share of the queries by intents that many users have in common (FAQ).

    Args:
        rng: Source of randomness.
        queries: Shape (accounts, queries, dim).
        share: Of the queries, from 0 to 1.
        intents: The common ones, shape (intents, dim).
    """
    common = intents[rng.integers(0, len(intents), queries.shape[:2])]
    return np.where((rng.random(queries.shape[:2]) < share)[..., None], common, queries)


def traffic(
    rng: np.random.Generator, queries: Vectors, coalition: Vectors | None = None
) -> QueryLog:
    """Make a log; the coalition takes the place of the first accounts.

    Args:
        rng: Of the times, uniform within an hour.
        queries: Shape (accounts, queries, dim).
        coalition: Shape (fewer accounts, queries, dim); None for none.
    """
    rows = queries.copy()
    if coalition is not None:
        rows[: len(coalition)] = coalition
    n, m, dim = rows.shape
    names = [f"account-{at}" for at in range(n) for _ in range(m)]
    return make_log(names, rng.uniform(0, 3600, n * m), rows.reshape(-1, dim))


# Calibration of the paper's estimator on made-up traffic (section 5.5).


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
