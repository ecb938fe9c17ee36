"""Ranges of the quantities of an account: a value outside is refused and named."""

from __future__ import annotations

import math
import operator
from typing import SupportsIndex

from ragwitness.errors import InputError

__all__ = ["at_least_zero", "positive", "probability", "whole"]


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
