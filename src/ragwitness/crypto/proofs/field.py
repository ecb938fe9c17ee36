"""Numbers modulo R: sums of small integers times field elements in numpy, and the roots of unity.

A product of a small integer and a number of 255 bits costs sixteen of machine numbers, and BLAS
does them: field elements are cut into pieces of 16 bits. Each function says where it is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ragwitness.crypto.proofs.group import R

GENERATOR = 7
"""Of the field's multiplicative group: 7 is in no domain of roots of unity."""

_PIECES = 16
_PIECE_BITS = 16


def dot(left: Iterable[int], right: Iterable[int]) -> int:
    """Return Σ left · right modulo R."""
    return sum(x * y for x, y in zip(left, right, strict=True)) % R


def powers(base: int, count: int) -> list[int]:
    """Return base^i modulo R for i from 0 to count - 1."""
    return list(accumulate(range(count - 1), lambda held, _: held * base % R, initial=1))


def combine(matrix: NDArray[np.integer], values: Sequence[int]) -> list[int]:
    """Return matrix · values modulo R, as many numbers as the matrix has rows.

    Exact where the entries' sum in a row is below 2³⁷ in size: with pieces of 16 bits sums stay
    below 2⁵³, and floats of 64 bits hold such integers.

    Args:
        matrix: Shape (rows, columns), small integers.
        values: One number in [0, R) per column.
    """
    data = b"".join(value.to_bytes(32, "little") for value in values)
    pieces = np.frombuffer(data, "<u2").reshape(-1, _PIECES).astype(np.float64)
    sums: list[list[int]] = (matrix.astype(np.float64) @ pieces).astype(np.int64).tolist()
    places = [1 << _PIECE_BITS * i for i in range(_PIECES)]
    return [dot(row, places) for row in sums]


def inverses(values: Sequence[int], factor: int = 1) -> list[int]:
    """Return factor/value for each, none of which is 0, with one inversion (Montgomery)."""
    before = list(accumulate(values, lambda held, x: held * x % R, initial=1))
    left, found = factor * pow(before[-1], -1, R), [0] * len(values)
    for i in range(len(values) - 1, -1, -1):
        found[i] = left * before[i] % R
        left = left * values[i] % R
    return found


@cache
def roots(slots: int) -> tuple[int, ...]:
    """Return H, the ``slots``-th roots of unity in order; ``slots`` is a power of two."""
    return tuple(powers(pow(GENERATOR, (R - 1) // slots, R), slots))


def vanishing(slots: int, point: int) -> int:
    """Return Z(point), Z(X) = X^slots - 1."""
    return (pow(point, slots, R) - 1) % R


def lagrange_at(slots: int, point: int) -> list[int]:
    """Return L_j(point) for all j: L_j is 1 at H's j-th root and 0 at the others.

    Args:
        slots: Size of H.
        point: Number outside H.
    """
    # L_j(x) = Z(x) / (n (x w^(-j) - 1))
    factor = vanishing(slots, point) * pow(slots, -1, R) % R
    back = (1, *roots(slots)[:0:-1])
    return inverses([point * root % R - 1 for root in back], factor)


def transform(values: Sequence[int], base: Sequence[int]) -> list[int]:
    """Return Σ_j values[j] base[1]^(jk) for all k, unreduced: a polynomial's values on H.

    Args:
        values: As many as a power of two.
        base: Powers of a root of unity of that order, at least half of them.
    """
    if len(values) == 1:
        return list(values)
    even, odd = (transform(values[i::2], base[::2]) for i in (0, 1))
    turned = [y * w % R for y, w in zip(odd, base, strict=False)]
    low = [x + y for x, y in zip(even, turned, strict=True)]
    return low + [x - y for x, y in zip(even, turned, strict=True)]


def interpolate(values: Sequence[int]) -> list[int]:
    """Return the coefficients of the polynomial that has these values on H."""
    size = len(values)
    share, back = pow(size, -1, R), (1, *roots(size)[:0:-1])
    return [x * share % R for x in transform(values, back)]
