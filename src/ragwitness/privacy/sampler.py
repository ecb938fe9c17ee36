"""The discrete Gaussian, sampled exactly (Canonne, Kamath and Steinke, arXiv 2004.00010).

Integers alone: no rounding, so none of the attacks on floating-point noise (Mironov 2012; Jin
et al., arXiv 2112.05307) has anything to hold on to. How many bytes are read depends on what is
drawn, and so does the time.
"""

from __future__ import annotations

import hashlib
import math
import os
from fractions import Fraction
from typing import Protocol

from ragwitness.core.errors import InputError
from ragwitness.privacy.ranges import positive

# Where random bytes come from: the operating system, or a stream that a key determines.

_RATE = 136  # bytes per permutation of SHAKE256 (FIPS 202): fewer cost as much


class Bits(Protocol):
    """A source of uniform random bytes."""

    def take(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""


class _SystemBits:
    """The operating system's entropy: the same bytes cannot be drawn again."""

    def take(self, count: int) -> bytes:
        """Return ``count`` fresh bytes."""
        return os.urandom(count)


class ShakeBits:
    """SHAKE256 of a seed (FIPS 202), read from its beginning: same seed, same bytes.

    Args:
        seed: The hashed bytes; every byte of the stream follows from them.
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
        bound: Upper bound, at least 1; a bound of 1 takes no byte.
        bits: Source of the bytes.
    """
    length = (bound - 1).bit_length()
    count, mask = (length + 7) // 8, (1 << length) - 1
    while True:
        drawn = int.from_bytes(bits.take(count), "big") & mask
        if drawn < bound:
            return drawn


EXACT_SAMPLER = "ragwitness/discrete-gaussian/exact/v1"
"""Identifier of the order in which bytes are read and draws rejected."""

_GRID = 1 << 16


def discrete_gaussian(variance: int | Fraction, bits: Bits) -> int:
    """Draw x with probability proportional to exp(-x² / 2 sigma²) over all integers (Algorithm 3).

    Args:
        variance: sigma², an exact rational above 0; :func:`variance_of` makes one of a float. The
            variance of the draws themselves is never above it.
        bits: Source of the bytes; the same bytes give the same draw.

    Returns:
        The draw.

    Raises:
        InputError: ``variance`` is not a rational above 0.
    """
    num, den = as_variance(variance).as_integer_ratio()
    # t = floor(sigma) + 1, the scale of the Laplace draws that are thinned out.
    scale = math.isqrt(num // den) + 1
    spread = 2 * num * den * scale * scale
    while True:
        # Draw y ~ Laplace(t); keep it with probability exp(-(|y| - sigma²/t)² / 2 sigma²).
        drawn = discrete_laplace(scale, bits)
        # (|y| - sigma²/t)² / (2 sigma²), over one denominator.
        if _bernoulli_exp((abs(drawn) * scale * den - num) ** 2, spread, bits):
            return drawn


def variance_of(sigma: float) -> Fraction:
    """Return sigma² as a rational, rounded up to a multiple of 2⁻¹⁶: never less noise than asked.

    Args:
        sigma: Standard deviation, finite and above 0.

    Raises:
        InputError: ``sigma`` is not finite or not above 0.
    """
    return Fraction(math.ceil(Fraction(positive("sigma", sigma)) ** 2 * _GRID), _GRID)


def as_variance(variance: int | Fraction) -> Fraction:
    """Return what was given as a fraction.

    Raises:
        InputError: It is not an exact rational above 0.
    """
    exact = isinstance(variance, int | Fraction) and not isinstance(variance, bool)
    if not exact or variance <= 0:
        raise InputError(
            f"The noise's variance must be an exact number (int or Fraction) above 0,"
            f" not {variance!r}.",
            "Make one of a standard deviation with variance_of(sigma).",
        )
    return Fraction(variance)


def discrete_laplace(scale: int, bits: Bits) -> int:
    """Draw y with probability proportional to exp(-|y|/scale) (Algorithm 2, s = 1)."""
    while True:
        # |y| = low + t · high: low by rejection with exp(-low/t), high geometric with exp(-1).
        low = uniform(scale, bits)
        if not _bernoulli_exp(low, scale, bits):
            continue
        high = 0
        while _bernoulli_exp(1, 1, bits):
            high += 1
        size = low + scale * high
        negative = uniform(2, bits)
        if size or not negative:  # 0 has one sign
            return -size if negative else size


def _bernoulli_exp(num: int, den: int, bits: Bits) -> bool:
    """Draw true with probability exp(-num/den) (Algorithm 1)."""
    integer, num = divmod(num, den)
    # exp(-w - f) = exp(-1)^w · exp(-f): one coin after the other, and one tails ends it.
    for _ in range(integer):
        if not _bernoulli_exp_fraction(1, 1, bits):
            return False
    return _bernoulli_exp_fraction(num, den, bits)


def _bernoulli_exp_fraction(num: int, den: int, bits: Bits) -> bool:
    """Draw true with probability exp(-num/den) where num <= den."""
    # The first k with a uniform of den · k at or above num; P(k odd) is exp(-num/den), as a series.
    k = 1
    while uniform(den * k, bits) < num:
        k += 1
    return k % 2 == 1
