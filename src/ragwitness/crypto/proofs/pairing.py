"""Products of pairings e(P, Q) on BN254, for a verifier in pure Python: the optimal ate pairing.

py_ecc's field F_p¹² = F_p[w] / (w¹² - 18w⁶ + 82) is used, its pairing is the tests' oracle. Here
the points of G2 stay on the twist over F_p² (w⁶ = 9 + u), all pairs share the squarings and one
final exponentiation, and the lines of a point of G2, which do not depend on P, are remembered: five
pairings take 0.08 s instead of 0.7 s.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from ragwitness.crypto.proofs.field import P, R
from ragwitness.crypto.proofs.points import G1, G2
from ragwitness.errors import MissingExtraError

__all__ = ["bn128", "has_order", "pairing_product"]

_Fp2: TypeAlias = tuple[int, int]

_LOOP = 29793968203157093288  # 6x + 2 with the curve's x = 4965661367192848881
_HARD = (P**4 - P**2 + 1) // R


class _Line(NamedTuple):
    """y - slope·(x·w) + offset·w³, its two numbers in the basis 1, w⁶."""

    doubles: bool
    slope: _Fp2
    offset: _Fp2


def bn128() -> Any:
    """Return py_ecc's curve.

    Raises:
        MissingExtraError: py_ecc is not installed.
    """
    limit = sys.getrecursionlimit()
    try:
        return importlib.import_module("py_ecc.optimized_bn128")
    except ImportError as error:
        raise MissingExtraError("Checking a proof", "verify") from error
    finally:  # py_ecc raises it to 100,000 for the process: deep JSON would then overrun the stack
        sys.setrecursionlimit(limit)


def pairing_product(pairs: Iterable[tuple[G1, G2]]) -> Any:
    """Return Π e(P, Q) as an element of py_ecc's FQ12.

    Args:
        pairs: Checked points; those of G2 have order R or are infinity.

    Raises:
        MissingExtraError: py_ecc is not installed.
    """
    field = bn128().FQ12
    held = [(p, _lines(q)) for p, q in pairs if p != (0, 0) and q != ((0, 0), (0, 0))]
    if not held:
        return field.one()
    product = field.one()
    for step, line in enumerate(held[0][1]):
        if line.doubles:
            product = product * product
        for point, lines in held:
            product = product * field(_at(lines[step], point))
    return _final(product)


def has_order(point: G2) -> bool:
    """Return whether R · point is infinity, for a finite point of the twisted curve."""
    current = point
    try:
        for bit in bin(R - 1)[3:]:
            current = _step(current, current)[1]
            if bit == "1":
                current = _step(current, point)[1]
    except ValueError:  # a sum was infinity too early: the point's order is below R
        return False
    (x, y) = point
    return current == (x, (-y[0] % P, -y[1] % P))


def _at(line: _Line, point: G1) -> list[int]:
    (a, b), (c, d), (x, y) = line.slope, line.offset, point
    return [y, -a * x % P, 0, c, 0, 0, 0, -b * x % P, 0, d, 0, 0]


@lru_cache(maxsize=32)
def _lines(point: G2) -> tuple[_Line, ...]:
    """The lines of Miller's loop through multiples of a point of order R on the twist."""
    lines, current = [], point
    for bit in bin(_LOOP)[3:]:
        line, current = _step(current, current)
        lines.append(line)
        if bit == "1":
            line, current = _step(current, point)
            lines.append(line)
    once = _frobenius(point)
    (x, y) = _frobenius(once)
    line, current = _step(current, once)
    last, _ = _step(current, (x, (-y[0] % P, -y[1] % P)))
    return (*lines, line, last)


def _step(left: G2, right: G2) -> tuple[_Line, G2]:
    """Return the line through two points of the twist, or the tangent, and their sum."""
    (x1, y1), (x2, y2) = left, right
    if left == right:
        top, below = _times((3, 0), _times(x1, x1)), (2 * y1[0], 2 * y1[1])
    else:
        top, below = _minus(y2, y1), _minus(x2, x1)
    slope = _times(top, _inverse(below))
    x3 = _minus(_minus(_times(slope, slope), x1), x2)
    y3 = _minus(_times(slope, _minus(x1, x3)), y1)
    offset = _minus(_times(slope, x1), y1)
    return _Line(left == right, _basis(slope), _basis(offset)), (x3, y3)


def _basis(value: _Fp2) -> _Fp2:
    """Return a + bu as (a - 9b) + b·w⁶."""
    return (value[0] - 9 * value[1]) % P, value[1]


def _times(left: _Fp2, right: _Fp2) -> _Fp2:
    (a, b), (c, d) = left, right
    return (a * c - b * d) % P, (a * d + b * c) % P


def _minus(left: _Fp2, right: _Fp2) -> _Fp2:
    return (left[0] - right[0]) % P, (left[1] - right[1]) % P


def _inverse(value: _Fp2) -> _Fp2:
    a, b = value
    scale = pow(a * a + b * b, -1, P)
    return a * scale % P, -b * scale % P


@lru_cache(maxsize=1)
def _twist_powers() -> tuple[_Fp2, _Fp2]:
    """(9 + u)^((p - 1)/3) and (9 + u)^((p - 1)/2): what Frobenius does to w² and w³."""
    field = bn128().FQ2
    third, half = (field([9, 1]) ** ((P - 1) // part) for part in (3, 2))
    (a, b), (c, d) = third.coeffs, half.coeffs
    return (int(a), int(b)), (int(c), int(d))


def _frobenius(point: G2) -> G2:
    (x, y), (third, half) = point, _twist_powers()
    return _times((x[0], -x[1]), third), _times((y[0], -y[1]), half)


@lru_cache(maxsize=1)
def _square_frobenius() -> tuple[int, ...]:
    """What raising to p² does to 1, w, …, w¹¹: powers of a sixth root of unity in F_p."""
    root = (bn128().FQ2([9, 1]) ** ((P * P - 1) // 6)).coeffs
    return tuple(pow(int(root[0]), i, P) for i in range(12))


def _final(value: Any) -> Any:
    """Raise to (p¹² - 1)/r = (p⁶ - 1)(p² + 1) · (p⁴ - p² + 1)/r."""
    kind = type(value)
    conjugate = kind([-c if i % 2 else c for i, c in enumerate(map(int, value.coeffs))])
    value = conjugate / value  # to p⁶ w becomes -w
    moved = [int(c) * g for c, g in zip(value.coeffs, _square_frobenius(), strict=True)]
    value = kind(moved) * value
    return value**_HARD
