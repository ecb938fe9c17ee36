"""Every account of the same noise at the same delta, side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ragwitness.core.errors import InputError
from ragwitness.core.types import Shown
from ragwitness.privacy.gaussian import (
    epsilon_at,
    moments_epsilon,
    mu_for,
    mu_of,
    renyi_epsilon,
    sigma_for,
)
from ragwitness.privacy.ranges import positive, probability, whole

# The bound an audit certifies (5.2), and the one it should: from the committed noise.


@dataclass(frozen=True, slots=True)
class Certificate:
    """The guarantee of a committed noise against any coalition up to a cap.

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
        delta: Failure probability of one account.
        accounts: k_max, the declared cap on a coalition.
        goal: delta*, of the joint guarantee.

    Raises:
        InputError: A value is outside its range, or the accounts' own failures already reach
            delta* (§5.3: "well-formedness").
    """
    # §5.6: k_max accounts fail with k_max · delta_acc, and what is left pays for composition.
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
    # (5.2): Theorem 3.4 with delta' such that the whole fails at exactly delta*.
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
        queries: Number of queries of one account in the window.
        accounts: k_max.
        goal: delta*.
        delta: Of one account; the exact account does without, the paper's needs it.
        sensitivity: L2 change of one score.

    Raises:
        InputError: A value is outside its range, or the policy is not well formed.
    """
    # The well-formedness of §5.3, then the exact account: mu of k·q answers, whatever the label.
    composition_slack(delta, accounts, goal)
    mu = mu_of(sigma, whole("accounts", accounts) * whole("queries", queries), sensitivity)
    paper: float | None = None
    reason = ""
    try:
        # (5.2) from the label that (3.4) would give this noise; where that does not hold, say why.
        label = implied_epsilon(sigma, delta, queries, sensitivity)
        paper = audit_epsilon(label, delta, queries, accounts, goal)
    except InputError as error:
        reason = error.message
    return Certificate(epsilon_at(goal, mu), goal, mu, renyi_epsilon(mu, goal), paper, reason)


@dataclass(frozen=True, slots=True)
class ServiceTerms:
    """Commitments of a provider, and the assumed coalition.

    Attributes:
        delta: Failure probability of one account.
        queries: Number of queries of one account in a window.
        accounts: Number of accounts that pool their answers, k.
        epsilon: Epsilon on the label of one account; None for none.
        sigma: Committed noise; None for what (3.4) chooses for the label.
        sensitivity: L2 change of one score when one document changes.
        slack: delta' of Theorem 3.4; None for ``delta``.
    """

    delta: float
    queries: int
    accounts: int
    epsilon: float | None = None
    sigma: float | None = None
    sensitivity: float = 1.0
    slack: float | None = None


@dataclass(frozen=True, slots=True)
class Bounds(Shown):
    """Joint spending of ``accounts`` by each method of accounting, all at ``delta``.

    Attributes:
        service: The terms.
        sigma: The noise that is accounted for.
        label: epsilon per account for which (3.4) chooses ``sigma``; None where it cannot.
        delta: Failure probability of the joint guarantee.
        mu: Gaussian privacy of all answers.
        exact: epsilon; nothing smaller holds.
        moments: Epsilon by Renyi divergences on a grid of orders.
        renyi: Epsilon by (3.6).
        paper: Epsilon by Theorem 3.4, from ``label``; None where that does not hold.
        one: Exact epsilon of one account at its own delta.
        why: Why ``paper`` is None.
    """

    service: ServiceTerms
    sigma: float
    label: float | None
    delta: float
    mu: float
    exact: float
    moments: float
    renyi: float
    paper: float | None
    one: float
    why: str = ""

    @property
    def kept(self) -> bool | None:
        """Whether the noise gives one account its label; None without a label."""
        label = self.service.epsilon
        return None if label is None else self.one <= label * (1 + 1e-9)  # rounding of inverses

    def verdict(self, cap: int, goal: float) -> Certificate:
        """Return what an audit certifies up to ``cap`` accounts at a joint delta* ``goal``.

        Raises:
            InputError: The policy is not well formed.
        """
        terms = self.service
        return certify(
            self.sigma, terms.queries, cap, goal, delta=terms.delta, sensitivity=terms.sensitivity
        )


def joint_bounds(service: ServiceTerms) -> Bounds:
    """Account for a coalition in every way, from the noise itself.

    Raises:
        InputError: A value is outside its range, or there is neither a label nor a noise.
    """
    # 1. The noise, and how often the whole may fail: k · delta + delta'.
    sigma = _sigma(service)
    count = whole("accounts", service.accounts) * whole("queries", service.queries)
    delta = probability("delta", service.delta)
    slack = delta if service.slack is None else probability("delta'", service.slack)
    joint = probability("the joint delta", service.accounts * delta + slack)
    # 2. mu of all answers together; 3. the paper's own bounds, where they hold.
    mu = mu_of(sigma, count, service.sensitivity)
    label, paper, reason = _published(service, sigma)
    return Bounds(
        service=service,
        sigma=sigma,
        label=label,
        delta=joint,
        mu=mu,
        exact=epsilon_at(joint, mu),
        moments=moments_epsilon(mu, joint),
        renyi=renyi_epsilon(mu, joint),
        paper=paper,
        one=epsilon_at(delta, mu / math.sqrt(service.accounts)),
        why=reason,
    )


