"""What the collusion paper states and the package does not need: test oracles."""

import math

from ragwitness.core.errors import InputError
from ragwitness.privacy.bounds import PrivacyBudget, per_query
from ragwitness.privacy.ranges import at_least_zero, positive, probability, whole
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


def construction_mu(
    epsilon: float,
    delta: float,
    queries: int,
    accounts: int,
    gap: float = 1.0,
    sensitivity: float = 1.0,
) -> float:
    """Return mu of the attack of Theorem 3.5 on noise calibrated by (3.4).

    Every account asks the same query until its limit: mu = sqrt(k) epsilon gap /
    (2 S sqrt(ln(1/delta) ln(1.25 q/delta))); q itself cancels, but for its logarithm. The
    mechanism (3.3) answers with the score itself.

    Args:
        epsilon: Of one account.
        delta: Of one account.
        queries: Of one account.
        accounts: That pool.
        gap: Difference of the target's score between the two indices.
        sensitivity: That the noise was calibrated for.

    Raises:
        InputError: A value is outside its range.
    """
    part = per_query(epsilon, delta, queries)
    logs = math.sqrt(math.log(1 / delta) * math.log(1.25 / part.delta))
    scale = positive("gap", gap) / (2 * positive("sensitivity", sensitivity) * logs)
    return math.sqrt(whole("accounts", accounts)) * epsilon * scale


def paper_linear_advantage(mu: float) -> float:
    """Return (3.5): the advantage where it is linear, sqrt(2/pi) mu/2.

    Raises:
        InputError: mu is outside its range.
    """
    return at_least_zero("mu", mu) / math.sqrt(2 * math.pi)


def paper_auc(advantage: float) -> float:
    """Return the AUC as the paper has it of an advantage: one half more than half of it.

    Exact for a classifier with two answers; the AUC of a Gaussian score is larger, by up to 41 %
    of what it has above one half.

    Raises:
        InputError: The advantage is outside [0, 1].
    """
    if not 0 <= advantage <= 1:
        raise InputError(f"An advantage lies within 0 and 1, not {advantage:g}.")
    return (1 + advantage) / 2


def paper_advantage_limit(epsilon: float, delta: float, *, linear: bool = False) -> float:
    """Return (3.8): at most e^epsilon - 1 + delta, and never more than 1.

    Args:
        epsilon: Of the joint guarantee.
        delta: Of the joint guarantee.
        linear: The further bound 2 epsilon + delta, for an epsilon of 1 at most.

    Raises:
        InputError: A value is outside its range.
    """
    at_least_zero("epsilon", epsilon)
    probability("delta", delta)
    if linear and epsilon > 1:
        raise InputError(f"2 epsilon + delta holds up to epsilon 1, not at {epsilon:g}.")
    growth = 2 * epsilon if linear else math.expm1(min(epsilon, 1.0))
    return min(1.0, growth + delta)


def paper_growth_limit(epsilon: float, delta: float, accounts: int) -> float:
    """Return (3.9): 2 sqrt(k) epsilon + (k + 1) delta, never more than 1.

    It leaves out the second term of Theorem 3.4, so it is that theorem's reading, not its
    consequence.

    Raises:
        InputError: A value is outside its range, or sqrt(k) epsilon is above 1.
    """
    k = whole("accounts", accounts)
    joint = positive("epsilon", epsilon) * math.sqrt(k)
    if joint > 1:
        raise InputError(f"(3.9) holds up to sqrt(k) epsilon = 1, not at {joint:g}.")
    return min(1.0, 2 * joint + (k + 1) * probability("delta", delta))
