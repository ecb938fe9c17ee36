"""The groups of BLS12-381 by arkworks, and the one form of every point and scalar.

A point that comes from outside is read by :func:`parse_point` alone: on the curve, in the group of
prime order, in its one encoding. Points in memory have passed that, or were computed from such.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, TypeAlias

from ragwitness.core.errors import VerificationError, import_extra

R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
"""The order of both groups, a prime of 255 bits: proofs compute modulo R."""

POINT_BYTES = 48
SCALAR_BYTES = 32

Point: TypeAlias = Any
"""A point of G1, as the package holds it."""


@cache
def curve() -> Any:
    """Return the package that computes on the curve.

    Raises:
        MissingExtraError: It is not installed.
    """
    return import_extra("py_arkworks_bls12381", "A proof of a window", "verify")


def generator() -> Point:
    """Return [1]."""
    return curve().G1Point()


def infinity() -> Point:
    """Return the neutral element."""
    return curve().G1Point.identity()


def parse_point(data: bytes, check: str = "point") -> Point:
    """Return a point of 48 bytes.

    Args:
        data: Compressed, as :func:`encode_point` writes it.
        check: First part of the failure's name.

    Raises:
        VerificationError: ``<check>.curve`` (on no curve, or of another length), ``.encoding``
            (another spelling of a point) or ``.subgroup`` (of another order).
    """
    try:
        point = curve().G1Point.from_compressed_bytes_unchecked(bytes(data))
    except ValueError as error:
        raise VerificationError(f"{check}.curve", "A point is not on the curve.") from error
    if point.to_compressed_bytes() != data:
        raise VerificationError(f"{check}.encoding", "A point is not in its one encoding.")
    if not point.is_in_subgroup():
        raise VerificationError(f"{check}.subgroup", "A point is of another order than the group.")
    return point


def encode_point(point: Point) -> bytes:
    """Return 48 bytes."""
    data: bytes = point.to_compressed_bytes()
    return data


def parse_scalar(data: bytes) -> int:
    """Return a scalar of 32 bytes.

    Raises:
        VerificationError: ``point.field``; it is not below R.
    """
    value = int.from_bytes(data, "big")
    if value >= R:
        raise VerificationError("point.field", "A scalar is not below the group's order.")
    return value


def encode_scalar(value: int) -> bytes:
    """Return 32 bytes."""
    return value.to_bytes(SCALAR_BYTES, "big")


def scalar(value: int) -> Any:
    """Return a number modulo R as the package's scalar."""
    return curve().Scalar.from_le_bytes((value % R).to_bytes(SCALAR_BYTES, "little"))


def multiexp(points: Sequence[Point], scalars: Iterable[int]) -> Point:
    """Return Σ scalars[i] · points[i]; of a scalar and its negative the short one is multiplied."""
    pairs = [(p, s % R) for p, s in zip(points, scalars, strict=True)]
    pairs = [(p, s) if s <= R // 2 else (-p, R - s) for p, s in pairs]
    return curve().G1Point.multiexp_unchecked([p for p, _ in pairs], [scalar(s) for _, s in pairs])


def pairs_to(low: Point, high: Point, tau: bytes) -> bool:
    """Return whether high = τ · low: e(low, [τ]₂) = e(high, [1]₂).

    Args:
        low: Point of G1.
        high: Point of G1.
        tau: [τ]₂, 96 bytes.
    """
    made = curve()
    second = made.G2Point.from_compressed_bytes(tau)
    return bool(made.GT.pairing_check([high, -low], [made.G2Point(), second]))
