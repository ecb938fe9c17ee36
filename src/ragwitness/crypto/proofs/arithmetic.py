"""The groups of BLS12-381 by arkworks, and the one form of every point and scalar.

A point that comes from outside is read by :func:`parse_point` alone: on the curve, in the group of
prime order, in its one encoding. Points in memory have passed that, or were computed from such.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError, VerificationError, import_extra
from ragwitness.crypto.hashing import canonical, tagged_hash

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
    # The shorter of a scalar and its negative.
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
    package = curve()
    second = package.G2Point.from_compressed_bytes(tau)
    return bool(package.GT.pairing_check([high, -low], [package.G2Point(), second]))


# Numbers modulo R: sums of small integers times field elements in numpy, and the roots of unity.
#
# A product of a small integer and a number of 255 bits costs sixteen of machine numbers, and BLAS
# does them: field elements are cut into pieces of 16 bits. Each function says where it is exact.


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
    # Pieces of 16 bits in floats, summed by BLAS.
    data = b"".join(value.to_bytes(32, "little") for value in values)
    pieces = np.frombuffer(data, "<u2").reshape(-1, _PIECES).astype(np.float64)
    sums: list[list[int]] = (matrix.astype(np.float64) @ pieces).astype(np.int64).tolist()
    weights = [1 << _PIECE_BITS * i for i in range(_PIECES)]
    return [dot(row, weights) for row in sums]


def inverses(values: Sequence[int], factor: int = 1) -> list[int]:
    """Return factor/value for each, none of which is 0, with one inversion (Montgomery)."""
    before = list(accumulate(values, lambda held, x: held * x % R, initial=1))
    product, results = factor * pow(before[-1], -1, R), [0] * len(values)
    for i in range(len(values) - 1, -1, -1):
        results[i] = product * before[i] % R
        product = product * values[i] % R
    return results


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


# Challenges from all messages so far (Fiat-Shamir), with SHAKE256 as the random oracle.
#
# Every part is framed by its kind, its label's length and its own length, so two different
# conversations never give the hash the same input.


_CHALLENGE_BYTES = 64  # 512 bits modulo R: a bias below 2⁻²⁵⁶


class ProofTranscript:
    """The messages of prover and verifier so far, and the challenges that follow from them.

    Args:
        domain: Name and version of the proof, e.g. ``"ragwitness/answer/v1"``.
        statement: Bytes that determine the proved statement.
    """

    def __init__(self, domain: str, statement: bytes) -> None:
        self._hash = hashlib.shake_256()
        self._frame(b"domain", domain, statement)

    def absorb_scalars(self, label: str, scalars: Iterable[int]) -> None:
        """Absorb scalars, each in [0, R)."""
        self._frame(b"scalars", label, b"".join(map(encode_scalar, scalars)))

    def absorb_points(self, label: str, points: Iterable[bytes]) -> None:
        """Absorb points of G1, encoded."""
        self._frame(b"points", label, b"".join(points))

    def expand(self, label: str, size: int) -> bytes:
        """Return ``size`` bytes that depend on all earlier messages."""
        # The request is absorbed too, then a copy is squeezed: the transcript goes on from here.
        self._frame(b"squeeze", label, size.to_bytes(8, "big"))
        return self._hash.copy().digest(size)

    def challenge(self, label: str) -> int:
        """Return a scalar in [0, R) that depends on all earlier messages."""
        return int.from_bytes(self.expand(label, _CHALLENGE_BYTES), "big") % R

    def _frame(self, kind: bytes, label: str, data: bytes) -> None:
        # Length before content, for each of the three: no two conversations share an input.
        for field in (kind, label.encode(), data):
            self._hash.update(len(field).to_bytes(8, "big") + field)


# The form of a window's proofs: sizes and bounds, and the powers of the ceremony.
#
# The powers are the first of the public KZG ceremony for EIP-4844 (2023, more than 140,000
# contributors): a proof is sound if one of them forgot a secret number. A verifier needs [τ]₂
# alone, given below; a prover reads the rest from ``powers.bin`` (:mod:`.prover`).


TAU = bytes.fromhex(
    "b5bfd7dd8cdeb128843bc287230af38926187075cbfbefa81009a2ce615ac53d"
    "2914e5870cb452d2afaaab24f3499f72185cbfee53492714734429b7b38608e2"
    "3926c911cceceac9a36851477ba4c60b087041de621000edc98edada20c1def2"
)
"""[τ]₂ of the ceremony, the second of its points in G2."""

LEAST_SLOTS, MOST_SLOTS = 1 << 9, 1 << 11
"""Of a chunk: NORM needs a row for each of 309 projections, and the file holds 2,051 powers."""

MOST_TOP = 32
MOST_DIMENSION = 1 << 14
MOST_SCALE = 1 << 12
MOST_REACH = 1 << 40
MOST_CHUNKS = 1 << 10
"""Chunks of one index, here and in everything that reads a length from them."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of one window's proofs. An index larger than ``slots`` is cut into chunks of that many.

    Attributes:
        slots: Number of slots of one chunk, n: a power of two from 512 to 2,048. The last chunk's
            slots behind the index's capacity are never named by an answer.
        top: Slots that an answer names, K; 1 to 32.
        dimension: Dimension of the vectors, d.
        scale: Bound on the norm of rows and of queries, S.
        reach: Largest size of the noise that the sampler gives.

    Raises:
        InputError: A value is outside its range; the message names it.
    """

    slots: int
    top: int
    dimension: int
    scale: int
    reach: int

    def __post_init__(self) -> None:
        # Bounds within which the proofs' arithmetic is that of integers.
        ranges = {
            "slots": (LEAST_SLOTS, MOST_SLOTS),
            "top": (1, MOST_TOP),
            "dimension": (1, MOST_DIMENSION),
            "scale": (1, MOST_SCALE),
            "reach": (0, MOST_REACH),
        }
        for name, (lowest, highest) in ranges.items():
            if not lowest <= getattr(self, name) <= highest:
                raise InputError(
                    f"A proof's shape needs {name} from {lowest:,} to {highest:,}, not"
                    f" {getattr(self, name):,}."
                )
        if self.slots & (self.slots - 1):
            raise InputError(f"A chunk's slots are a power of two, not {self.slots:,}.")

    @property
    def bits(self) -> int:
        """b: the difference of two noisy scores, less a tie, is below 2^b."""
        return (2 * (self.scale**2 + self.reach)).bit_length()

    @property
    def digest(self) -> bytes:
        """A hash, 32 bytes, of the sizes and of the ceremony's [τ]₂."""
        return tagged_hash("ragwitness/proof-shape/v1", canonical(asdict(self)), TAU)

    def chunks(self, capacity: int) -> int:
        """Return how many chunks an index of this capacity has."""
        return -(-capacity // self.slots)

    def part(self, values: Sequence[int], chunk: int) -> list[int]:
        """Return a chunk's part of one value a slot, with 0 behind the last."""
        row = list(values[chunk * self.slots : (chunk + 1) * self.slots])
        return row + [0] * (self.slots - len(row))


def chunk_slots(capacity: int) -> int:
    """Return the slots of a chunk, n, where the largest index has this capacity."""
    return min(MOST_SLOTS, max(LEAST_SLOTS, 1 << (capacity - 1).bit_length()))
