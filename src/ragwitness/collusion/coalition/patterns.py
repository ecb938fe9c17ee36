"""Made-up traffic: unrelated accounts, benign shared intents, and coalitions that hide.

The paper's patterns: P-A, one probe for all; P-B, the probe with fresh jitter per query; P-C, a
fixed set of paraphrases. Evasion in general: every probe has cosine sqrt(tau) with the target,
so two of them have cosine tau, and each account keeps the share tau of its signal.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragwitness.collusion.coalition.log import QueryLog, make_log
from ragwitness.errors import InputError
from ragwitness.privacy.accounting.ranges import whole

__all__ = ["PATTERNS", "Pattern", "coalition_probes", "traffic", "unit_rows", "with_intents"]

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
    target = unit_rows(rng, dim)
    if pattern == "identical":
        return np.broadcast_to(target, shape).copy()
    sizes = {"jittered": (k, m), "paraphrased": (whole("intents", intents),), "steady": (k, 1)}
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
