"""Renyi accounting of Gaussian answers (§3.7): closed forms and the moments accountant.

Looser than the exact account by a tenth to a half; what most libraries report.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from ragwitness.errors import InputError
from ragwitness.privacy.accounting.ranges import at_least_zero, probability

ORDERS = np.concatenate([1 + np.geomspace(1e-3, 1e6, 1801)])
"""Orders of the moments accountant: 200 to a decade, so that the grid costs below 1e-4."""

Conversion = Literal["mironov", "tight"]


def renyi_epsilon(mu: float, delta: float) -> float:
    """Return epsilon by (3.6): mu^2 / 2 + mu sqrt(2 ln(1/delta)).

    Args:
        mu: S sqrt(kq) / sigma, from the noise itself.
        delta: Of the joint guarantee.

    Raises:
        InputError: A value is outside its range.
    """
    at_least_zero("mu", mu)
    return mu * mu / 2 + mu * math.sqrt(-2 * math.log(probability("delta", delta)))


def moments_epsilon(
    mu: float, delta: float, orders: ArrayLike = ORDERS, conversion: Conversion = "tight"
) -> float:
    """Return epsilon from Renyi divergences on a grid of orders (§3.7, Abadi et al. 2016).

    At order alpha, answers with mu cost alpha mu^2 / 2, and costs add up over queries, so mu^2 is
    all that has to be kept.

    Args:
        mu: S sqrt(kq) / sigma.
        delta: Of the joint guarantee.
        orders: Above 1, shape (orders,).
        conversion: ``mironov`` is (R3); ``tight`` Canonne, Kamath & Steinke 2020, Prop. 12.

    Raises:
        InputError: A value is outside its range.
    """
    at_least_zero("mu", mu)
    goal = -math.log(probability("delta", delta))
    alpha = np.asarray(orders, dtype=np.float64)
    if not alpha.size or not (np.isfinite(alpha).all() and (alpha > 1).all()):
        raise InputError("Orders must be numbers above 1, at least one.")
    if conversion not in get_args(Conversion):
        raise InputError(f"No such conversion: {conversion!r}.", "Use mironov or tight.")
    # Renyi divergence alpha mu² / 2, converted at each order; the best order counts (§3.7).
    costs = alpha * mu * mu / 2 + goal / (alpha - 1)
    # Tighter by ln(1 - 1/alpha) - ln(alpha)/(alpha - 1) (Canonne, Kamath and Steinke 2020).
    if conversion == "tight":
        costs += np.log1p(-1 / alpha) - np.log(alpha) / (alpha - 1)
    return max(0.0, float(costs.min()))
