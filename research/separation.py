"""How well pooled answers tell two worlds apart: AUC of large samples, and its exact spread."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.privacy.bounds import classic_sigma
from ragwitness.privacy.gaussian import sigma_for
from ragwitness.stats.rates import proportion_interval
from research.inference import leading_sigma

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Area:
    """An AUC with its 95 % interval.

    Attributes:
        value: Share of pairs in which the present document scores higher, ties half.
        low: Lower end, DeLong's variance on the logit scale.
        high: Upper end.
        error: Standard error by DeLong.
        n: Trials in either world.
    """

    value: float
    low: float
    high: float
    error: float
    n: int


def area_of(present: Values, absent: Values) -> Area:
    """Return the Mann-Whitney AUC of two samples, by sorting each once.

    Args:
        present: Statistic in the world with the document, shape (n,).
        absent: Scores in the world without it, shape (n,).

    Raises:
        InputError: The samples differ in size, have under 2 values, or hold NaN.
    """
    n = present.size
    if present.shape != absent.shape or present.ndim != 1 or n < 2:
        raise InputError("An AUC of two worlds needs as many trials in either, 2 or more.")
    present, absent = np.sort(present), np.sort(absent)
    if math.isnan(float(present[-1])) or math.isnan(float(absent[-1])):  # NaN sorts last
        raise InputError("A statistic is not a number.")
    above, below = _placements(present, absent)
    value = float(above.mean())
    variance = float(above.var(ddof=1) + below.var(ddof=1)) / n
    if variance == 0 or value in (0.0, 1.0):
        low, high = proportion_interval(round(value * n), n)  # as in stats.auc_interval
        return Area(value, min(low, value), max(high, value), 0.0, n)
    error = math.sqrt(variance)
    logit, half = math.log(value / (1 - value)), 1.959963984540054 * error / (value * (1 - value))
    low, high = (1 / (1 + math.exp(-(logit + sign * half))) for sign in (-1, 1))
    return Area(value, low, high, error, n)


def _placements(present: Values, absent: Values) -> tuple[Values, Values]:
    """Share of ``absent`` below each of ``present``, and of ``present`` above each of ``absent``.

    Both sorted; ties count half.
    """
    n = absent.size
    left = np.searchsorted(absent, present, side="left")
    tied = bool((absent[np.minimum(left, n - 1)] == present).any())
    right = np.searchsorted(absent, present, side="right") if tied else left
    # present[i] > absent[j] where left[i] > j, and present[i] >= absent[j] where right[i] > j:
    # both counts for every j at once, without a second search
    not_above = np.cumsum(np.bincount(left, minlength=n + 1))[:n]
    under = np.cumsum(np.bincount(right, minlength=n + 1))[:n] if tied else not_above
    return (left + right) / (2.0 * n), 1.0 - (not_above + under) / (2.0 * n)


def spread(mu: float, n: int) -> float:
    """Return the exact standard error of the Mann-Whitney AUC of two normal samples.

    Two present values above one absent value have probability Q = Phi(h) - 2 T(h, 1/sqrt 3),
    h = mu/sqrt 2 and T Owen's function (two normals with correlation 1/2); then the variance is
    (A (1 - A) + 2 (n - 1) (Q - A^2)) / n^2.

    Args:
        mu: Distance of the means in standard deviations.
        n: Values in either sample.
    """
    from scipy.special import ndtr, owens_t

    h = abs(mu) / math.sqrt(2)  # the same on either side, and exact where A nears 1
    tail = float(ndtr(-h))
    joint = tail * (1 - tail) - 2 * float(owens_t(h, 1 / math.sqrt(3)))  # Q - A^2
    return math.sqrt(max(0.0, tail * (1 - tail) + 2 * (n - 1) * joint)) / n


# The noise that follows from a budget per account, by the calibrations in use.

Calibration: TypeAlias = Literal["classic", "leading", "exact"]
CALIBRATIONS: tuple[Calibration, ...] = ("classic", "leading", "exact")
"""``classic``: the paper's (3.1) with (3.4). ``leading``: sigma = S / eps_q, behind (3.7).
``exact``: the least noise with which q answers keep the budget."""


def noise_for(
    calibration: str, epsilon: float, delta: float, queries: int, sensitivity: float = 1.0
) -> float:
    """Return sigma.

    Args:
        calibration: One of :data:`CALIBRATIONS`.
        epsilon: Budget per account.
        delta: Failure probability per account.
        queries: Number of queries of each account.
        sensitivity: L2 change of one answer when one document changes.

    Raises:
        InputError: An unknown calibration, a value outside its range, or a budget per query for
            which (3.4) does not hold.
    """
    if calibration == "exact":
        return sigma_for(epsilon, delta, queries, sensitivity)
    if calibration not in CALIBRATIONS:
        raise InputError(
            f"There is no calibration {calibration!r}.", f"Available: {', '.join(CALIBRATIONS)}."
        )
    classic = calibration == "classic"
    return (classic_sigma if classic else leading_sigma)(epsilon, delta, queries, sensitivity)
