"""Renyi accounting of Gaussian answers (§3.7): closed forms and the moments accountant.

Looser than the exact account by a tenth to a half; what most libraries report.
"""

from __future__ import annotations

import math

import numpy as np

from ragwitness.privacy.accounting.ranges import at_least_zero, probability

ORDERS = np.concatenate([1 + np.geomspace(1e-3, 1e6, 1801)])
"""Orders of the moments accountant: 200 to a decade, so that the grid costs below 1e-4."""


def renyi_epsilon(mu: float, delta: float) -> float:
    """Return epsilon by (3.6): mu^2 / 2 + mu sqrt(2 ln(1/delta)).

    Args:
        mu: S sqrt(kq) / sigma, from the noise itself.
        delta: Failure probability of the joint guarantee.

    Raises:
        InputError: A value is outside its range.
    """
    at_least_zero("mu", mu)
    return mu * mu / 2 + mu * math.sqrt(-2 * math.log(probability("delta", delta)))


def moments_epsilon(mu: float, delta: float) -> float:
    """Return epsilon from Renyi divergences on a grid of orders (§3.7, Abadi et al. 2016).

    At order alpha, answers with mu cost alpha mu^2 / 2, and costs add up over queries, so mu^2 is
    all that has to be kept.

    Args:
        mu: S sqrt(kq) / sigma.
        delta: Failure probability of the joint guarantee.

    Raises:
        InputError: A value is outside its range.
    """
    at_least_zero("mu", mu)
    goal = -math.log(probability("delta", delta))
    # Renyi divergence alpha mu² / 2, converted at each order; the best order counts (§3.7).
    costs = ORDERS * mu * mu / 2 + goal / (ORDERS - 1)
    # Below (R3) by ln(alpha)/(alpha - 1) - ln(1 - 1/alpha) (Canonne et al. 2020, Prop. 12).
    return max(0.0, float((costs + (np.log1p(-1 / ORDERS) - np.log(ORDERS) / (ORDERS - 1))).min()))
