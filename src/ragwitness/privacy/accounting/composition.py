"""Noise per query from a budget per account, as the paper calibrates it: (3.1) and (3.4)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ragwitness.core.errors import InputError
from ragwitness.privacy.accounting.ranges import positive, probability, whole


@dataclass(frozen=True, slots=True)
class PerQuery:
    """The budget of one query.

    Attributes:
        epsilon: Epsilon of one query.
        delta: Failure probability of one query.
        slack: delta' that composition over one account's queries adds.
        total: delta that the account then really has.
    """

    epsilon: float
    delta: float
    slack: float
    total: float


def per_query(epsilon: float, delta: float, queries: int) -> PerQuery:
    """Share an account's budget out over its queries (3.1).

    (3.1) as printed: delta_q = delta/q and delta' = delta, which adds up to 2 delta (the paper's
    footnote 2); half of delta as ``delta`` meets it, with an epsilon per query that is smaller by
    sqrt(ln(2/delta) / ln(1/delta)). Either meets epsilon to first order only: Lemma 3.2's second
    term comes on top.

    Args:
        epsilon: Epsilon of the account.
        delta: Failure probability of the account.
        queries: Number of queries that it may ask in a window.

    Raises:
        InputError: A value is outside its range.
    """
    # (3.1): epsilon_q = epsilon / sqrt(2 q ln(1 / delta)), delta_q = delta / q.
    positive("epsilon", epsilon)
    each = math.sqrt(2 * whole("queries", queries) * math.log(1 / probability("delta", delta)))
    return PerQuery(epsilon / each, delta / queries, delta, 2 * delta)


def classic_sigma(epsilon: float, delta: float, queries: int, sensitivity: float = 1.0) -> float:
    """Return the noise of (3.4): S sqrt(2 ln(1.25/delta_q)) / epsilon_q.

    Raises:
        InputError: A value is outside its range, or epsilon_q is not below 1, where the formula
            (Dwork & Roth 2014, Thm. A.1) does not hold.
    """
    part = per_query(epsilon, delta, queries)
    if part.epsilon >= 1:
        raise InputError(
            f"(3.4) holds below 1 per query; epsilon {epsilon:g} over {queries} queries gives"
            f" {part.epsilon:.3g}.",
            "Use the exact noise: ragwitness collusion calibrate.",
        )
    return (
        positive("sensitivity", sensitivity)
        * math.sqrt(2 * math.log(1.25 / part.delta))
        / part.epsilon
    )


def implied_epsilon(sigma: float, delta: float, queries: int, sensitivity: float = 1.0) -> float:
    """Return the epsilon per account for which (3.4) would have chosen ``sigma``.

    Raises:
        InputError: A value is outside its range, or (3.4) does not hold there.
    """
    # (3.4) solved for epsilon: epsilon_q is linear in it, and delta_q does not depend on it.
    unit = per_query(1.0, delta, queries)
    factor = math.sqrt(2 * math.log(1.25 / unit.delta)) / unit.epsilon
    epsilon = positive("sensitivity", sensitivity) * factor / positive("sigma", sigma)
    if epsilon * unit.epsilon >= 1:
        raise InputError(
            f"sigma {sigma:g} is too small for (3.4), which holds below 1 per query;"
            f" here {epsilon * unit.epsilon:.3g}.",
            "Only the exact account holds: ragwitness collusion bound --sigma.",
        )
    return epsilon


# The paper's way to a joint bound: compose (epsilon_q, delta_q) per query, as if opaque.
#
# Much looser than :mod:`~ragwitness.privacy.accounting.gaussian`, which uses that the noise is
# Gaussian; kept to show what a published figure is worth.

_LINEAR = 1.2564
"""e^x - 1 <= 2x up to here; App. A.2 uses it at x = epsilon_q."""


@dataclass(frozen=True, slots=True)
class PrivacyBudget:
    """An (epsilon, delta) guarantee."""

    epsilon: float
    delta: float


def optimal_composition(query: PrivacyBudget, count: int, delta: float) -> float:
    """Return the smallest epsilon that follows from (epsilon_q, delta_q) alone.

    Kairouz, Oh & Viswanath 2017, Thm. 3.3: the worst mechanism with such queries fails at one of
    them, or answers each by randomised response, whose privacy losses add up to a binomial. What
    the exact account is smaller by is what is lost by forgetting that the noise is Gaussian.

    Args:
        query: Budget of one query.
        count: Queries in all.
        delta: Failure probability of the joint guarantee.

    Raises:
        InputError: A value is outside its range, or the queries' own failures reach ``delta``.
    """
    from scipy.special import gammaln, log_expit

    epsilon, share = positive("epsilon", query.epsilon), probability("delta", query.delta)
    # All answers are sound, none is simply published, with probability (1 - delta_q)^m.
    sound = whole("queries", count) * math.log1p(-share)
    room = math.exp(sound)
    goal = (probability("delta", delta) + math.expm1(sound)) / room
    if goal <= 0:
        raise InputError(f"{count} queries fail with {-math.expm1(sound):.3g}, above {delta:g}.")
    # Randomised response is the worst mechanism: its privacy loss is a binomial walk.
    agreed = np.arange(count + 1)
    losses = (2 * agreed - count) * epsilon
    ways = gammaln(count + 1) - gammaln(agreed + 1) - gammaln(count - agreed + 1)
    chances = np.exp(ways + agreed * log_expit(epsilon) + (count - agreed) * log_expit(-epsilon))

    # Delta that an epsilon of ``joint`` leaves over; wanted is the smallest that leaves no more
    # than asked.
    def left(joint: float) -> float:
        above = losses > joint
        return float(-(chances[above] @ np.expm1(joint - losses[above])))

    low, high = 0.0, count * epsilon
    if left(low) <= goal:
        return low
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if left(middle) <= goal else (middle, high)
    return high


def joint_budget(
    epsilon: float,
    delta: float,
    queries: int,
    accounts: int,
    slack: float | None = None,
) -> PrivacyBudget:
    """Return what ``accounts`` that pool their answers spend together, by Theorem 3.4.

    Args:
        epsilon: Epsilon of one account.
        delta: Failure probability of one account.
        queries: Number of queries of one account; Theorem 3.4 holds only where they are enough.
        accounts: Number of accounts that pool.
        slack: delta'; the account's own slack where none is given.

    Returns:
        epsilon by (3.2), and its delta: that of the queries of all accounts, and ``slack``.

    Raises:
        InputError: A value is outside its range, or epsilon per query is too large for (A.1).
    """
    part = per_query(epsilon, delta, queries)
    if part.epsilon > _LINEAR:
        raise InputError(
            f"Theorem 3.4 needs at most {_LINEAR} per query; epsilon {epsilon:g} over {queries}"
            f" queries gives {part.epsilon:.3g}.",
            "Use the exact account: ragwitness collusion bound --sigma.",
        )
    # Theorem 3.4: sqrt(k) epsilon sqrt(ln(1/delta') / ln(1/delta)) + k epsilon² / ln(1/delta).
    room = math.log(1 / part.slack)
    slack = part.slack if slack is None else probability("delta'", slack)
    k = whole("accounts", accounts)
    first = math.sqrt(k) * epsilon * math.sqrt(math.log(1 / slack) / room)
    return PrivacyBudget(first + k * epsilon * epsilon / room, k * queries * part.delta + slack)
