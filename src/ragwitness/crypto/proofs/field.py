"""The fields of BN254: scalars as Python integers in [0, R), coordinates in [0, P)."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index

from ragwitness.errors import InputError

__all__ = ["P", "R", "check_scalars"]

R = 21888242871839275222246405745257275088548364400416034343698204186575808495617
"""Order of the groups: the modulus of scalars."""

P = 21888242871839275222246405745257275088696311157297823662689037894645226208583
"""Modulus of the coordinates."""


def check_scalars(name: str, values: Iterable[int]) -> list[int]:
    """Return values as Python integers if all are in [0, R), the one form of a scalar.

    numpy's integers become Python's: theirs wrap around without a word.

    Raises:
        InputError: One is not; ``name`` and its place stand in the message.
    """
    checked = [index(value) for value in values]
    for place, value in enumerate(checked):
        if not 0 <= value < R:
            raise InputError(
                f"Value {place} of {name!r} is outside the field.", "Reduce it modulo R first."
            )
    return checked
