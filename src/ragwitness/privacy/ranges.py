"""Ranges of the quantities of an account: a value outside is refused and named."""

from __future__ import annotations

import math
import operator
from typing import Literal, SupportsIndex, get_args

from ragwitness.core.errors import InputError


def positive(name: str, value: float) -> float:
    """Return a finite number above 0.

    Raises:
        InputError: It is not.
    """
    return _checked(name, value, value > 0, "a finite number above 0")


def at_least_zero(name: str, value: float) -> float:
    """Return a finite number that is not negative.

    Raises:
        InputError: It is negative, infinite or not a number.
    """
    return _checked(name, value, value >= 0, "a finite number, 0 or more")


def probability(name: str, value: float) -> float:
    """Return a number strictly between 0 and 1.

    Raises:
        InputError: It is not.
    """
    return _checked(name, value, 0 < value < 1, "a number above 0 and below 1")


def whole(name: str, value: SupportsIndex, least: int = 1) -> int:
    """Return a whole number of at least ``least``.

    Raises:
        InputError: It is smaller, or not whole.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise InputError(f"{name} must be a whole number, {least} or more, not {value!r}.")
    return number


def _checked(name: str, value: float, fits: bool, wanted: str) -> float:
    if not (fits and math.isfinite(value)):
        raise InputError(f"{name} must be {wanted}, not {value:g}.")
    return float(value)


# How far one retrieval score can move when one document changes.
#
# Scores are inner products of vectors of length 1 at most, so they lie within [-1, 1]. Where
# documents may be added or removed, the index is a fixed number of slots, and a free slot holds the
# zero vector. Otherwise the number of answers would reveal the size of the index, which no noise
# hides. The paper takes 1 for every relation (§2.2); for a replacement the largest change is 2.

Relation = Literal["add-remove", "replace"]
"""The difference between neighbouring indices: one slot is filled or free, or holds another one."""


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
        steps = high / grid
        low, high = grid * math.floor(low / grid), grid * math.floor(steps + abs(steps) * 1e-12)
    if relation == "replace":
        return high - low
    free = min(max(0.0, low), high)  # the score of the zero vector
    return max(high - free, free - low)
