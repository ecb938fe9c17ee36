"""What the collusion paper states of composition and the package does not need: test oracles."""

import math

from ragwitness.core.errors import InputError
from ragwitness.privacy.bounds import PrivacyBudget
from ragwitness.privacy.ranges import positive, probability, whole
from research.inference import leading_sigma


def advanced_composition(
    query: PrivacyBudget, count: int, slack: float, *, tight: bool = False
) -> PrivacyBudget:
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
    # Lemma 3.2: sqrt(2 m ln(1/delta')) epsilon + m epsilon (e^epsilon - 1).
    first = math.sqrt(2 * whole("queries", count) * -math.log(probability("delta'", slack)))
    second = count * epsilon * (math.tanh(epsilon / 2) if tight else math.expm1(epsilon))
    return PrivacyBudget(first * epsilon + second, count * delta + slack)


def best_order(mu: float, delta: float) -> float:
    """Return the order at which (3.6) is attained: 1 + sqrt(2 ln(1/delta)) / mu.

    Raises:
        InputError: A value is outside its range.
    """
    return 1 + math.sqrt(-2 * math.log(probability("delta", delta))) / positive("mu", mu)


def simplified_epsilon(
    epsilon: float,
    delta: float,
    queries: int,
    accounts: int,
    sigma: float,
    sensitivity: float = 1.0,
) -> float:
    """Return epsilon by (3.7), at the account's own ``delta``.

    Args:
        epsilon: Of one account.
        delta: Of one account, and of the joint guarantee.
        queries: Of one account.
        accounts: That pool.
        sigma: The noise that is used.
        sensitivity: L2 change of one score.

    Raises:
        InputError: A value is outside its range, or ``sigma`` is less than the S / epsilon_q for
            which (3.7) is derived: with less noise it is false.
    """
    # (3.7) stands on sigma = S / epsilon_q (App. A.3); with less noise it is false.
    needed = leading_sigma(epsilon, delta, queries, sensitivity)
    if positive("sigma", sigma) < needed * (1 - 1e-12):
        raise InputError(
            f"(3.7) is derived for sigma {needed:.6g}; with {sigma:.6g} it does not hold.",
            "Use (3.6) or the exact account, which take the noise as it is.",
        )
    k = whole("accounts", accounts)
    return math.sqrt(k) * epsilon + k * epsilon * epsilon / (4 * math.log(1 / delta))
