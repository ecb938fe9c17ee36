"""Probabilities of the discrete Gaussian in integer arithmetic: the same bits everywhere."""

from __future__ import annotations

from fractions import Fraction

from ragwitness.privacy.sampler.exact import as_variance

__all__ = ["PRECISION", "exact_pmf", "weights"]

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
    num, den = as_variance(variance).as_integer_ratio()
    ratio, step = _exp_below(den, 2 * num), _exp_below(den, num)
    weight, found = 1 << PRECISION, []
    while weight:
        found.append(weight)
        weight = weight * ratio >> PRECISION
        ratio = ratio * step >> PRECISION
    return found


def exact_pmf(variance: int | Fraction) -> list[Fraction]:
    """Return P(X = k) for k = 0, 1, … of the discrete Gaussian; P(X = -k) is the same.

    Correct to 2⁻²⁵⁶ for sigma up to 10⁵; what lies beyond the last is less than that.

    Args:
        variance: sigma², an exact rational above 0.

    Raises:
        InputError: ``variance`` is not a rational above 0.
    """
    found = weights(variance)
    total = 2 * sum(found) - found[0]
    return [Fraction(weight, total) for weight in found]


def _exp_below(num: int, den: int) -> int:
    """exp(-num/den)·2³²⁰, at most one unit too small and never too large."""
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
