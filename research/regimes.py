"""Where colluding accounts stand (section 4.7), and what they ask an index that we made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.privacy.ranges import positive, whole
from research.top_hits import TopHits, hit_probability

# Where colluding accounts stand (§2.3, §4.7): in the tenant, in another, or in none.
#
# A query is scored against the index that the service routes its account to. Only the tenant's own
# accounts reach the victim's index, unless access control fails (assumption M4: a shared backend
# routes everybody there). Whoever does not reach it gets answers that are the same in both worlds.

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Regime: TypeAlias = Literal["same-tenant", "cross-tenant", "external"]
REGIMES: tuple[Regime, ...] = ("same-tenant", "cross-tenant", "external")


@dataclass(frozen=True, slots=True, eq=False)
class Deployment:
    """A service with several tenants.

    Attributes:
        indices: Vectors by tenant, each shape (n, dim).
        victim: Tenant whose slot 0 is under attack.
        shared: Whether access control has failed (M4): every account reaches the victim's index.
    """

    indices: Mapping[str, Matrix]
    victim: str
    shared: bool = False

    def __post_init__(self) -> None:
        """Refuse a victim that is no tenant."""
        if self.victim not in self.indices:
            raise InputError(f"There is no tenant {self.victim!r}.")

    def route(self, tenant: str | None) -> str | None:
        """Return the tenant whose index answers an account of ``tenant``; None refuses it."""
        if self.shared:
            return self.victim
        return tenant if tenant in self.indices else None


def regime_hits(
    deployment: Deployment, regime: Regime, decoy: Matrix, sigma: float, k: int
) -> TopHits | None:
    """Return how often slot 0 comes back to a coalition that repeats the target's own vector.

    Args:
        deployment: With the target in slot 0 of the victim's index.
        regime: Where the coalition's accounts stand.
        decoy: What slot 0 holds in the other world, shape (dim,).
        sigma: Of the noise.
        k: Ids returned.

    Returns:
        Probabilities per query in either world; None where the accounts are refused.

    Raises:
        InputError: An unknown regime, no second tenant for ``cross-tenant``, or a value outside
            its range.
    """
    reached = deployment.route(_tenant(deployment, regime))
    if reached is None:
        return None
    index = deployment.indices[reached]
    probe = deployment.indices[deployment.victim][0]
    others = index[1:] @ probe
    swapped = decoy if reached == deployment.victim else index[0]
    return TopHits(
        hit_probability(float(index[0] @ probe), others, sigma, k),
        hit_probability(float(swapped @ probe), others, sigma, k),
    )


def _tenant(deployment: Deployment, regime: Regime) -> str | None:
    if regime == "same-tenant":
        return deployment.victim
    if regime == "external":
        return None
    if regime != "cross-tenant":
        raise InputError(f"There is no regime {regime!r}.", f"Available: {', '.join(REGIMES)}.")
    others = [name for name in deployment.indices if name != deployment.victim]
    if not others:
        raise InputError("Cross-tenant collusion needs a second tenant.")
    return others[0]


def planted_index(
    rng: np.random.Generator, n: int, dim: int, gap: float = 1.0
) -> tuple[Vector, Vector, Vector]:
    """Draw an index on the unit sphere whose slot 0 is the one under attack.

    Args:
        rng: Source of randomness.
        n: Slots.
        dim: Of the vectors, 2 or more.
        gap: Score of the target for its own probe, minus that of the decoy; from 0 to 2.

    Returns:
        The probe (the target's own vector), shape (dim,); the index with the target in slot 0,
        shape (n, dim); the decoy that slot 0 holds in the other world, shape (dim,).

    Raises:
        InputError: A value is outside its range.
    """
    whole("n", n, 2)
    whole("dim", dim, 2)
    if not 0 <= gap <= 2:
        raise InputError(f"The gap of unit vectors lies within 0 and 2, not {gap:g}.")
    # The decoy lies at cosine 1 - gap of the target, in a random direction.
    index = rng.standard_normal((n, dim))
    index /= np.linalg.norm(index, axis=1, keepdims=True)
    target, side = index[0], rng.standard_normal(dim)
    side -= (side @ target) * target
    side /= np.linalg.norm(side)
    cosine = 1 - gap
    decoy = cosine * target + math.sqrt(1 - cosine * cosine) * side
    return target.copy(), index, decoy


def even_queries(rng: np.random.Generator, count: int, dim: int) -> Matrix:
    """Draw queries that cover all directions alike: random orthonormal bases, one after another.

    Args:
        rng: Source of randomness.
        count: Queries; a multiple of ``dim`` covers exactly evenly.
        dim: Of the vectors.

    Returns:
        Shape (count, dim).
    """
    whole("count", count)
    bases = math.ceil(count / whole("dim", dim, 2))
    # Whole random bases: Q^T Q is a multiple of the identity, the best design there is.
    rows = [np.linalg.qr(rng.standard_normal((dim, dim)))[0] for _ in range(bases)]
    return np.concatenate(rows)[:count]


def pooled_mu(gaps: Vector, sigma: float, weights: Vector | None = None) -> float:
    """Return how far apart the two worlds are in a weighted sum of answers.

    Args:
        gaps: Score with the document minus score without it, per answer, shape (answers,).
        sigma: Of the noise.
        weights: Of the sum, shape (answers,); None for the likelihood ratio's.

    Raises:
        InputError: ``sigma`` is outside its range, or gaps and weights differ in size.
    """
    weights = gaps if weights is None else weights
    if gaps.shape != weights.shape or gaps.ndim != 1:
        raise InputError("There must be one weight per gap.")
    length = float(np.linalg.norm(weights))
    return float(weights @ gaps) / (positive("sigma", sigma) * length) if length else 0.0


def likelihood_ratio(answers: Matrix, with_it: Matrix, without: Matrix, sigma: float) -> Matrix:
    """Return the log-likelihood ratio: the sum of (s1 - s0)(y - (s1 + s0)/2) / sigma^2.

    Args:
        answers: y, shape (trials, answers).
        with_it: s1, scores with the document, shape (answers,).
        without: s0, scores without it.
        sigma: Of the noise.

    Returns:
        Shape (trials,).

    Raises:
        InputError: ``sigma`` is outside its range, or the shapes differ.
    """
    if answers.shape[-1:] != with_it.shape or with_it.shape != without.shape:
        raise InputError("There must be one score per answer in either world.")
    gaps = with_it - without
    ratio: Matrix = (answers - (with_it + without) / 2) @ gaps / positive("sigma", sigma) ** 2
    return ratio
