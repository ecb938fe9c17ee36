"""Checks of what was fixed before the first query: the policy, the setup, the indexes."""

from __future__ import annotations

from hashlib import sha256

from ragwitness.attest.index import check_shape, index_commitment
from ragwitness.attest.verifying.steps import Case, NotCheckedError, refuse
from ragwitness.errors import InputError
from ragwitness.privacy.accounting.gaussian import epsilon_at
from ragwitness.privacy.odometer import Terms

__all__ = ["embedder", "indexes", "label", "policy", "setup", "shape"]


def setup(case: Case) -> str:
    """Check that the proofs' keys are those that the verifier relies on."""
    trust = case.trusted("nothing says who made the setup of the proofs")
    if not trust.setup:
        raise NotCheckedError("the trust file names no setup", needed=True)
    if case.evidence.setup.digest != trust.setup:
        raise refuse("setup.trusted", "The bundle's setup is not the one that is relied on.")
    return f"{trust.setup[:16]}…, as in the trust file"


def policy(case: Case) -> str:
    """Check that the policy is the one that was committed to, for this window and its tenants."""
    evidence = case.evidence
    found, opened = evidence.policy, evidence.open
    if found.digest != opened.policy:
        raise refuse("policy.digest", "The policy is not the one that the open record commits to.")
    if not found.window == opened.window == evidence.bundle.window:
        raise refuse("policy.window", "Policy, open record and bundle name different windows.")
    if tuple(found.tenants) != tuple(index.tenant for index in opened.indexes):
        raise refuse("policy.tenants", "Policy and open record name different tenants.")
    for index, mechanism in zip(opened.indexes, found.tenants.values(), strict=True):
        if index.mechanism != mechanism.digest:
            raise refuse(
                "policy.mechanism",
                f"The open record gives {index.tenant} another mechanism than the policy.",
            )
    if int(opened.seed_count) != found.seed_count:
        raise refuse(
            "policy.seeds",
            f"The policy needs {found.seed_count:,} sub-seeds; {opened.seed_count} are committed.",
        )
    return f"k_max {found.k_max}, {found.queries:,} queries per account, delta* {found.joint_delta}"


def label(case: Case) -> str:
    """Check that the committed noise keeps the promise to a single account.

    The paper computes its verdict from the promise; one that the noise does not keep would make
    that number worthless.
    """
    found = case.evidence.policy
    worst = 0.0
    for tenant, mechanism in found.tenants.items():
        mu = Terms.of(mechanism, 1.0, found.relation).worst_mu(found.queries)
        extra = mechanism.extra_delta(found.epsilon, found.queries)
        real = epsilon_at(found.delta - extra, mu) if found.delta > extra else float("inf")
        if real > found.epsilon:
            raise refuse(
                "policy.label",
                f"{tenant} promises an account epsilon {found.epsilon:g} at delta"
                f" {found.delta:g}; its noise gives {real:.4g}.",
            )
        worst = max(worst, real)
    return f"one account: epsilon {worst:.3g} by the noise, {found.epsilon:g} promised"


def shape(case: Case) -> str:
    """Check that the proofs' keys fit the policy's mechanisms."""
    found = case.evidence.setup.shape
    try:
        check_shape(found, case.evidence.policy)
    except InputError as error:
        raise refuse("setup.shape", error.message) from error
    return f"chunks of {found.slots:,} slots, dimension {found.dimension}, top {found.top}"


def embedder(case: Case) -> str:
    """Check that the embedder's digests are those that were committed to."""
    found = case.evidence.embedder
    if found.commitment != case.evidence.open.embedder:
        raise refuse("embedder.commitment", "The embedder is not the one that was committed to.")
    return f"{len(found.artifacts)} artifacts committed"


def indexes(case: Case) -> str:
    """Check that columns and norm proofs are those that the open record commits to."""
    evidence = case.evidence
    for place, (index, mechanism) in enumerate(
        zip(evidence.open.indexes, evidence.policy.tenants.values(), strict=False)
    ):
        if place >= len(evidence.cards):
            break
        card, columns = evidence.cards[place], evidence.columns[place]
        data = evidence.bundle.tenant(place, "index.json")
        if index_commitment(data) != index.commitment:
            raise refuse(
                "index.commitment", f"The index of {index.tenant} is not the one committed to."
            )
        if columns.digest != card.columns:
            raise refuse("index.columns", f"The columns of {index.tenant} are others.")
        if sha256(evidence.bundle.tenant(place, "norms.bin")).hexdigest() != card.norms:
            raise refuse("index.norms", f"The norm proof of {index.tenant} is another.")
        if (card.slots, card.dimension) != (mechanism.capacity, mechanism.dimension):
            raise refuse("index.size", f"The index of {index.tenant} has another size.")
        if len(columns.chunks) * evidence.setup.shape.slots != card.slots:
            raise refuse("index.chunks", f"The columns of {index.tenant} cover other slots.")
    if len(evidence.cards) != len(evidence.open.indexes):
        raise refuse(
            "index.missing",
            f"{len(evidence.open.indexes)} indexes are committed to; the bundle holds"
            f" {len(evidence.cards)}.",
        )
    return (
        f"{len(evidence.cards)} committed indexes, {sum(c.slots for c in evidence.cards):,} slots"
    )
