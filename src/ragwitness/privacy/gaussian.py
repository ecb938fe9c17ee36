r"""Exact privacy of Gaussian noise: one number, mu, and its conversions.

Any adaptive sequence of Gaussian answers is exactly as private as one Gaussian answer with
mu = S sqrt(m) / sigma (Dong, Roth & Su 2019, Cor. 2): S is the L2 sensitivity of an answer, m the
number of answers, over all accounts that pool theirs. Its privacy curve (Balle & Wang 2018, Thm. 8)

    delta(eps) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)

is written as phi(x - h) (M(x - h) - M(x + h)) with h = mu/2, x = eps/mu and Mills' ratio
M(t) = Phi(-t)/phi(t): no term overflows, and the difference is an integral of positive terms
where it would cancel. Every inverse errs on the private side, by less than 1e-12 of its value.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ragwitness.core.errors import InputError
from ragwitness.privacy.ranges import at_least_zero, positive, probability, whole

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_MOST = 1e100
"""Squares of mu stay numbers below it."""
_FAR = 30.0
"""From here on 1 - t M(t) is summed as its asymptotic series: the plain form has cancelled."""


def mu_of(sigma: float, queries: int, sensitivity: float = 1.0) -> float:
    """Return mu of ``queries`` answers, each with noise of standard deviation ``sigma``.

    Args:
        sigma: Standard deviation of the noise, in units of the score.
        queries: Answers in all, over every account that pools them.
        sensitivity: L2 change of one answer when one document changes.

    Raises:
        InputError: A value is outside its range.
    """
    moved = positive("sensitivity", sensitivity) * math.sqrt(whole("queries", queries))
    mu = moved / positive("sigma", sigma)
    if mu > _MOST:
        raise InputError(f"A sigma of {sigma:g} is no noise: mu is {mu:.3g}.")
    return mu


def epsilon_at(delta: float, mu: float) -> float:
    """Return the smallest epsilon with which mu-Gaussian privacy is (epsilon, delta)-private.

    Raises:
        InputError: A value is outside its range.
    """
    goal = math.log(probability("delta", delta))
    if at_least_zero("mu", mu) == 0 or log_delta_at(0.0, mu) <= goal:
        return 0.0
    # Delta falls with epsilon: bisection below the conversion of zero-concentrated privacy.
    high = mu * mu / 2 + mu * math.sqrt(-2 * goal)
    return _bisect(lambda epsilon: log_delta_at(epsilon, mu) <= goal, false=0.0, true=high)


def mu_for(epsilon: float, delta: float) -> float:
    """Return the largest mu that is (epsilon, delta)-private.

    Raises:
        InputError: A value is outside its range.
    """
    at_least_zero("epsilon", epsilon)
    goal = math.log(probability("delta", delta))
    # From the inverse of that conversion, which is too small, double until it is too large.
    root = math.sqrt(-2 * goal)
    low = 2 * epsilon / (root + math.sqrt(root * root + 2 * epsilon)) or delta  # as in epsilon_at
    high = 2 * low
    while log_delta_at(epsilon, high) <= goal:
        high *= 2
    return _bisect(lambda mu: log_delta_at(epsilon, mu) <= goal, false=high, true=low)


def sigma_for(epsilon: float, delta: float, queries: int, sensitivity: float = 1.0) -> float:
    """Return the smallest noise with which ``queries`` answers are (epsilon, delta)-private.

    Raises:
        InputError: A value is outside its range.
    """
    return mu_of(1.0, queries, sensitivity) / mu_for(epsilon, delta)


def log_delta_at(epsilon: float, mu: float) -> float:
    """Return ln of the smallest delta of mu-Gaussian privacy at ``epsilon``, for mu above 0.

    It stays finite where delta underflows.
    """
    from scipy.special import erfcx, log_ndtr

    half, middle = mu / 2, epsilon / mu
    near, far = middle - half, middle + half
    if near < -35:  # Mills' ratio overflows; the second term is then no part of the first
        first, second = float(log_ndtr(-near)), epsilon + float(log_ndtr(-far))
        return first + math.log1p(-math.exp(second - first))
    root = math.sqrt(math.pi / 2)
    above, below = (root * float(erfcx(t / math.sqrt(2))) for t in (near, far))
    gap = above - below if below < above / 2 else _mills_drop(middle, half)
    if gap <= 0:  # epsilon / mu beyond any double
        return -math.inf
    return -near * near / 2 - math.log(2 * math.pi) / 2 + math.log(gap)


def _mills_drop(middle: float, half: float) -> float:
    """Return M(middle - half) - M(middle + half): the integral of 1 - t M(t), all positive."""
    from scipy.special import erfcx

    t = middle + half * _NODES
    squared = 1 / np.maximum(t, _FAR) ** 2
    series = np.zeros_like(t)
    for odd in (17, 15, 13, 11, 9, 7, 5, 3):  # 1/t^2 (1 - 3/t^2 (1 - 5/t^2 (1 - ...)))
        series = odd * squared * (1 - series)
    slope = np.where(
        t > _FAR,
        squared * (1 - series),
        1 - np.minimum(t, _FAR) * math.sqrt(math.pi / 2) * erfcx(np.minimum(t, _FAR) / 2**0.5),
    )
    return float(half * (_WEIGHTS @ slope))


def _bisect(holds: Callable[[float], bool], *, false: float, true: float) -> float:
    """Return the end of the switch at which ``holds`` is true, to 1e-14 of its value."""
    for _ in range(200):
        if abs(true - false) <= 1e-14 * abs(true):
            break
        middle = (true + false) / 2
        if holds(middle):
            true = middle
        else:
            false = middle
    return true


# Renyi accounting of Gaussian answers (§3.7): closed forms and the moments accountant.
#
# Looser than the exact account by a tenth to a half; what most libraries report.


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


# Bounds on the advantage and AUC of membership inference (§3.5, §3.8).
#
# Advantage is the true-positive rate minus the false-positive rate at the best threshold. The
# paper's bounds stand beside the tight ones; with Gaussian noise both are known exactly.


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
