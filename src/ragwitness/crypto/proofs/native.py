"""Arithmetic on BN254 by zksnake (arkworks), some hundred times faster than py_ecc.

The prover needs it; a verifier uses it where it is installed (:mod:`.curve` decides, and has its
own in Python). zksnake ends the process's thread with a panic where a point is off the curve or of
another order, so every point passes a check of ours before it gets there.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from ragwitness.crypto.proofs.points import G1, G2, P, R, in_curve, in_twist
from ragwitness.errors import InputError, import_extra


@cache
def native_curve() -> Any:
    """Return zksnake's BN254.

    Raises:
        MissingExtraError: zksnake is not installed.
    """
    return import_extra("zksnake.ecc", "Making a proof", "zk").EllipticCurve("BN254")


def native_ring() -> Any:
    """Return zksnake's transforms of polynomials over the scalars.

    Raises:
        MissingExtraError: zksnake is not installed.
    """
    native_curve()  # says so where zksnake is missing
    from zksnake._algebra import polynomial_bn254

    return polynomial_bn254


# zksnake multiplies each point that it is handed by R. In G1 that says nothing: the cofactor is 1,
# so every point on the curve passes. In G2 it does, and is asked where it matters, not at every
# point of a key. So coordinates are written where zksnake's own constructor puts them: x, y and
# z = 1 behind the object's header, each part times 2²⁵⁶ modulo P in 32 bytes. Whether they lie
# there is found out once. On a machine where they do not, the constructor is used, and a verifier
# computes in Python.

_HEADER = object.__basicsize__


def to_native_g1(point: G1) -> Any:
    """Return a point as zksnake's; one off the curve, at which it would panic, is refused."""
    kind = native_curve().curve.PointG1
    if point == (0, 0):
        return kind.identity()
    if not in_curve(point):
        raise InputError("A point that is not on the curve was about to be computed with.")
    return _written(kind.identity(), (*point, 1)) if layout_is_known() else kind(*point)


def to_native_g2(point: G2) -> Any:
    """Return a point of the twisted curve as zksnake's, whatever its order."""
    curve = native_curve()
    if point == ((0, 0), (0, 0)):
        return curve.G2() * 0
    if not in_twist(point):
        raise InputError("A point that is not on the twisted curve was about to be computed with.")
    if not layout_is_known():
        return curve.curve.PointG2(*point[0], *point[1])
    return _written(curve.G2() * 0, (*point[0], *point[1], 1, 0))


def read_native_g2(raw: bytes) -> Any | None:
    """Return zksnake's point of a point's 128 bytes, whatever its order; None off the curve."""
    x1, x0, y1, y0 = (int.from_bytes(raw[i : i + 32], "big") for i in range(0, len(raw), 32))
    point = (x0, x1), (y0, y1)
    if max(x0, x1, y0, y1) >= P or (any(raw) and not in_twist(point)):
        return None
    return to_native_g2(point)


def has_order_r(point: Any) -> bool:
    """Return whether zksnake's point of G2 is in the group of order R."""
    return bool(point * (R - 1) == -point)


def _written(made: Any, parts: Sequence[int]) -> Any:
    data = _montgomery(parts)
    ctypes.memmove(id(made) + _HEADER, data, len(data))
    return made


def _montgomery(parts: Sequence[int]) -> bytes:
    return b"".join(((part << 256) % P).to_bytes(32, "little") for part in parts)


@cache
def layout_is_known() -> bool:
    """Return whether zksnake's points lie in memory as they are written here."""
    if sys.implementation.name != "cpython":
        return False
    curve = native_curve()
    one, (u, v) = from_native_g1(curve.G1() * 3), from_native_g2(curve.G2() * 5)
    cases = (
        (curve.curve.PointG1(*one), _montgomery((*one, 1))),
        (curve.curve.PointG2(*u, *v), _montgomery((*u, *v, 1, 0))),
    )
    return all(
        type(made).__basicsize__ >= _HEADER + len(data)
        and ctypes.string_at(id(made) + _HEADER, len(data)) == data
        for made, data in cases
    )


def from_native_g1(point: Any) -> G1:
    """Return zksnake's point as affine coordinates."""
    return (0, 0) if point.is_zero() else (int(point.x), int(point.y))


def from_native_g2(point: Any) -> G2:
    """Return zksnake's point as affine coordinates."""
    if point.is_zero():
        return (0, 0), (0, 0)
    (x0, x1), (y0, y1) = point.x, point.y
    return (int(x0), int(x1)), (int(y0), int(y1))


def native_msm(points: Sequence[Any], scalars: Sequence[int]) -> Any:
    """Return Σ scalars[i] · points[i] as zksnake's point.

    Small scalars are fast only where they are not negative (docs/design/link.md).

    Args:
        points: zksnake's points of one group, at least one.
        scalars: As many integers.

    Raises:
        InputError: There are not as many scalars as points, or none.
    """
    if len(points) != len(scalars) or not points:
        raise InputError(f"{len(points)} points need as many scalars, not {len(scalars)}.")
    return native_curve().multiexp(list(points), [s % R for s in scalars])


def native_commit(powers: Sequence[Any], coefficients: Sequence[int]) -> G1:
    """Return a polynomial's commitment Σ coefficients[i] · powers[i].

    Args:
        powers: zksnake's points, at least as many as coefficients.
        coefficients: From the first power on, at least one.
    """
    return from_native_g1(native_msm(powers[: len(coefficients)], coefficients))


def native_multiples(point: Any, scalars: Sequence[int]) -> list[Any]:
    """Return scalars[i] · point, as zksnake's points."""
    return list(native_curve().batch_mul([point] * len(scalars), [s % R for s in scalars]))


def product_is_one(pairs: Iterable[tuple[G1, G2]]) -> bool:
    """Return whether Π e(P, Q) = 1.

    Args:
        pairs: Checked points; those of G2 have order R or are infinity.
    """
    curve = native_curve()
    held = [(to_native_g1(p), to_native_g2(q)) for p, q in pairs]
    found = curve.multi_pairing([p for p, _ in held], [q for _, q in held])
    return bool(found == curve.pairing(to_native_g1((0, 0)), curve.G2()))
