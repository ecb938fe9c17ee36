"""The numbers of a verdict: the paper's, the exact one, the odometer's, and what an attack showed.

All at the policy's delta*, so that they can be compared.
"""

from __future__ import annotations

from ragwitness.attest.verdict import Empirical, Numbers
from ragwitness.attest.verifying.evidence import Evidence
from ragwitness.attest.verifying.steps import Case, NotCheckedError, refuse
from ragwitness.errors import InputError
from ragwitness.privacy.accounting.gaussian import epsilon_at
from ragwitness.privacy.accounting.verdict import audit_epsilon
from ragwitness.privacy.mechanism import Mechanism
from ragwitness.privacy.odometer import Odometer, Terms

__all__ = ["MOST_EPSILON", "attacked", "exact_epsilon", "hollow", "numbers_of", "remarks"]

MOST_EPSILON = 60.0
"""Largest joint epsilon of a pass; tables of noise show none above it, and it promises nothing."""


def exact_epsilon(mechanism: Mechanism, mu: float, delta: float, answers: int) -> float | None:
    """Return epsilon at ``delta`` of answers whose Gaussian privacy is ``mu``.

    The table's distance from the exact noise, times e^epsilon, is taken off delta first. It is
    taken for an epsilon that is larger by 1, and what is left gives a smaller one than that.

    Returns:
        None where the table alone fails more often than ``delta``: from about 60 on, no epsilon is
        shown to hold.
    """
    first = epsilon_at(delta, mu)
    left = delta - mechanism.extra_delta(first + 1, answers)
    if left <= 0:
        return None
    found = epsilon_at(left, mu)
    return found if found <= first + 1 else None


def numbers_of(evidence: Evidence, empirical: Empirical | None) -> tuple[Numbers, ...]:
    """Return the numbers of every tenant."""
    return tuple(_numbers(evidence, name, empirical) for name in evidence.policy.tenants)


def hollow(numbers: tuple[Numbers, ...]) -> list[str]:
    """Return of which tenants the numbers promise nothing."""
    return [
        f"no epsilon is shown for {number.tenant} at delta*"
        if number.exact is None
        else f"epsilon {number.exact:.3g} of {number.tenant} promises nothing"
        for number in numbers
        if number.exact is None or number.exact > MOST_EPSILON
    ]


def attacked(case: Case) -> str:
    """Check that no attack has shown more than the noise allows for as many answers."""
    found = case.empirical
    if found is None:
        raise NotCheckedError("no lower bound of an attack was given")
    policy = case.evidence.policy
    matching = [m for m in policy.tenants.values() if m.digest == found.mechanism]
    if not matching:
        raise NotCheckedError("the lower bound is of another mechanism than the policy's")
    answers = found.accounts * found.queries
    mu = Terms.of(matching[0], 1.0, policy.relation).worst_mu(answers)
    allowed = exact_epsilon(matching[0], mu, found.delta, answers)
    if allowed is None:
        raise NotCheckedError("the noise allows more than any attack can show")
    if found.epsilon > allowed:
        raise refuse(
            "empirical.bound",
            f"{found.attack} shows epsilon {found.epsilon:.4g} or more"
            f" (confidence {found.confidence:g}) where the noise allows {allowed:.4g}.",
        )
    return f"{found.attack} shows {found.epsilon:.3g}, allowed are {allowed:.3g}"


def remarks(case: Case, numbers: tuple[Numbers, ...]) -> tuple[str, ...]:
    """Return what a reader should know and no check decides."""
    evidence = case.evidence
    said = [
        f"{n.tenant}: all {n.answers:,} answers together come to epsilon {n.odometer:.3g}, more"
        f" than the {n.exact:.3g} of k_max accounts: the declared cap understates the load."
        for n in numbers
        if n.odometer is not None and n.exact is not None and n.odometer > n.exact
    ]
    bare = sum(not record.nonce for _, record in evidence.queries)
    if bare:
        said.append(
            f"{bare:,} queries carry no nonce of their client: their noise could have been known"
            " when the seed was drawn."
        )
    watched = case.trust is not None and case.trust.notes.quorum
    if not (case.receipts or case.seen or watched):
        said.append(
            "No receipt, witness or checkpoint from elsewhere: nothing says that accounts saw this"
            " log, and no other."
        )
    return tuple(said)


def _numbers(evidence: Evidence, name: str, empirical: Empirical | None) -> Numbers:
    policy = evidence.policy
    mechanism, goal = policy.tenants[name], policy.joint_delta
    terms = Terms.of(mechanism, 1.0, policy.relation)
    cap = policy.k_max * policy.queries
    paper, why = _paper(evidence)
    meter = Odometer(terms)
    asked = [i for i, (_, record) in enumerate(evidence.queries) if record.tenant == name]
    if asked:
        meter.add(evidence.vectors[asked])
    shown = empirical is not None and empirical.mechanism == mechanism.digest
    return Numbers(
        tenant=name,
        delta=goal,
        paper=paper,
        why=why,
        exact=exact_epsilon(mechanism, terms.worst_mu(cap), goal, cap),
        odometer=exact_epsilon(mechanism, meter.mu(), goal, len(asked)) if asked else 0.0,
        empirical=empirical.epsilon if empirical is not None and shown else None,
        answers=len(asked),
        cap=cap,
    )


def _paper(evidence: Evidence) -> tuple[float | None, str]:
    """Return (5.2), from the epsilon on the label."""
    policy = evidence.policy
    try:
        label = (policy.epsilon, policy.delta, policy.queries)
        return audit_epsilon(*label, policy.k_max, policy.joint_delta), ""
    except InputError as error:
        return None, error.message
