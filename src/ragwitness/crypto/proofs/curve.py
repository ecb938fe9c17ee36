"""The verifier's arithmetic on BN254: sums of many multiples, and products of pairings.

Points are read and checked here, whatever computes with them then: zksnake where it is installed
(:mod:`.native`), else Python on py_ecc's fields, which is also the reference.
"""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any, NamedTuple

from ragwitness.crypto.proofs.points import (
    G1,
    G2,
    Fp2,
    P,
    R,
    fp2_minus,
    fp2_times,
    negate,
    parse_twist,
)
from ragwitness.errors import InputError, MissingExtraError, VerificationError


def parse_g2(data: bytes, check: str = "point") -> G2:
    """Return the point of 128 bytes.

    Raises:
        VerificationError: ``<check>.size``, ``.field``, ``.curve``, or ``.subgroup`` where it is
            on the twisted curve and not in the group of order R.
        MissingExtraError: py_ecc is not installed.
    """
    point = parse_twist(data, check)
    if point != ((0, 0), (0, 0)) and not in_twist_subgroup(point):
        raise VerificationError(f"{check}.subgroup", "A point lies outside the group of order R.")
    return point


# Products of pairings e(P, Q) on BN254, for a verifier in pure Python: the optimal ate pairing.
#
# py_ecc's field F_p¹² = F_p[w] / (w¹² - 18w⁶ + 82) is used, its pairing is the tests' oracle. Here
# the points of G2 stay on the twist over F_p² (w⁶ = 9 + u), all pairs share the squarings and one
# final exponentiation, and the lines of a point of G2, which do not depend on P, are remembered:
# five pairings take 0.08 s instead of 0.7 s.

_LOOP = 29793968203157093288  # 6x + 2 with the curve's x = 4965661367192848881
_HARD = (P**4 - P**2 + 1) // R


class _Line(NamedTuple):
    """y - slope·(x·w) + offset·w³, its two numbers in the basis 1, w⁶."""

    doubles: bool
    slope: Fp2
    offset: Fp2


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
    # Miller's loop, once for all pairs: they share the squarings.
    held = [(p, _lines(q)) for p, q in pairs if p != (0, 0) and q != ((0, 0), (0, 0))]
    if not held:
        return field.one()
    product = field.one()
    for step, line in enumerate(held[0][1]):
        if line.doubles:
            product = product * product
        for point, lines in held:
            # The line at P: y - slope·(x·w) + offset·w³, in the basis 1, w, …, w¹¹.
            (a, b), (c, d), (x, y) = lines[step].slope, lines[step].offset, point
            value = [y, -a * x % P, 0, c, 0, 0, 0, -b * x % P, 0, d, 0, 0]
            product = product * field(value)
    return _final(product)


@lru_cache(maxsize=1)
def fast() -> ModuleType | None:
    """Return :mod:`.native` where zksnake is installed and known; None where Python has to do."""
    from ragwitness.crypto.proofs import native

    try:
        return native if native.layout_is_known() else None
    except MissingExtraError:
        return None


def in_twist_subgroup(point: G2) -> bool:
    """Return whether a finite point of the twisted curve has order R: R · point is infinity."""
    if native := fast():
        return bool(native.has_order_r(native.to_native_g2(point)))
    # Double and add up to (R - 1) · point, which has to be -point.
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


@lru_cache(maxsize=32)
def _lines(point: G2) -> tuple[_Line, ...]:
    """The lines of Miller's loop through multiples of a point of order R on the twist."""
    lines, current = [], point
    # Double and add along 6x + 2.
    for bit in bin(_LOOP)[3:]:
        line, current = _step(current, current)
        lines.append(line)
        if bit == "1":
            line, current = _step(current, point)
            lines.append(line)
    # The two lines of the optimal ate pairing that end the loop: through π(Q), and -π²(Q).
    once = _frobenius(point)
    (x, y) = _frobenius(once)
    line, current = _step(current, once)
    last, _ = _step(current, (x, (-y[0] % P, -y[1] % P)))
    return (*lines, line, last)


def _step(left: G2, right: G2) -> tuple[_Line, G2]:
    """Return the line through two points of the twist, or the tangent, and their sum."""
    (x1, y1), (x2, y2) = left, right
    if left == right:
        top, below = fp2_times((3, 0), fp2_times(x1, x1)), (2 * y1[0], 2 * y1[1])
    else:
        top, below = fp2_minus(y2, y1), fp2_minus(x2, x1)
    # 1 / (a + bu) = (a - bu) / (a² + b²).
    norm = pow(below[0] * below[0] + below[1] * below[1], -1, P)
    slope = fp2_times(top, (below[0] * norm % P, -below[1] * norm % P))
    x3 = fp2_minus(fp2_minus(fp2_times(slope, slope), x1), x2)
    y3 = fp2_minus(fp2_times(slope, fp2_minus(x1, x3)), y1)
    offset = fp2_minus(fp2_times(slope, x1), y1)
    return _Line(left == right, _basis(slope), _basis(offset)), (x3, y3)


def _basis(value: Fp2) -> Fp2:
    """Return a + bu as (a - 9b) + b·w⁶."""
    return (value[0] - 9 * value[1]) % P, value[1]


