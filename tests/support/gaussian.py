"""The delta of Gaussian privacy and the exact discrete Gaussian, which only tests need."""

import math
from fractions import Fraction

from ragwitness.privacy.gaussian import log_delta_at
from ragwitness.privacy.table import weights


def delta_at(epsilon: float, mu: float) -> float:
    """Return the smallest delta with which mu-Gaussian privacy is (epsilon, delta)-private."""
    return math.exp(log_delta_at(epsilon, mu)) if mu else 0.0


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
