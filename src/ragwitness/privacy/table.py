"""The discrete Gaussian from a table of 128-bit thresholds: fast, fixed in bytes, all but exact.

The table is a function of the variance in integer arithmetic: everyone computes the same one, and
its hash is committed. How far its distribution is from the exact one is computed with it, and
added to delta. Every draw reads the same number of bytes and takes one of two short paths, so that
it tells less by its time than rejection does.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.privacy.ranges import at_least_zero, whole
from ragwitness.privacy.sampler import as_variance

# Probabilities of the discrete Gaussian in integer arithmetic: the same bits everywhere.

PRECISION = 320
"""Binary digits behind the point of :func:`weights`."""

_GUARD = 64


def weights(variance: int | Fraction) -> list[int]:
    """Return exp(-k² / 2 sigma²)·2³²⁰ for k = 0, 1, … up to the last that is not 0.

    Each is too small by at most k(k + 1) units. With r(k) = exp(-(2k+1) / 2 sigma²), the ratio of
    neighbours, r(k+1) = r(k)·exp(-1/sigma²). All factors are at most 1 and rounded down, so a ratio
    is off by at most 2k + 1 units, and each adds that and one more to the error of a weight.

    Args:
        variance: sigma², an exact rational above 0.

    Returns:
        The weights; their number is about 21 sigma.

    Raises:
        InputError: ``variance`` is not a rational above 0.
    """
    # w_(k+1) / w_k = exp(-(2k + 1) / 2 sigma²): two factors, every product rounded down.
    num, den = as_variance(variance).as_integer_ratio()
    ratio, step = _exp_below(den, 2 * num), _exp_below(den, num)
    weight, values = 1 << PRECISION, []
    while weight:
        values.append(weight)
        weight = weight * ratio >> PRECISION
        ratio = ratio * step >> PRECISION
    return values


def _exp_below(num: int, den: int) -> int:
    """exp(-num/den)·2³²⁰, at most one unit too small and never too large."""
    # exp(-x) = exp(-x / 2^h)^(2^h) with x / 2^h at most 1/2, by the Taylor series.
    halvings = max(0, (num // den).bit_length() + 1)
    precision = PRECISION + _GUARD + 2 * halvings
    argument = (num << precision) // (den << halvings)  # at most 1/2
    total = term = 1 << precision
    k = 0
    while term:
        k += 1
        term = term * argument // (k << precision)
        total += -term if k % 2 else term
    for _ in range(halvings):
        total = total * total >> precision
    return max(0, total - (1 << (_GUARD // 2))) >> (precision - PRECISION)


TABLE_SAMPLER = "ragwitness/discrete-gaussian/table-128/v1"
"""Identifier of thresholds, layout of the stream and lookup; another layout is another version."""

BLOCK = 4096
"""Slots whose bytes come from one stream."""

MOST_VARIANCE = 1 << 28
"""Largest variance with a table (sigma 16,384: 425,000 thresholds)."""

_HALF = 64
_WHOLE = 128
_NO_GUARANTEE = 700.0  # an epsilon whose exponential a float still holds

Words = NDArray[np.uint64]


@dataclass(frozen=True, eq=False, slots=True)
class GaussianTable:
    """Cumulative thresholds of one variance; a draw is how many of them a 128-bit number reaches.

    Attributes:
        variance: sigma².
        radius: Largest draw; the table holds 2 · radius thresholds, for -radius to radius.
        digest: SHA-256 of identifier, variance and thresholds (16 bytes each, big-endian), hex.
        distance: Total variation distance to the exact discrete Gaussian, rounded up.
    """

    variance: Fraction
    radius: int
    digest: str
    distance: Fraction
    _high: Words = field(repr=False)
    _low: Words = field(repr=False)

    def draw(self, key: bytes, start: int, stop: int) -> NDArray[np.int64]:
        """Return the noise of slots ``start`` to ``stop - 1``; slots do not depend on each other.

        Slot i = 4096 b + j reads stream b, SHAKE256(key ‖ b as 8 bytes): the high half of its
        number is bytes 8j to 8j + 7, the low half bytes 32768 + 8j to 32768 + 8j + 7, both
        big-endian. The low half decides about one draw in 2⁵¹; it is read for those alone.

        Args:
            key: Key from :func:`~ragwitness.privacy.streams.record_key`.
            start: First slot.
            stop: One past the last.

        Returns:
            Noise, shape (stop - start,).
        """
        blocks = [
            self._draw_block(key, block, max(start - block * BLOCK, 0), stop - block * BLOCK)
            for block in range(start // BLOCK, -(-stop // BLOCK))
        ]
        return np.concatenate(blocks) if blocks else np.empty(0, np.int64)

    def pmf(self) -> list[Fraction]:
        """Return P(X = k) for k = 0 to radius; P(X = -k) is the same."""
        thresholds = [*map(int, self._low), 0]
        for i, high in enumerate(self._high.tolist()):
            thresholds[i] += high << _HALF
        thresholds[-1] = 1 << _WHOLE
        return [
            Fraction(thresholds[i] - thresholds[i - 1], 1 << _WHOLE)
            for i in range(self.radius, len(thresholds))
        ]

    def extra_delta(self, epsilon: float, releases: int) -> float:
        """Return what to add to delta because draws come from this table: (1 + e^epsilon)·T·d.

        ``distance`` d counts once per release however many slots there are: neighbouring indexes
        differ in one slot, and the noise of the others is the same in both.

        Args:
            epsilon: Epsilon of the guarantee.
            releases: Answers it covers, T.

        Returns:
            At most 1, which is no guarantee.

        Raises:
            InputError: ``epsilon`` or ``releases`` is negative.
        """
        factor = 1 + math.exp(min(at_least_zero("epsilon", epsilon), _NO_GUARANTEE))
        added = factor * whole("releases", releases, 0) * float(self.distance)
        return min(1.0, added * (1 + 1e-12))

    def _draw_block(self, key: bytes, block: int, start: int, stop: int) -> NDArray[np.int64]:
        # One stream per block: the leading 64 bits of all its slots, then the trailing ones.
        stop = min(stop, BLOCK)
        stream = hashlib.shake_256(key + block.to_bytes(8, "big"))
        high = np.frombuffer(stream.digest(8 * stop), ">u8").astype(np.uint64)[start:]
        reached = np.searchsorted(self._high, high)
        # The trailing 64 bits are read only where the leading ones equal a threshold's.
        ends = np.append(self._high, np.uint64(0))
        for i in np.flatnonzero(ends[reached] == high).tolist():
            at = 8 * (BLOCK + start + i)
            low = int.from_bytes(stream.digest(at + 8)[at:], "big")
            while reached[i] < len(self._high) and self._high[reached[i]] == high[i]:
                if int(self._low[reached[i]]) > low:
                    break
                reached[i] += 1
        drawn: NDArray[np.int64] = reached.astype(np.int64) - self.radius
        return drawn


@lru_cache(maxsize=32)
def gaussian_table(variance: int | Fraction) -> GaussianTable:
    """Return the table of a variance, the same on every platform.

    Below 0 a threshold is P(X <= x)·2¹²⁸ rounded down, from 0 on 2¹²⁸ minus that of -x - 1: draws
    are exactly symmetric. The first is that of the smallest x that rounds to 1 or more.

    Args:
        variance: sigma², an exact rational above 0.

    Raises:
        InputError: See :func:`check_table`.
    """
    # P(X <= x) · 2¹²⁸ for x below 0, rounded down; the upper half by symmetry.
    exact = check_table(variance)
    mass = weights(exact)
    total = 2 * sum(mass) - mass[0]
    below, sum_ = [], 0
    for weight in reversed(mass[1:]):
        sum_ += weight
        if threshold := (sum_ << _WHOLE) // total:
            below.append(threshold)
    thresholds = [*below, *((1 << _WHOLE) - t for t in reversed(below))]
    high = np.array([t >> _HALF for t in thresholds], np.uint64)
    low = np.array([t & ((1 << _HALF) - 1) for t in thresholds], np.uint64)
    # The digest fixes every threshold, so that a mechanism's digest fixes its noise.
    content = f"{TABLE_SAMPLER} {exact} {len(below)}\n".encode()
    content += b"".join(t.to_bytes(16, "big") for t in thresholds)
    return GaussianTable(
        exact,
        len(below),
        hashlib.sha256(content).hexdigest(),
        _distance(below, mass, total),
        high,
        low,
    )


def check_table(variance: int | Fraction) -> Fraction:
    """Return the variance if it can have a table.

    Raises:
        InputError: It is no rational above 0, or above :data:`MOST_VARIANCE`.
    """
    exact = as_variance(variance)
    if exact > MOST_VARIANCE:
        raise InputError(
            f"A table for a variance of {float(exact):g} would be too large (most:"
            f" {MOST_VARIANCE}, a sigma of {math.isqrt(MOST_VARIANCE)}).",
            "Use a coarser score grid, or the exact sampler.",
        )
    return exact


def _distance(below: list[int], mass: list[int], total: int) -> Fraction:
    """Half the sum of |table - exact| over all integers, rounded up.

    In units of 2⁻³²⁰. The weights are short by less than ``len(mass)³`` units in all, and each
    ends up in the sum at most four times, its share of the total among them.
    """
    radius = len(below)
    # Table against exact probabilities, 0 once, every other twice; then the tails outside.
    exact = [(weight << PRECISION) // total for weight in mass]
    scale = PRECISION - _WHOLE
    sizes = [b - a for a, b in zip([0, *below], below, strict=False)]
    middle = (1 << _WHOLE) - 2 * below[-1]
    off = abs((middle << scale) - exact[0]) + 2 * sum(exact[radius + 1 :])
    off += 2 * sum(
        abs((size << scale) - exact[k]) for size, k in zip(sizes, range(radius, 0, -1), strict=True)
    )
    return Fraction(off // 2 + 4 * len(mass) ** 3, 1 << PRECISION)
