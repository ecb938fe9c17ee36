"""Where colluding accounts stand (section 4.7): whose index their queries reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragwitness.collusion.topk import TopHits, hit_probability
from ragwitness.errors import InputError

# Where colluding accounts stand (§2.3, §4.7): in the tenant, in another, or in none.
#
# A query is scored against the index that the service routes its account to. Only the tenant's own
# accounts reach the victim's index, unless access control fails (assumption M4: a shared backend
# routes everybody there). Whoever does not reach it gets answers that are the same in both worlds.

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
