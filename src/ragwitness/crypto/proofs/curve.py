"""The verifier's arithmetic on BN254: sums of many multiples, and products of pairings."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ragwitness.crypto.proofs.field import P, R
from ragwitness.crypto.proofs.pairing import bn128, has_order, pairing_product
from ragwitness.crypto.proofs.points import G1, G2
from ragwitness.errors import InputError

__all__ = ["Term", "in_twist", "in_twist_subgroup", "msm", "negate", "product_holds"]

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


def negate(point: G1) -> G1:
    """Return -point."""
    return point[0], -point[1] % P


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
    pairs = [
        (abs(s), p if s > 0 else negate(p))
        for p, s in zip(points, map(_reduced, scalars), strict=True)
        if p != _INFINITY
    ]
    total = bn128().Z1
    for least, most in itertools.pairwise(_SIZES):
        part = [pair for pair in pairs if least < pair[0].bit_length() <= most]
        if part:
            total = bn128().add(total, _buckets(part))
    return _affine(total)


def product_holds(terms: Iterable[Term]) -> bool:
    """Return whether Π e(scalar · g1, g2) = 1, with one final exponentiation for all.

    Terms that share their point of G2 cost one pairing together, and terms that share both their
    points one multiple.

    Raises:
        MissingExtraError: py_ecc is not installed.
    """
    groups: dict[G2, dict[G1, int]] = {}
    for term in terms:
        scalars = groups.setdefault(term.g2, {})
        scalars[term.g1] = scalars.get(term.g1, 0) + term.scalar
    pairs = [(msm(list(held), list(held.values())), g2) for g2, held in groups.items()]
    return bool(pairing_product(pairs) == bn128().FQ12.one())


def in_twist(point: G2) -> bool:
    """Return whether a finite point is on the twisted curve."""
    curve = bn128()
    return bool(curve.is_on_curve(_twisted(point), curve.b2))


def in_twist_subgroup(point: G2) -> bool:
    """Return whether a finite point of the twisted curve has order R."""
    return has_order(point)


def _projective(point: G1) -> Any:
    curve = bn128()
    if point == _INFINITY:
        return curve.Z1
    return curve.FQ(point[0]), curve.FQ(point[1]), curve.FQ.one()


def _twisted(point: G2) -> Any:
    curve = bn128()
    if point == ((0, 0), (0, 0)):
        return curve.Z2
    return curve.FQ2(point[0]), curve.FQ2(point[1]), curve.FQ2.one()


def _affine(point: Any) -> G1:
    curve = bn128()
    if curve.is_inf(point):
        return _INFINITY
    x, y = curve.normalize(point)
    return int(x.n), int(y.n)


def _window(count: int, bits: int) -> int:
    """Digits' width in bits with the fewest additions."""
    return min(range(1, 13), key=lambda w: -(-bits // w) * (count + (2 << w)))


def _reduced(scalar: int) -> int:
    return scalar if abs(scalar) < R else scalar % R


def _buckets(pairs: Sequence[tuple[int, G1]]) -> Any:
    curve = bn128()
    scalars = [s for s, _ in pairs]
    bits = max(scalars).bit_length()
    width = _window(len(pairs), bits)
    points = [_projective(p) for _, p in pairs]
    total = curve.Z1
    for shift in reversed(range(0, bits, width)):
        for _ in range(width):
            total = curve.double(total)
        buckets: list[Any] = [None] * (1 << width)
        for scalar, point in zip(scalars, points, strict=True):
            digit = scalar >> shift & (1 << width) - 1
            if not digit:
                continue
            held = buckets[digit]
            buckets[digit] = point if held is None else curve.add(held, point)
        total = curve.add(total, _weighted(curve, buckets[:0:-1]))
    return total


def _weighted(curve: Any, buckets: Sequence[Any]) -> Any:
    """Σ digit · bucket, the highest digit first."""
    running = total = curve.Z1
    for bucket in buckets:
        if bucket is not None:
            running = curve.add(running, bucket)
        total = curve.add(total, running)
    return total
