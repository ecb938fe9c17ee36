"""How well pooled answers tell two worlds apart: AUC of large samples, and its exact spread."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import InputError
from ragwitness.privacy.accounting.composition import classic_sigma, leading_sigma
from ragwitness.privacy.accounting.gaussian import sigma_for
from ragwitness.privacy.accounting.ranges import positive, probability, whole
from ragwitness.stats.intervals import proportion_interval

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
        absent: In the world without it, shape (n,).

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
        queries: Of each account.
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


# How answers are pooled: by likelihood, by the mean, and with probes wasted elsewhere (§4.6).
#
# A weighted sum of answers with gaps g and weights w separates the worlds by
# mu = sum(w g) / (sigma sqrt(sum w^2)); the likelihood ratio is the sum with w = g, the best of
# them. Where all gaps are equal the mean is that sum.

Pooling: TypeAlias = Literal["everything", "on-target"]


def effective_accounts(accounts: int, on_target: int, pooling: Pooling = "everything") -> float:
    """Return how many accounts with every probe on target tell as much.

    The others probe a direction that holds nothing (the paper's adversary C). With the share
    alpha on target, the mean of everything is worth alpha^2 k accounts; a coalition that knows
    its own probes pools those on target alone, as the likelihood ratio does, and is worth
    alpha k. The paper measures the first.

    Args:
        accounts: k.
        on_target: Of them.
        pooling: What goes into the mean.

    Raises:
        InputError: A value is outside its range.
    """
    k = whole("accounts", accounts)
    aimed = whole("accounts on target", on_target, 0)
    if aimed > k:
        raise InputError(f"{aimed} of {k} accounts cannot be on target.")
    if pooling == "everything":
        return aimed * aimed / k
    if pooling == "on-target":
        return float(aimed)
    raise InputError(f"There is no pooling {pooling!r}.", "Use everything or on-target.")


# Where only the top K ids come back (§4.4), and to find an unknown document (goal G2).


def transfer_factor(k: int, n: int) -> float:
    """Return eta: how much of mu is left where only membership in the top K is seen.

    With p = K/n and z = Phi^-1(1 - p), eta = phi(z) / sqrt(p (1 - p)): the Pitman efficiency of
    the hit against the noisy score, exact as sigma grows beyond the spread of the scores.

    Args:
        k: Ids returned.
        n: Slots of the index.

    Raises:
        InputError: Not 1 <= k < n.
    """
    from scipy.special import ndtri

    if not 1 <= k < n:
        raise InputError(f"The top {k} of {n} slots is not a choice.", "Give 1 <= K < n.")
    # eta = phi(z_p) / sqrt(p (1 - p)): a slot at the threshold, seen as in or out.
    p = k / n
    z = float(-ndtri(p))
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi * p * (1 - p))


def queries_for(cosine: float, dim: int, sigma: float) -> int:
    """Return the pooled queries after which an unknown vector is estimated with this cosine.

    Ridge regression of a slot's vector (``research/reconstruction.py``): its cosine with the truth
    is about 1 / sqrt(1 + (sigma dim)^2 / m) after m queries, evenly over all directions.

    Raises:
        InputError: A value is outside its range.
    """
    square = probability("cosine", cosine) ** 2
    return math.ceil((positive("sigma", sigma) * whole("dim", dim, 2)) ** 2 * square / (1 - square))
