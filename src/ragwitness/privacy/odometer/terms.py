"""What a meter measures against: the mechanism's constants and the budget."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ragwitness.errors import InputError
from ragwitness.privacy.accounting.ranges import positive, whole
from ragwitness.privacy.accounting.sensitivity import Relation, score_sensitivity

if TYPE_CHECKING:
    from ragwitness.privacy.mechanism import Mechanism

__all__ = ["Terms"]

_LARGEST_SCALE = 1 << 20


@dataclass(frozen=True, slots=True)
class Terms:
    """Constants of a noisy retrieval, and how much its index may spend.

    Attributes:
        dimension: Of the query vectors.
        scale: Query vectors are whole numbers; divided by this they have length 1 at most.
        sigma: Noise, in units of the score of such vectors.
        budget: mu that no sequence of answers may pass.
        relation: Which indices are neighbours.
        clip: Scores are held within these before the noise; None for no clipping.
        grid: Width of the grid that scores are rounded to before the noise; 0 for none.
    """

    dimension: int
    scale: int
    sigma: float
    budget: float
    relation: Relation = "replace"
    clip: tuple[float, float] | None = None
    grid: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what no mechanism has.

        Raises:
            InputError: A value is outside its range.
        """
        whole("dimension", self.dimension)
        if whole("scale", self.scale) > _LARGEST_SCALE:
            raise InputError(f"scale must be at most {_LARGEST_SCALE}, not {self.scale}.")
        positive("sigma", self.sigma)
        positive("budget", self.budget)
        score_sensitivity(self.relation, self.clip, self.grid)

    @classmethod
    def of(cls, mechanism: Mechanism, budget: float, relation: Relation = "replace") -> Terms:
        """Return the terms of the integer mechanism: its noise, grid and clipping.

        Args:
            mechanism: That answers the queries which are metered.
            budget: mu that no sequence of answers may pass.
            relation: Which indices are neighbours.
        """
        grid = (1 << mechanism.shift) / mechanism.scale**2
        low, high = mechanism.bounds
        return cls(
            mechanism.dimension,
            mechanism.scale,
            mechanism.gaussian_sigma * grid,
            budget,
            relation,
            (low * grid, high * grid),
            grid,
        )

    @property
    def reach(self) -> float:
        """Largest distance of two documents that may stand in the same slot."""
        return 2.0 if self.relation == "replace" else 1.0

    def worst_mu(self, queries: int) -> float:
        """Return mu of ``queries`` answers, whatever was asked."""
        step = score_sensitivity(self.relation, self.clip, self.grid)
        return step * math.sqrt(queries) / self.sigma

    def mu_of(self, eigenvalue: float, queries: int) -> float:
        """Return mu of answers by the largest eigenvalue of the sum of v v^T.

        sqrt(sum (|a_t| + g)^2) <= sqrt(sum a_t^2) + g sqrt(T), since rounding to a grid of width g
        adds at most g to a difference; clipping adds nothing.
        """
        spectral = self.reach * math.sqrt(max(0.0, eigenvalue)) + self.grid * math.sqrt(queries)
        return min(spectral / self.sigma, self.worst_mu(queries))

    def largest_eigenvalue(self, queries: int) -> float:
        """Return the largest eigenvalue that the budget leaves room for; negative for none."""
        room = self.budget * self.sigma - self.grid * math.sqrt(queries)
        return math.copysign((room / self.reach) ** 2, room)

    def as_json(self) -> dict[str, object]:
        """Return the fields as JSON has them."""
        found = asdict(self)
        return {**found, "clip": list(self.clip) if self.clip else None}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Terms:
        """Return terms from what :meth:`as_json` gave."""
        clip = fields.pop("clip")
        return cls(**fields, clip=None if clip is None else (float(clip[0]), float(clip[1])))
