"""Points and scalars of BN254 as bytes: one encoding for each, everything else refused by name.

A point of G1 is x ‖ y, of G2 x₁ ‖ x₀ ‖ y₁ ‖ y₀ (EIP-197), each coordinate 32 bytes big-endian;
infinity is all zeros. In memory they are affine tuples of ints, G2's with the real part first.
"""

from __future__ import annotations

from typing import TypeAlias

from ragwitness.crypto.proofs.field import P, R
from ragwitness.errors import InputError, VerificationError

__all__ = [
    "G1",
    "G1_BYTES",
    "G1_GENERATOR",
    "G2",
    "G2_BYTES",
    "G2_GENERATOR",
    "SCALAR_BYTES",
    "encode_g1",
    "encode_g2",
    "encode_scalar",
    "parse_g1",
    "parse_g2",
    "parse_scalar",
]

G1: TypeAlias = tuple[int, int]
G2: TypeAlias = tuple[tuple[int, int], tuple[int, int]]

SCALAR_BYTES = 32
G1_BYTES = 64
G2_BYTES = 128

G1_GENERATOR: G1 = (1, 2)
G2_GENERATOR: G2 = (  # EIP-197
    (
        10857046999023057135944570762232829481370756359578518086990519993285655852781,
        11559732032986387107991004021392285783925812861821192530917403151452391805634,
    ),
    (
        8495653923123431417604973247489272438418190587263600148770280649306958101930,
        4082367875863433681332203403145435568316851327593401208105741076214120093531,
    ),
)


def encode_scalar(value: int) -> bytes:
    """Return a scalar in [0, R) as 32 bytes.

    Raises:
        InputError: It is outside; reduce it first.
    """
    if not 0 <= value < R:
        raise InputError("A scalar outside the field has no encoding.", "Reduce it modulo R.")
    return value.to_bytes(SCALAR_BYTES, "big")


def parse_scalar(data: bytes, check: str = "point") -> int:
    """Return the scalar of 32 bytes.

    Raises:
        VerificationError: ``<check>.size``, or ``<check>.field`` where it is not below R.
    """
    _sized(data, SCALAR_BYTES, check)
    value = int.from_bytes(data, "big")
    if value >= R:
        raise VerificationError(f"{check}.field", "A scalar is not below the order of the group.")
    return value


def encode_g1(point: G1) -> bytes:
    """Return a point of G1 as 64 bytes."""
    return b"".join(value.to_bytes(32, "big") for value in point)


def parse_g1(data: bytes, check: str = "point") -> G1:
    """Return the point of 64 bytes; every point on the curve is in the group (cofactor 1).

    Raises:
        VerificationError: ``<check>.size``, ``.field`` (a coordinate not below P), ``.curve``.
    """
    _sized(data, G1_BYTES, check)
    x, y = _coordinates(data, check)
    if (x or y) and (y * y - x * x * x - 3) % P:
        raise VerificationError(f"{check}.curve", "A point lies off the curve.")
    return x, y


def encode_g2(point: G2) -> bytes:
    """Return a point of G2 as 128 bytes."""
    (x0, x1), (y0, y1) = point
    return b"".join(value.to_bytes(32, "big") for value in (x1, x0, y1, y0))


def parse_g2(data: bytes, check: str = "point") -> G2:
    """Return the point of 128 bytes.

    Raises:
        VerificationError: ``<check>.size``, ``.field``, ``.curve``, or ``.subgroup`` where it is
            on the twisted curve and not in the group of order R.
        MissingExtraError: py_ecc is not installed.
    """
    from ragwitness.crypto.proofs.curve import in_twist, in_twist_subgroup

    _sized(data, G2_BYTES, check)
    x1, x0, y1, y0 = _coordinates(data, check)
    point = ((x0, x1), (y0, y1))
    if not any((x0, x1, y0, y1)):
        return point
    if not in_twist(point):
        raise VerificationError(f"{check}.curve", "A point lies off the twisted curve.")
    if not in_twist_subgroup(point):
        raise VerificationError(f"{check}.subgroup", "A point lies outside the group of order R.")
    return point


def _sized(data: bytes, size: int, check: str) -> None:
    if len(data) != size:
        raise VerificationError(f"{check}.size", f"{size} bytes are due, not {len(data)}.")


def _coordinates(data: bytes, check: str) -> list[int]:
    found = [int.from_bytes(data[i : i + 32], "big") for i in range(0, len(data), 32)]
    if max(found) >= P:
        raise VerificationError(f"{check}.field", "A coordinate is not below the field's modulus.")
    return found
