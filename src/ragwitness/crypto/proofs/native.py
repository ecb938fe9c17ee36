"""The prover's arithmetic on BN254: zksnake's (arkworks), some hundred times faster than py_ecc.

zksnake ends the process's thread with a panic where a point is off the curve, so only checked
points are handed to it, and nothing that a verifier runs uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from ragwitness.crypto.proofs.curve import G1, G2, R
from ragwitness.errors import InputError, MissingExtraError


@cache
def native_curve() -> Any:
    """Return zksnake's BN254.

    Raises:
        MissingExtraError: zksnake is not installed.
    """
    try:
        from zksnake.ecc import EllipticCurve
    except ImportError as error:
        raise MissingExtraError("Making a proof", "zk") from error
    return EllipticCurve("BN254")


def native_ring() -> Any:
    """Return zksnake's transforms of polynomials over the scalars.

    Raises:
        MissingExtraError: zksnake is not installed.
    """
    native_curve()  # says so where zksnake is missing
    from zksnake._algebra import polynomial_bn254

    return polynomial_bn254


def to_native_g1(point: G1) -> Any:
    """Return a checked point as zksnake's."""
    kind = native_curve().curve.PointG1
    return kind.identity() if point == (0, 0) else kind(*point)


def from_native_g1(point: Any) -> G1:
    """Return zksnake's point as affine coordinates."""
    return (0, 0) if point.is_zero() else (int(point.x), int(point.y))


def to_native_g2(point: G2) -> Any:
    """Return a checked point as zksnake's."""
    curve = native_curve()
    if point == ((0, 0), (0, 0)):
        return curve.G2() * 0
    return curve.curve.PointG2(*point[0], *point[1])


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