@lru_cache(maxsize=1)
def _twist_powers() -> tuple[Fp2, Fp2]:
    """(9 + u)^((p - 1)/3) and (9 + u)^((p - 1)/2): what Frobenius does to w² and w³."""
    field = bn128().FQ2
    third, half = (field([9, 1]) ** ((P - 1) // part) for part in (3, 2))
    (a, b), (c, d) = third.coeffs, half.coeffs
    return (int(a), int(b)), (int(c), int(d))


def _frobenius(point: G2) -> G2:
    (x, y), (third, half) = point, _twist_powers()
    return fp2_times((x[0], -x[1]), third), fp2_times((y[0], -y[1]), half)


@lru_cache(maxsize=1)
def _square_frobenius() -> tuple[int, ...]:
    """What raising to p² does to 1, w, …, w¹¹: powers of a sixth root of unity in F_p."""
    root = (bn128().FQ2([9, 1]) ** ((P * P - 1) // 6)).coeffs
    return tuple(pow(int(root[0]), i, P) for i in range(12))


def _final(value: Any) -> Any:
    """Raise to (p¹² - 1)/r = (p⁶ - 1)(p² + 1) · (p⁴ - p² + 1)/r."""
    kind = type(value)
    # p⁶ - 1, the easy part: w becomes -w.
    conjugate = kind([-c if i % 2 else c for i, c in enumerate(map(int, value.coeffs))])
    value = conjugate / value
    # p² + 1: a power of p² multiplies each coefficient by a root of unity.
    moved = [int(c) * g for c, g in zip(value.coeffs, _square_frobenius(), strict=True)]
    value = kind(moved) * value
    # (p⁴ - p² + 1)/r, the hard part.
    return value**_HARD


_INFINITY: G1 = (0, 0)
_SIZES = (0, 32, 192, 256)  # of scalars in bits; those between two are summed together


@dataclass(frozen=True, slots=True)
class Term:
    """One factor e(scalar · g1, g2) of a product of pairings.

    Attributes:
        scalar: Any integer.
        g1: Checked point of G1.
        g2: Checked point of G2.
    """

    scalar: int
    g1: G1
    g2: G2


def msm(points: Sequence[G1], scalars: Sequence[int]) -> G1:
    """Return Σ scalars[i] · points[i].

    Buckets (Pippenger), for short, middle and long scalars apart, each over the bits that the
    largest has: 384 scalars of 8 bits cost a few hundred additions, whatever stands beside them.

    Args:
        points: Checked points.
        scalars: As many integers of any size and sign.

    Raises:
        InputError: There are not as many scalars as points.
        MissingExtraError: py_ecc is not installed.
    """
    if len(points) != len(scalars):
        raise InputError(f"{len(points)} points need as many scalars, not {len(scalars)}.")
    # Signs go to the points, so that a scalar of -3 has two bits and not 254.
    short = (s if abs(s) < R else s % R for s in scalars)
    pairs = [
        (abs(s), p if s > 0 else negate(p))
        for p, s in zip(points, short, strict=True)
        if p != _INFINITY
    ]
    if pairs and (native := fast()):
        held = [native.to_native_g1(point) for _, point in pairs]
        found: G1 = native.from_native_g1(native.native_msm(held, [scalar for scalar, _ in pairs]))
        return found
    total = bn128().Z1
    for least, most in itertools.pairwise(_SIZES):
        part = [pair for pair in pairs if least < pair[0].bit_length() <= most]
        if part:
            total = bn128().add(total, _buckets(part))
    if bn128().is_inf(total):
        return _INFINITY
    x, y = bn128().normalize(total)
    return int(x.n), int(y.n)


def product_holds(terms: Iterable[Term]) -> bool:
    """Return whether Π e(scalar · g1, g2) = 1, with one final exponentiation for all.

    Terms that share their point of G2 cost one pairing together, and terms that share both their
    points one multiple.

    Raises:
        MissingExtraError: py_ecc is not installed.
    """
    # Scalars of one pair of points are added, then the points that share one of G2.
    groups: dict[G2, dict[G1, int]] = {}
    for term in terms:
        scalars = groups.setdefault(term.g2, {})
        scalars[term.g1] = scalars.get(term.g1, 0) + term.scalar
    pairs = [(msm(list(held), list(held.values())), g2) for g2, held in groups.items()]
    if native := fast():
        return bool(native.product_is_one(pairs))
    return bool(pairing_product(pairs) == bn128().FQ12.one())


def _buckets(pairs: Sequence[tuple[int, G1]]) -> Any:
    """Return Σ scalar · point for positive scalars and finite points (Pippenger)."""
    curve = bn128()
    scalars = [s for s, _ in pairs]
    bits = max(scalars).bit_length()
    # The width of a digit with the fewest additions.
    width = min(range(1, 13), key=lambda w: -(-bits // w) * (len(pairs) + (2 << w)))
    points = [(curve.FQ(x), curve.FQ(y), curve.FQ.one()) for _, (x, y) in pairs]
    total = curve.Z1
    for shift in reversed(range(0, bits, width)):
        for _ in range(width):
            total = curve.double(total)
        # Every point goes to the bucket of its digit.
        buckets: list[Any] = [None] * (1 << width)
        for scalar, point in zip(scalars, points, strict=True):
            digit = scalar >> shift & (1 << width) - 1
            if not digit:
                continue
            held = buckets[digit]
            buckets[digit] = point if held is None else curve.add(held, point)
        # Σ digit · bucket by running sums, the highest digit first.
        running = curve.Z1
        for held in buckets[:0:-1]:
            if held is not None:
                running = curve.add(running, held)
            total = curve.add(total, running)
    return total
