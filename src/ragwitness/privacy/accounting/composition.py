"""The paper's way to a joint bound: compose (epsilon_q, delta_q) per query, as if opaque.

Much looser than :mod:`~ragwitness.privacy.accounting.gaussian`, which uses that the noise is
Gaussian; kept to show what a published figure is worth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ragwitness.errors import InputError
from ragwitness.privacy.accounting.calibration import Split, per_query
from ragwitness.privacy.accounting.ranges import positive, probability, whole

__all__ = [
    "Budget",
    "advanced_composition",
    "joint_budget",
    "optimal_composition",
    "simple_growth",
]

_LINEAR = 1.2564
"""e^x - 1 <= 2x up to here; App. A.2 uses it at x = epsilon_q."""


@dataclass(frozen=True, slots=True)
class Budget:
    """An (epsilon, delta) guarantee."""

    epsilon: float
    delta: float


def advanced_composition(query: Budget, count: int, slack: float, *, tight: bool = False) -> Budget:
    """Return what ``count`` adaptive queries cost together (Lemma 3.2).

    Args:
        query: Of one query.
        count: Queries in all.
        slack: delta'.
        tight: With the second term of Kairouz, Oh & Viswanath 2017 (Thm. 3.4 there), divided by
            e^epsilon + 1: about half, not the paper's.

    Raises:
        InputError: A value is outside its range.
    """
    epsilon, delta = positive("epsilon", query.epsilon), probability("delta", query.delta)
    first = math.sqrt(2 * whole("queries", count) * -math.log(probability("delta'", slack)))
    second = count * epsilon * (math.tanh(epsilon / 2) if tight else math.expm1(epsilon))
    return Budget(first * epsilon + second, count * delta + slack)


def optimal_composition(query: Budget, count: int, delta: float) -> float:
    """Return the smallest epsilon that follows from (epsilon_q, delta_q) alone.

    Kairouz, Oh & Viswanath 2017, Thm. 3.3: the worst mechanism with such queries fails at one of
    them, or answers each by randomised response, whose privacy losses add up to a binomial. What
    the exact account is smaller by is what is lost by forgetting that the noise is Gaussian.

    Args:
        query: Of one query.
        count: Queries in all.
        delta: Of the joint guarantee.

    Raises:
        InputError: A value is outside its range, or the queries' own failures reach ``delta``.
    """
    from scipy.special import gammaln, log_expit

    epsilon, share = positive("epsilon", query.epsilon), probability("delta", query.delta)
    sound = whole("queries", count) * math.log1p(-share)
    room = math.exp(sound)
    goal = (probability("delta", delta) + math.expm1(sound)) / room
    if goal <= 0:
        raise InputError(f"{count} queries fail with {-math.expm1(sound):.3g}, above {delta:g}.")
    agreed = np.arange(count + 1)
    losses = (2 * agreed - count) * epsilon
    ways = gammaln(count + 1) - gammaln(agreed + 1) - gammaln(count - agreed + 1)
    chances = np.exp(ways + agreed * log_expit(epsilon) + (count - agreed) * log_expit(-epsilon))

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
    split: Split = "strict",
) -> Budget:
    """Return what ``accounts`` that pool their answers spend together, by Theorem 3.4.

    Args:
        epsilon: Of one account.
        delta: Of one account.
        queries: Of one account; Theorem 3.4 holds only where they are enough.
        accounts: That pool.
        slack: delta'; the account's own slack where none is given.
        split: How the account's delta was shared out.

    Returns:
        epsilon by (3.2), and its delta: that of the queries of all accounts, and ``slack``.

    Raises:
        InputError: A value is outside its range, or epsilon per query is too large for (A.1).
    """
    part = per_query(epsilon, delta, queries, split)
    if part.epsilon > _LINEAR:
        raise InputError(
            f"Theorem 3.4 needs at most {_LINEAR} per query; epsilon {epsilon:g} over {queries}"
            f" queries gives {part.epsilon:.3g}.",
            "Use the exact account: ragwitness collusion bound --sigma.",
        )
    room = math.log(1 / part.slack)
    slack = part.slack if slack is None else probability("delta'", slack)
    k = whole("accounts", accounts)
    first = math.sqrt(k) * epsilon * math.sqrt(math.log(1 / slack) / room)
    return Budget(first + k * epsilon * epsilon / room, k * queries * part.delta + slack)


def simple_growth(epsilon: float, accounts: int) -> float:
    """Return sqrt(k) epsilon: Theorem 3.4 without its second term.

    A rate, no bound: at a fixed delta the exact epsilon may be larger (noise calibrated exactly,
    epsilon 1, 1,024 accounts: twice as large).

    Raises:
        InputError: A value is outside its range.
    """
    return positive("epsilon", epsilon) * math.sqrt(whole("accounts", accounts))
