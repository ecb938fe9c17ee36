"""The discrete Gaussian, sampled exactly (Canonne, Kamath and Steinke, arXiv 2004.00010).

Integers alone: no rounding, so none of the attacks on floating-point noise (Mironov 2012; Jin
et al., arXiv 2112.05307) has anything to hold on to. How many bytes are read depends on what is
drawn, and so does the time.
"""

from __future__ import annotations

import math
from fractions import Fraction

from ragwitness.errors import InputError
from ragwitness.privacy.accounting.ranges import positive
from ragwitness.privacy.sampler.bits import Bits, uniform

__all__ = ["EXACT_SAMPLER", "as_variance", "discrete_gaussian", "variance_of"]

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
    scale = math.isqrt(num // den) + 1
    spread = 2 * num * den * scale * scale
    while True:
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
    whole, num = divmod(num, den)
    for _ in range(whole):
        if not _bernoulli_exp_fraction(1, 1, bits):
            return False
    return _bernoulli_exp_fraction(num, den, bits)


def _bernoulli_exp_fraction(num: int, den: int, bits: Bits) -> bool:
    """Draw true with probability exp(-num/den) where num <= den."""
    k = 1
    while uniform(den * k, bits) < num:
        k += 1
    return k % 2 == 1