def _sigma(service: ServiceTerms) -> float:
    if service.epsilon is not None:
        positive("epsilon", service.epsilon)
    if service.sigma is not None:
        return positive("sigma", service.sigma)
    if service.epsilon is None:
        raise InputError("There is nothing to account for.", "Give --epsilon or --sigma.")
    return classic_sigma(service.epsilon, service.delta, service.queries, service.sensitivity)


def _published(service: ServiceTerms, sigma: float) -> tuple[float | None, float | None, str]:
    """Return label and Theorem 3.4 where they hold, else the reason."""
    k, q = service.accounts, service.queries
    try:
        label = implied_epsilon(sigma, service.delta, q, service.sensitivity)
        paper = joint_budget(label, service.delta, q, k, service.slack).epsilon
    except InputError as error:
        return None, None, error.message
    return label, paper, ""


@dataclass(frozen=True, slots=True)
class NoisePlan:
    """Noise for a joint budget against ``accounts``.

    Attributes:
        accounts: Number of accounts that may pool, k.
        exact: sigma that is needed.
        paper: sigma by the paper: epsilon / sqrt(k) per account (§3.6) and (3.4); None where
            (3.4) does not hold.
        share: Exact epsilon of one account under ``exact``, at the joint delta.
        rule: epsilon / sqrt(k).
    """

    accounts: int
    exact: float
    paper: float | None
    share: float
    rule: float

    @property
    def ratio(self) -> float | None:
        """How many times the noise needed the paper asks for."""
        return None if self.paper is None else self.paper / self.exact


def noise_plan(
    epsilon: float, delta: float, queries: int, accounts: int, sensitivity: float = 1.0
) -> NoisePlan:
    """Return the noise with which ``accounts`` of ``queries`` each stay within a joint budget.

    Raises:
        InputError: A value is outside its range.
    """
    k = whole("accounts", accounts)
    exact = sigma_for(epsilon, delta, k * whole("queries", queries), sensitivity)
    # §3.6: each account gets epsilon / sqrt(k), and (3.4) its noise.
    rule = positive("epsilon", epsilon) / math.sqrt(k)
    try:
        paper = classic_sigma(rule, delta, queries, sensitivity)
    except InputError:
        paper = None
    return NoisePlan(
        k, exact, paper, epsilon_at(delta, mu_for(epsilon, delta) / math.sqrt(k)), rule
    )


# Noise per query from a budget per account, as the paper calibrates it: (3.1) and (3.4).


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
    divisor = math.sqrt(2 * whole("queries", queries) * math.log(1 / probability("delta", delta)))
    return PerQuery(epsilon / divisor, delta / queries, delta, 2 * delta)


def classic_sigma(epsilon: float, delta: float, queries: int, sensitivity: float = 1.0) -> float:
    """Return the noise of (3.4): S sqrt(2 ln(1.25/delta_q)) / epsilon_q.

    Raises:
        InputError: A value is outside its range, or epsilon_q is not below 1, where the formula
            (Dwork & Roth 2014, Thm. A.1) does not hold.
    """
    budget = per_query(epsilon, delta, queries)
    if budget.epsilon >= 1:
        raise InputError(
            f"(3.4) holds below 1 per query; epsilon {epsilon:g} over {queries} queries gives"
            f" {budget.epsilon:.3g}.",
            "Use the exact noise: ragwitness collusion calibrate.",
        )
    return (
        positive("sensitivity", sensitivity)
        * math.sqrt(2 * math.log(1.25 / budget.delta))
        / budget.epsilon
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
# Much looser than :mod:`~ragwitness.privacy.gaussian`, which uses that the noise is
# Gaussian; kept to show what a published figure is worth.

_LINEAR = 1.2564
"""e^x - 1 <= 2x up to here; App. A.2 uses it at x = epsilon_q."""


@dataclass(frozen=True, slots=True)
class PrivacyBudget:
    """An (epsilon, delta) guarantee."""

    epsilon: float
    delta: float


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
    budget = per_query(epsilon, delta, queries)
    if budget.epsilon > _LINEAR:
        raise InputError(
            f"Theorem 3.4 needs at most {_LINEAR} per query; epsilon {epsilon:g} over {queries}"
            f" queries gives {budget.epsilon:.3g}.",
            "Use the exact account: ragwitness collusion bound --sigma.",
        )
    # Theorem 3.4: sqrt(k) epsilon sqrt(ln(1/delta') / ln(1/delta)) + k epsilon² / ln(1/delta).
    room = math.log(1 / budget.slack)
    slack = budget.slack if slack is None else probability("delta'", slack)
    k = whole("accounts", accounts)
    first = math.sqrt(k) * epsilon * math.sqrt(math.log(1 / slack) / room)
    return PrivacyBudget(first + k * epsilon * epsilon / room, k * queries * budget.delta + slack)
