"""The delta of Gaussian privacy, which the package holds as its logarithm."""

import math

from ragwitness.privacy.accounting.gaussian import log_delta_at


def delta_at(epsilon: float, mu: float) -> float:
    """Return the smallest delta with which mu-Gaussian privacy is (epsilon, delta)-private."""
    return math.exp(log_delta_at(epsilon, mu)) if mu else 0.0
