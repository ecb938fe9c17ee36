"""What a guarantee means for membership inference: bounds on advantage and AUC (§3.5, §3.8).

Advantage is the true-positive rate minus the false-positive rate at the best threshold. The
paper's bounds stand beside the tight ones; with Gaussian noise both are known exactly.
"""

from __future__ import annotations

import math

from ragwitness.privacy.accounting.ranges import at_least_zero, probability


def advantage_of(mu: float) -> float:
    """Return the best advantage against Gaussian noise: 2 Phi(mu/2) - 1.

    Raises:
        InputError: mu is outside its range.
    """
    return math.erf(at_least_zero("mu", mu) / math.sqrt(8))


def auc_of(mu: float) -> float:
    """Return the best AUC against Gaussian noise: Phi(mu / sqrt 2).

    Raises:
        InputError: mu is outside its range.
    """
    return (1 + math.erf(at_least_zero("mu", mu) / 2)) / 2


def advantage_limit(epsilon: float, delta: float) -> float:
    """Return the largest advantage under (epsilon, delta): (e^eps - 1 + 2 delta) / (e^eps + 1).

    Attained (Kairouz, Oh & Viswanath 2017), so nothing smaller holds.

    Raises:
        InputError: A value is outside its range.
    """
    return 1 - 2 * (1 - probability("delta", delta)) * _odds(epsilon)


def auc_limit(epsilon: float, delta: float) -> float:
    """Return the largest AUC under (epsilon, delta): 1 - (1 - delta)^2 / (1 + e^epsilon).

    The area over the trade-off function max(0, 1 - delta - e^eps x, e^-eps (1 - delta - x)).

    Raises:
        InputError: A value is outside its range.
    """
    return 1 - (1 - probability("delta", delta)) ** 2 * _odds(epsilon)


def _odds(epsilon: float) -> float:
    """Return 1 / (1 + e^epsilon), whatever epsilon."""
    small = math.exp(-at_least_zero("epsilon", epsilon))
    return small / (1 + small)
