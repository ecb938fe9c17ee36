"""Where random bytes come from: the operating system, or a stream that a key determines."""

from __future__ import annotations

import hashlib
import os
from typing import Protocol

__all__ = ["Bits", "ShakeBits", "system_bits", "uniform"]

_RATE = 136  # bytes per permutation of SHAKE256 (FIPS 202): fewer cost as much


class Bits(Protocol):
    """A source of uniform random bytes."""

    def take(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""


class _SystemBits:
    """The operating system's entropy: nobody can draw the same bytes again."""

    def take(self, count: int) -> bytes:
        """Return ``count`` fresh bytes."""
        return os.urandom(count)


class ShakeBits:
    """SHAKE256 of a seed (FIPS 202), read from its beginning: same seed, same bytes.

    Args:
        seed: What is hashed; whoever knows it knows every byte.
    """

    def __init__(self, seed: bytes) -> None:
        self._hash = hashlib.shake_256(seed)
        self._held = b""
        self._at = 0

    def take(self, count: int) -> bytes:
        """Return the next ``count`` bytes of the stream."""
        end = self._at + count
        if end > len(self._held):
            self._held = self._hash.digest(max(_RATE, 2 * end))  # an XOF: a longer prefix
        taken, self._at = self._held[self._at : end], end
        return taken


def system_bits() -> Bits:
    """Return the operating system's entropy as a source of bytes."""
    return _SystemBits()


def uniform(bound: int, bits: Bits) -> int:
    """Return an integer from 0 to ``bound - 1``, each equally likely.

    Takes as few whole bytes as hold ``bound - 1``, big-endian, with the surplus high bits
    cleared, and takes as many again until the number is below ``bound``.

    Args:
        bound: At least 1; a bound of 1 takes no byte.
        bits: Source of the bytes.
    """
    length = (bound - 1).bit_length()
    count, mask = (length + 7) // 8, (1 << length) - 1
    while True:
        drawn = int.from_bytes(bits.take(count), "big") & mask
        if drawn < bound:
            return drawn
