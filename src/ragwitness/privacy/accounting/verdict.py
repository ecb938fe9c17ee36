"""The bound an audit certifies (5.2), and the one it should: from the committed noise."""

from __future__ import annotations

from dataclasses import dataclass

from ragwitness.errors import InputError
from ragwitness.privacy.accounting.calibration import implied_epsilon
from ragwitness.privacy.accounting.composition import joint_budget
from ragwitness.privacy.accounting.gaussian import epsilon_at, mu_of
from ragwitness.privacy.accounting.ranges import probability, whole
from ragwitness.privacy.accounting.renyi import renyi_epsilon

__all__ = ["Certificate", "audit_epsilon", "certify", "composition_slack"]


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a committed noise guarantees against any coalition up to a cap.

    Attributes:
        epsilon: Exact; every joint guarantee is at ``delta``.
        delta: Joint failure probability, delta* of the policy.
        mu: Gaussian privacy of all answers together.
        renyi: epsilon by (3.6).
        paper: epsilon by (5.2) for the epsilon per account that (3.4) would have needed this
            noise for; None where the paper's derivation does not reach.
        why: Why ``paper`` is None.
    """

    epsilon: float
    delta: float
    mu: float
    renyi: float
    paper: float | None
    why: str = ""


def composition_slack(delta: float, accounts: int, goal: float) -> float:
    """Return delta' = delta* - k_max delta_acc (§5.6), so that the whole fails at exactly delta*.

    Args:
        delta: Of one account.
        accounts: k_max, the declared cap on a coalition.
        goal: delta*, of the joint guarantee.

    Raises:
        InputError: A value is outside its range, or the accounts' own failures already reach
            delta* (§5.3: "well-formedness").
    """
    spent = whole("accounts", accounts) * probability("delta", delta)
    slack = probability("delta*", goal) - spent
    if slack <= 0:
        raise InputError(
            f"k_max x delta is {spent:g}, which is not below delta* = {goal:g}.",
            f"Lower delta below {goal / accounts:.3g}, lower k_max, or raise delta*.",
        )
    return slack


def audit_epsilon(epsilon: float, delta: float, queries: int, accounts: int, goal: float) -> float:
    """Return the epsilon of the paper's verdict (5.2), from the label epsilon of an account.

    Raises:
        InputError: A value is outside its range, or the policy is not well formed.
    """
    slack = composition_slack(delta, accounts, goal)
    return joint_budget(epsilon, delta, queries, accounts, slack).epsilon


def certify(
    sigma: float,
    queries: int,
    accounts: int,
    goal: float,
    *,
    delta: float,
    sensitivity: float = 1.0,
) -> Certificate:
    """Certify from the noise that was committed to, never from an epsilon on a label.

    Args:
        sigma: Committed noise, in units of the score.
        queries: Of one account in the window.
        accounts: k_max.
        goal: delta*.
        delta: Of one account; the exact account does without, the paper's needs it.
        sensitivity: L2 change of one score.

    Raises:
        InputError: A value is outside its range, or the policy is not well formed.
    """
    composition_slack(delta, accounts, goal)
    mu = mu_of(sigma, whole("accounts", accounts) * whole("queries", queries), sensitivity)
    paper: float | None = None
    why = ""
    try:
        label = implied_epsilon(sigma, delta, queries, sensitivity)
        paper = audit_epsilon(label, delta, queries, accounts, goal)
    except InputError as error:
        why = error.message
    return Certificate(epsilon_at(goal, mu), goal, mu, renyi_epsilon(mu, goal), paper, why)
