"""Noise that is a public linear map of bits: a commitment to the bits commits to the noise.

A sum of some twelve uniform numbers, counted in units of 2^fine, and below the unit one more
uniform number. The first part is all but Gaussian; the second hides what of a score is below the
unit (docs/design/noise.md). Its bits are those of a secret number, fixed before the window, plus a
public one that comes after: neither side chooses the noise.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.privacy.ranges import positive

_TEXT = re.compile(r"coins:([0-9]{1,2})((?:\+[0-9]{1,2}x[0-9]{1,2})+)", re.ASCII)
_MOST_FINE, _MOST_WIDTH, _MOST_PARTS, _MOST_BITS = 26, 16, 64, 240
_LIMB = 32

FEWEST = 12
"""Uniforms in a sum of :func:`coin_step`; with four of them the edges would cost epsilon."""

MOST_STEP = 36 * (_MOST_WIDTH - 1) - 1
"""Last step of :func:`coin_step`."""


@dataclass(frozen=True, slots=True)
class CoinNoise:
    """The shape of such noise.

    Attributes:
        fine: Bits below the unit.
        widths: Bits of each uniform above it, the widest first.

    Raises:
        InputError: A number is outside its range.
    """

    fine: int
    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.widths, reverse=True))
        if (
            not 0 <= self.fine <= _MOST_FINE
            or not 1 <= len(ordered) <= _MOST_PARTS
            or ordered != self.widths
            or not 1 <= ordered[-1] <= ordered[0] <= _MOST_WIDTH
            or self.bits > _MOST_BITS
        ):
            raise InputError(
                f"No noise has {self.fine} bits below the unit and uniforms of {self.widths} bits:"
                f" at most {_MOST_FINE} below, 1 to {_MOST_PARTS} uniforms of 1 to {_MOST_WIDTH}"
                f" bits with the widest first, and {_MOST_BITS} bits in all.",
            )

    @property
    def bits(self) -> int:
        """Of one slot's noise, all together."""
        return self.fine + sum(self.widths)

    @property
    def coefficients(self) -> tuple[int, ...]:
        """The weight of each bit in the noise: the fine ones first, then uniform after uniform."""
        weights = (1 << self.fine + bit for width in self.widths for bit in range(width))
        return (*(1 << bit for bit in range(self.fine)), *weights)

    @property
    def centre(self) -> int:
        """Subtracted from the bits' sum, so that the noise lies on both sides of 0."""
        return sum(self.coefficients) // 2

    @property
    def radius(self) -> int:
        """Largest size of the noise."""
        return sum(self.coefficients) - self.centre

    @property
    def variance(self) -> Fraction:
        """Of the noise."""
        twelfths = sum((1 << 2 * width) - 1 for width in self.widths)
        return Fraction((twelfths << 2 * self.fine) + (1 << 2 * self.fine) - 1, 12)

    @property
    def text(self) -> str:
        """Its one spelling, e.g. ``coins:15+8x6+4x5``: 15 fine bits, 8 uniforms of 6, 4 of 5."""
        counts = ((self.widths.count(width), width) for width in sorted(set(self.widths))[::-1])
        return f"coins:{self.fine}" + "".join(f"+{count}x{width}" for count, width in counts)

    def moved(self, sensitivity: int) -> int:
        """Return by how many units a score moves at most that moves by ``sensitivity``.

        A score plus the fine part, modulo the unit, is uniform whatever the score is. Given it, the
        whole units move by the quotient, rounded down or up.
        """
        return -(-sensitivity // (1 << self.fine))

    def pmf(self) -> NDArray[np.float64]:
        """Return the probabilities of the whole units, from 0 on; a few last digits may be wrong.

        In the tails too: up to the middle each sequence rises, so that a sum over a window is a
        fair share of the sum so far, and little cancels. The other half is its mirror image.
        """
        probabilities = np.ones(1)
        for width in self.widths:
            size = len(probabilities) + (1 << width) - 1
            sums = np.cumsum(np.pad(probabilities, (0, size - len(probabilities))))
            sums[1 << width :] -= sums[: size - (1 << width)].copy()
            lower = sums[: (size + 1) // 2] * 0.5**width
            probabilities = np.concatenate((lower, lower[: size // 2][::-1]))
        return probabilities

    def secret(self, stream: bytes, slots: int) -> NDArray[np.uint32]:
        """Return uniform numbers below 2^bits, as limbs of 32 bits with the lowest first.

        Args:
            stream: Uniform bytes, :meth:`stream_bytes` of them.
            slots: How many numbers.

        Returns:
            Shape (slots, limbs).
        """
        limbs = np.frombuffer(stream, "<u4").reshape(slots, -1).astype(np.uint32)
        limbs[:, -1] &= np.uint32((1 << self.bits - _LIMB * (limbs.shape[1] - 1)) - 1)
        return limbs

    def stream_bytes(self, slots: int) -> int:
        """Return how many bytes :meth:`secret` needs."""
        return -(-self.bits // _LIMB) * _LIMB // 8 * slots

    def tossed(
        self, secret: NDArray[np.uint32], public: NDArray[np.uint32]
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Return the bits of (secret + public) modulo 2^bits, and the carries beyond.

        Args:
            secret: Secret from :meth:`secret`.
            public: The same of a stream that everybody knows.

        Returns:
            Shapes (slots, bits) and (slots,), both 0 and 1.
        """
        limbs = np.zeros((len(secret), secret.shape[1] + 1), "<u4")
        carry = np.zeros(len(secret), np.uint64)
        for at in range(secret.shape[1]):
            added = secret[:, at].astype(np.uint64) + public[:, at] + carry
            limbs[:, at] = (added & np.uint64(0xFFFFFFFF)).astype(np.uint32)
            carry = added >> np.uint64(_LIMB)
        limbs[:, -1] = carry
        every = np.unpackbits(limbs.view(np.uint8), axis=1, bitorder="little")
        return every[:, : self.bits], every[:, self.bits]

    def noise(self, bits: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return the noise of bits.

        Args:
            bits: Shape (slots, bits).

        Returns:
            Shape (slots,).
        """
        summed: NDArray[np.int64] = bits.astype(np.int64) @ np.array(self.coefficients, np.int64)
        return summed - self.centre

    @classmethod
    @lru_cache(maxsize=64)  # of a class, which stays
    def parse(cls, text: str) -> CoinNoise:
        """Return the noise of a :attr:`text`.

        Raises:
            InputError: It is none, or not in its one spelling.
        """
        match = _TEXT.fullmatch(text)
        if match:
            pairs = [term.split("x") for term in match[2][1:].split("+")]
            widths = [int(width) for count, width in pairs for _ in range(min(int(count), 99))]
            noise = cls(int(match[1]), tuple(widths))
            if noise.text == text:
                return noise
        raise InputError(
            f"{text[:60]!r} is no noise of coins.",
            "An example: coins:15+8x6+4x5 (docs/design/noise.md).",
        )


def fine_bits(sensitivity: int) -> int:
    """Return bits below the unit so that whole units hardly overstate the largest move.

    One unit where the move is a power of two, or little less; else 2 to 8 of a smaller one. Smaller
    units cost a bit more in each uniform.

    Args:
        sensitivity: Largest move of a score, in grid steps.
    """
    size = (sensitivity - 1).bit_length()
    tried: Sequence[int] = [max(0, size - step) for step in range(4)]
    waste = [(-(-sensitivity >> bits) << bits) / sensitivity for bits in tried]
    near = [bits for bits, over in zip(tried, waste, strict=True) if over <= 1.1]
    return near[0] if near else tried[-1]


def coin_step(fine: int, step: int) -> CoinNoise:
    """Return the ``step``-th noise, the variance rising by 2 to 8 % from one to the next.

    Args:
        fine: Bits below the unit.
        step: 0 to :data:`MOST_STEP`.
    """
    # In units of 4^width / 12 the variance is about k + 3m, k uniforms of which m have a bit more.
    width, above = 1 + step // 36, step % 36
    wide, rest = above // 3, FEWEST - above // 3 + above % 3
    return CoinNoise(fine, (*[width + 1] * wide, *[width] * rest))


# The discrete Gaussian, sampled exactly (Canonne, Kamath and Steinke, arXiv 2004.00010).
#
# Integers alone: no rounding, so none of the attacks on floating-point noise (Mironov 2012; Jin
# et al., arXiv 2112.05307) has anything to hold on to. How many bytes are read depends on what is
# drawn, and so does the time.


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
        drawn = _discrete_laplace(scale, bits)
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


def _discrete_laplace(scale: int, bits: Bits) -> int:
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
