"""The rank test: one model, no twin, no assumption about scores.

H0: the model does not depend on which of the M candidates was planted, given all else it may have
seen. Then t* is a uniform draw from the candidates, whatever their scores, and
p = (1 + #{j != *: S_j >= S_*}) / M is at most a with probability at most a. Ties count against the
accusation. Two conditions: the candidates were fixed before the model answered, and t* stands in
documents alone. A p-value cannot be below 1 / M.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragwitness.errors import InputError

__all__ = ["TIE", "SlotScores", "rank_of", "rank_p_value", "standing"]

Values = NDArray[np.float64]

TIE = 1e-9
"""Scores closer than this are equal: journals keep six digits, and a tie must stay one."""


@dataclass(frozen=True, slots=True)
class SlotScores:
    """Scores of one slot's candidates at one model.

    Attributes:
        scores: S_j, mean log-probability or hit rate over the same examples, shape (M,).
        chosen: Place of the planted candidate.

    Raises:
        InputError: Fewer than two scores, one not finite, or no such place.
    """

    scores: Values
    chosen: int

    def __post_init__(self) -> None:
        """Refuse what no rank can be taken in."""
        scores = np.asarray(self.scores, dtype=np.float64)
        object.__setattr__(self, "scores", scores)
        if scores.ndim != 1 or scores.size < 2:
            raise InputError("A rank needs the scores of at least two candidates.")
        if not np.isfinite(scores).all():
            raise InputError("Scores must be finite; leave unscorable examples out.")
        if not 0 <= self.chosen < scores.size:
            raise InputError(f"There is no candidate {self.chosen} among {scores.size}.")


def rank_of(slot: SlotScores, *, ties_against: bool = True) -> int:
    """Return the drawn candidate's rank, 1 being the highest.

    Args:
        slot: Scores.
        ties_against: Whether equal scores count as higher ones, else as lower ones.
    """
    own = slot.scores[slot.chosen]
    if ties_against:
        return int((slot.scores >= own - TIE).sum())  # itself included
    return 1 + int((slot.scores > own + TIE).sum())


def rank_p_value(slot: SlotScores) -> float:
    """Return rank / M; at least 1 / M."""
    return rank_of(slot) / slot.scores.size


def standing(scores: ArrayLike) -> Values:
    """Return each candidate's (S_j - mean) / sd within its slot, shape (M,); 0 where all tie.

    Every candidate counts in mean and sd, the planted one too, so that no place is special.
    """
    values = np.asarray(scores, dtype=np.float64)
    spread = float(values.std())
    if spread <= TIE:
        return np.zeros_like(values)
    return np.asarray((values - values.mean()) / spread, dtype=np.float64)
