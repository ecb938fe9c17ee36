"""The points and scalars of BN254: their fields, their bytes, and the curves that they lie on."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import TypeAlias

from ragwitness.errors import InputError, VerificationError

# The fields of BN254: scalars as Python integers in [0, R), coordinates in [0, P).

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


# Points and scalars of BN254 as bytes: one encoding for each, everything else refused by name.
#
# A point of G1 is x ‖ y, of G2 x₁ ‖ x₀ ‖ y₁ ‖ y₀ (EIP-197), each coordinate 32 bytes big-endian;
# infinity is all zeros. In memory they are affine tuples of ints, G2's with the real part first.

Fp2: TypeAlias = tuple[int, int]
G1: TypeAlias = tuple[int, int]
G2: TypeAlias = tuple[Fp2, Fp2]

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
    if (x or y) and not in_curve((x, y)):
        raise VerificationError(f"{check}.curve", "A point lies off the curve.")
    return x, y


def in_curve(point: G1) -> bool:
    """Return whether a finite point is on the curve, y² = x³ + 3, and so in the group."""
    x, y = point
    return (y * y - x * x * x - 3) % P == 0


def encode_g2(point: G2) -> bytes:
    """Return a point of G2 as 128 bytes."""
    (x0, x1), (y0, y1) = point
    return b"".join(value.to_bytes(32, "big") for value in (x1, x0, y1, y0))


def parse_twist(data: bytes, check: str) -> G2:
    """Return the point of the twisted curve of 128 bytes, whatever its order.

    Raises:
        VerificationError: ``<check>.size``, ``.field`` or ``.curve``.
    """
    _sized(data, G2_BYTES, check)
    x1, x0, y1, y0 = _coordinates(data, check)
    point = ((x0, x1), (y0, y1))
    if any((x0, x1, y0, y1)) and not in_twist(point):
        raise VerificationError(f"{check}.curve", "A point lies off the twisted curve.")
    return point


def _sized(data: bytes, size: int, check: str) -> None:
    if len(data) != size:
        raise VerificationError(f"{check}.size", f"{size} bytes are due, not {len(data)}.")


def _coordinates(data: bytes, check: str) -> list[int]:
    found = [int.from_bytes(data[i : i + 32], "big") for i in range(0, len(data), 32)]
    if max(found) >= P:
        raise VerificationError(f"{check}.field", "A coordinate is not below the field's modulus.")
    return found


def negate(point: G1) -> G1:
    """Return -point."""
    return point[0], -point[1] % P


# The twisted curve, over F_p² = F_p[u] / (u² + 1).

_TWIST = (  # 3 / (9 + u)
    19485874751759354771024239261021720505790618469301721065564631296452457478373,
    266929791119991161246907387137283842545076965332900288569378510910307636690,
)


def in_twist(point: G2) -> bool:
    """Return whether a finite point is on the twisted curve, y² = x³ + 3 / (9 + u)."""
    x, y = point
    left, right = fp2_times(y, y), fp2_times(fp2_times(x, x), x)
    return fp2_minus(left, right) == _TWIST


def fp2_times(left: Fp2, right: Fp2) -> Fp2:
    """Return a product in F_p²."""
    (a, b), (c, d) = left, right
    return (a * c - b * d) % P, (a * d + b * c) % P


def fp2_minus(left: Fp2, right: Fp2) -> Fp2:
    """Return a difference in F_p²."""
    return (left[0] - right[0]) % P, (left[1] - right[1]) % P
