"""The numbers of a verdict: the paper's, the exact one, and the odometer's.

All at the policy's delta*, so that they can be compared.
"""

from __future__ import annotations

from collections import Counter

from ragwitness.attest.noise import coins_of
from ragwitness.attest.policy import MOST_EPSILON, joint_epsilon
from ragwitness.attest.verdict import Numbers
from ragwitness.attest.verifier.case import VerifierCase
from ragwitness.attest.verifier.checks import receipted
from ragwitness.attest.verifier.evidence import BundleEvidence
from ragwitness.core.errors import InputError
from ragwitness.privacy.bounds import audit_epsilon
from ragwitness.privacy.odometer import Odometer, Terms


def hollow(numbers: tuple[Numbers, ...]) -> list[str]:
    """Return of which tenants the numbers promise nothing."""
    return [
        f"no epsilon is shown for {number.tenant} at delta*"
        if number.exact is None
        else f"epsilon {number.exact:.3g} of {number.tenant} promises nothing"
        for number in numbers
        if number.exact is None or number.exact > MOST_EPSILON
    ]


def remarks(case: VerifierCase, numbers: tuple[Numbers, ...]) -> tuple[str, ...]:
    """Return what a reader should know and no check decides."""
    said = [
        f"{n.tenant}: all {n.answers:,} answers together come to epsilon {n.odometer:.3g}, more"
        f" than the {n.exact:.3g} of k_max accounts: the declared cap understates the load."
        for n in numbers
        if n.odometer is not None and n.exact is not None and n.odometer > n.exact
    ]
    if coins_of(case.evidence.policy):
        said.append(
            "The noise of opened records is proved and stays closed: whoever holds the bundle"
            " learns of it what the accounts do. That the provider told nobody its part cannot be"
            " proved. No odometer meters this noise; the exact number counts answers."
        )
    asked = Counter(f"{one.tenant}/{one.account}" for _, one in case.evidence.queries)
    shown, pinned = receipted(case), {} if case.trust is None else case.trust.pins.accounts
    bare = {who: n for who, n in asked.items() if who not in pinned and not shown[who]}
    if bare:
        who = next(iter(bare)) if len(bare) == 1 else f"{len(bare):,} accounts"
        said.append(
            f"{who}: neither a receipt nor a key in your terms. The provider may have invented what"
            f" the log has of {'it' if len(bare) == 1 else 'them'} ({sum(bare.values()):,} of"
            f" {asked.total():,} queries), under keys of its own."
        )
    watched = case.trust is not None and case.trust.notes.quorum
    if asked and not (case.seen_of_window or watched):
        said.append(
            f"{sum(shown[who] > 0 for who in asked):,} of {len(asked):,} accounts showed receipts."
            " Without a witness or a checkpoint from elsewhere nothing says that the others saw"
            " this log, and no other."
        )
    return tuple(said)


def numbers_of(evidence: BundleEvidence, name: str, *, listed: bool) -> Numbers:
    """Return the numbers of a tenant.

    Args:
        evidence: Of the bundle.
        name: The tenant.
        listed: Whether the provider's log of its windows is in the bundle, and holds.
    """
    policy = evidence.policy
    mechanism, goal = policy.tenants[name], policy.joint_delta
    # The paper's number from the label, the exact one of k_max accounts, and the odometer's of
    # all accounts.
    cap = policy.k_max * policy.queries
    paper, why = None, ""
    try:  # (5.2), from the epsilon on the label
        label = (policy.epsilon, policy.delta, policy.queries)
        paper = audit_epsilon(*label, policy.k_max, policy.joint_delta)
    except InputError as error:
        why = error.message
    asked = [i for i, (_, record) in enumerate(evidence.queries) if record.tenant == name]
    odometer: float | None = 0.0
    if mechanism.coins:  # no odometer meters it (docs/design/noise.md)
        odometer = None
    elif asked:
        meter = Odometer(Terms.of(mechanism, 1.0, policy.relation))
        meter.add(evidence.vectors[asked])
        odometer = mechanism.epsilon_at(goal, meter.mu(), len(asked))
    windows, together = None, None
    if listed and evidence.openings is not None:
        windows, together = evidence.openings.epsilon(name, goal, policy.relation)
    return Numbers(
        tenant=name,
        delta=goal,
        paper=paper,
        why=why,
        exact=joint_epsilon(policy, mechanism),
        odometer=odometer,
        answers=len(asked),
        cap=cap,
        windows=windows,
        together=together,
    )
