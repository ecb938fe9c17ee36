"""Sums of integers times field elements in numpy: the field elements are cut into 16-bit pieces.

Σ a · x with small integers a and 254-bit x costs sixteen products of machine numbers instead of
one of Python's, and BLAS or numpy does them. Every function says for which sizes it is exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragwitness.crypto.proofs.field import R

__all__ = ["LIMBS", "combine", "join", "powers", "split"]

LIMBS = 16
_LIMB_BITS = 16
_BYTES = 32


def split(values: Sequence[int]) -> NDArray[np.int64]:
    """Return (m, 16) pieces, the lowest first: value = Σ_i pieces[i] 2^(16 i), each below 2¹⁶.

    Args:
        values: m integers in [0, 2²⁵⁶).
    """
    data = b"".join(value.to_bytes(_BYTES, "little") for value in values)
    return np.frombuffer(data, dtype="<u2").reshape(-1, LIMBS).astype(np.int64)


def join(pieces: NDArray[np.int64]) -> list[int]:
    """Return Σ_i pieces[:, i] 2^(16 i) modulo R, m numbers.

    Args:
        pieces: (m, 16), of any sign and size, as they come out of sums.
    """
    rows: list[list[int]] = pieces.tolist()
    found = []
    for row in rows:
        total = 0
        for piece in reversed(row):
            total = (total << _LIMB_BITS) + piece
        found.append(total % R)
    return found


def combine(matrix: NDArray[np.int16], values: Sequence[int]) -> list[int]:
    """Return matrix · values modulo R, as many numbers as the matrix has rows.

    Exact for matrices of int16 with at most 2²⁰ columns: sums stay below 2⁵¹, and floats of 64
    bits hold integers up to 2⁵³.

    Args:
        matrix: (rows, columns) of small integers.
        values: One number in [0, R) per column.
    """
    sums = matrix.astype(np.float64) @ split(values).astype(np.float64)
    return join(sums.astype(np.int64))


def powers(base: int, count: int, first: int = 1) -> list[int]:
    """Return first · base^i modulo R for i from 0 to count - 1."""
    found, value = [], first % R
    for _ in range(count):
        found.append(value)
        value = value * base % R
    return found
