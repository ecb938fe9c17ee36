"""The prover's key of one circuit: points of zksnake in memory, plain coordinates on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ragwitness.crypto.proofs.curve import in_twist
from ragwitness.crypto.proofs.field import P
from ragwitness.crypto.proofs.groth16 import VerifyingKey
from ragwitness.crypto.proofs.native import (
    from_native_g1,
    from_native_g2,
    to_native_g1,
    to_native_g2,
)
from ragwitness.crypto.proofs.points import (
    G1_BYTES,
    G2_BYTES,
    encode_g1,
    encode_g2,
    parse_g1,
)
from ragwitness.errors import InputError, VerificationError

__all__ = ["PointList", "ProvingKey"]

_MAGIC = b"ragwitness/groth16-key/v1\n"
_DIGEST_BYTES = 32
_HINT = "Make the setup again: ragwitness setup."


@dataclass(frozen=True, slots=True, eq=False)
class PointList:
    """Points of one group by number, without those at infinity.

    Attributes:
        size: Numbers run from 0 to ``size - 1``.
        numbers: Of the finite points, ascending.
        points: zksnake's, as many.
    """

    size: int
    numbers: Sequence[int]
    points: Sequence[Any]

    def encode(self, encode: Callable[[Any], bytes], width: int) -> bytes:
        """Return every number's point as ``encode`` writes it, ``width`` zeros for infinity."""
        known = dict(zip(self.numbers, self.points, strict=True))
        return b"".join(
            encode(known[number]) if number in known else bytes(width)
            for number in range(self.size)
        )


@dataclass(frozen=True, slots=True, eq=False)
class ProvingKey:
    """What a prover needs of one circuit's setup; no secret.

    ``beta``, ``delta`` and ``right`` are for other programs, which blind with them.

    Attributes:
        verifying: The verifier's part.
        beta: [beta]₁, zksnake's point, as all below.
        delta: [delta]₁.
        left: [A_i(τ)]₁ per wire.
        right: [B_i(τ)]₁ per wire.
        right_2: [B_i(τ)]₂ per wire.
        private: [(beta·A_i + alpha·B_i + C_i)(τ)/delta]₁ per private wire.
        quotient: [L_i(τ)/delta]₁, L_i the odd ones of the Lagrange basis of the doubled domain.
    """

    verifying: VerifyingKey
    beta: Any
    delta: Any
    left: PointList
    right: PointList
    right_2: PointList
    private: PointList
    quotient: PointList

    def encode(self) -> bytes:
        """Return sizes, points, and the SHA-256 of all that."""
        sizes = (self.left.size, len(self.verifying.inputs) - 1, self.quotient.size)
        parts = [_MAGIC, *(size.to_bytes(4, "big") for size in sizes), self.verifying.encode()]
        parts += map(_bytes_1, (self.beta, self.delta))
        for points in (self.left, self.right, self.private, self.quotient):
            parts.append(points.encode(_bytes_1, G1_BYTES))
        parts.append(self.right_2.encode(_bytes_2, G2_BYTES))
        data = b"".join(parts)
        return data + hashlib.sha256(data).digest()

    @classmethod
    def parse(cls, data: bytes) -> ProvingKey:
        """Read what :meth:`encode` wrote.

        zksnake checks that every point has order R, which takes most of the time: 0.1 ms for one
        of G1, 0.35 ms for one of G2.

        Raises:
            InputError: It is no such key, or is damaged.
            MissingExtraError: zksnake is not installed.
        """
        body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
        if not data.startswith(_MAGIC) or hashlib.sha256(body).digest() != digest:
            raise InputError("A proving key is damaged, or no proving key.", _HINT)
        reader = _Reader(body, len(_MAGIC))
        try:
            return reader.key()
        except VerificationError as error:
            raise InputError(f"A proving key is unusable: {error.message}", _HINT) from error


class _Reader:
    def __init__(self, data: bytes, place: int) -> None:
        self._data, self._place = data, place
        self._known: dict[bytes, tuple[bytes, Any]] = {}

    def key(self) -> ProvingKey:
        wires, publics, domain = (int.from_bytes(self._take(4), "big") for _ in range(3))
        if not publics < wires:
            raise InputError("A proving key has more public inputs than wires.", _HINT)
        fixed = self._take(G1_BYTES * (2 + publics) + 3 * G2_BYTES)
        verifying = VerifyingKey.parse(fixed, publics)
        beta, delta = self._g1(self._take(G1_BYTES)), self._g1(self._take(G1_BYTES))
        left, right = self._list(wires), self._list(wires)
        private, quotient = self._list(wires - 1 - publics), self._list(domain)
        right_2 = self._list(wires, G2_BYTES)
        if self._place != len(self._data):
            raise InputError("A proving key has bytes behind its end.", _HINT)
        return ProvingKey(verifying, beta, delta, left, right, right_2, private, quotient)

    def _list(self, size: int, width: int = G1_BYTES) -> PointList:
        data = self._take(size * width)
        read = self._g1 if width == G1_BYTES else _g2
        numbers, points = [], []
        for number in range(size):
            raw = data[number * width : (number + 1) * width]
            if any(raw):
                numbers.append(number)
                points.append(read(raw))
        return PointList(size, numbers, points)

    def _g1(self, raw: bytes) -> Any:
        """Read a point; a wire that is a bit has B = -A, and -A is free."""
        x, y = raw[:32], raw[32:]
        if x in self._known:
            ordinate, point = self._known[x]
            if y == ordinate:
                return point
            if int.from_bytes(y, "big") + int.from_bytes(ordinate, "big") == P:
                return -point
        point = to_native_g1(parse_g1(raw))
        self._known[x] = y, point
        return point

    def _take(self, size: int) -> bytes:
        found = self._data[self._place : self._place + size]
        if len(found) != size:
            raise InputError("A proving key ends too early.", _HINT)
        self._place += size
        return found


def _bytes_1(point: Any) -> bytes:
    return encode_g1(from_native_g1(point))


def _bytes_2(point: Any) -> bytes:
    return encode_g2(from_native_g2(point))


def _g2(raw: bytes) -> Any:
    x1, x0, y1, y0 = (int.from_bytes(raw[i : i + 32], "big") for i in range(0, G2_BYTES, 32))
    point = (x0, x1), (y0, y1)
    if max(x0, x1, y0, y1) >= P or not in_twist(point):
        raise InputError("A proving key holds a point off the twisted curve.", _HINT)
    try:
        return to_native_g2(point)
    except BaseException as error:  # zksnake panics, which is no Exception
        if type(error).__name__ != "PanicException":
            raise
        raise InputError("A proving key holds a point of the wrong order.", _HINT) from None
