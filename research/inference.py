"""The collusion paper's own bounds on membership inference (§3.5, §3.8), beside the tight ones."""

from __future__ import annotations

import math

from ragwitness.core.errors import InputError
from ragwitness.privacy.bounds import per_query
from ragwitness.privacy.ranges import at_least_zero, positive, probability, whole


def leading_sigma(epsilon: float, delta: float, queries: int, sensitivity: float = 1.0) -> float:
    """Return S / epsilon_q, the noise for which (3.7) is derived (App. A.3).

    It is about sqrt(2 ln(1.25 q / delta)) times smaller than ``classic_sigma``, and keeps
    the account's (epsilon, delta) only up to an epsilon of about 8.

    Raises:
        InputError: A value is outside its range.
    """
    return positive("sensitivity", sensitivity) / per_query(epsilon, delta, queries).epsilon


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


def mu_of_auc(auc: float) -> float:
    """Return the mu with which Gaussian noise gives this AUC; negative below one half.

    Raises:
        InputError: The AUC is outside its range.
    """
    from scipy.special import ndtri

    return math.sqrt(2) * float(ndtri(probability("AUC", auc)))


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
