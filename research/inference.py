"""Two conversions of the collusion paper (App. A.3, §4.1)."""

from __future__ import annotations

import math

from ragwitness.privacy.bounds import per_query
from ragwitness.privacy.ranges import positive, probability


def leading_sigma(epsilon: float, delta: float, queries: int, sensitivity: float = 1.0) -> float:
    """Return S / epsilon_q, the noise for which (3.7) is derived (App. A.3).

    It is about sqrt(2 ln(1.25 q / delta)) times smaller than ``classic_sigma``, and keeps
    the account's (epsilon, delta) only up to an epsilon of about 8.

    Raises:
        InputError: A value is outside its range.
    """
    return positive("sensitivity", sensitivity) / per_query(epsilon, delta, queries).epsilon


def mu_of_auc(auc: float) -> float:
    """Return the mu with which Gaussian noise gives this AUC; negative below one half.

    Raises:
        InputError: The AUC is outside its range.
    """
    from scipy.special import ndtri

    return math.sqrt(2) * float(ndtri(probability("AUC", auc)))
