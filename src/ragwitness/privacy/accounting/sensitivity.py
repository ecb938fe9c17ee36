"""How far one retrieval score can move when one document changes.

Scores are inner products of vectors of length 1 at most, so they lie within [-1, 1]. Where
documents may be added or removed, the index is a fixed number of slots and a free slot holds the
zero vector; otherwise the number of answers would tell the size of the index, which no noise
hides. The paper takes 1 for every relation (§2.2); for a replacement the largest change is 2.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

from ragwitness.errors import InputError
from ragwitness.privacy.accounting.ranges import at_least_zero

__all__ = ["Relation", "score_sensitivity"]

Relation = Literal["add-remove", "replace"]
"""What may differ between two indices: one slot is filled or free, or holds another document."""


def score_sensitivity(
    relation: Relation, clip: tuple[float, float] | None = None, grid: float = 0.0
) -> float:
    """Return the largest change of one document's score.

    Args:
        relation: Which indices are neighbours.
        clip: Scores are held within these; None for no clipping.
        grid: Scores are rounded down to multiples of this first; 0 for no rounding.

    Raises:
        InputError: An unknown relation, or bounds that leave no score apart.
    """
    if relation not in get_args(Relation):
        raise InputError(f"No such relation: {relation!r}.", "Use add-remove or replace.")
    low, high = clip or (-1.0, 1.0)
    low, high = max(low, -1.0), min(high, 1.0)
    if not low < high:
        raise InputError(
            f"Clipping to {clip} leaves all scores equal.", "Give A,B with A below B, in [-1, 1]."
        )
    if at_least_zero("grid", grid) > 0:
        # A bound that is a multiple in decimals may come out just below it: never a step less.
        most = high / grid
        low, high = grid * math.floor(low / grid), grid * math.floor(most + abs(most) * 1e-12)
    if relation == "replace":
        return high - low
    free = min(max(0.0, low), high)  # the score of the zero vector
    return max(high - free, free - low)
