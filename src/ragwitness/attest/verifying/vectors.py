"""Checks of what was asked: the committed vectors, and the coalition estimated from them (R5)."""

from __future__ import annotations

import hmac
from hashlib import sha256

import numpy as np

from ragwitness.attest.openings import vector_opening
from ragwitness.attest.verifying.steps import Case, refuse
from ragwitness.crypto.commitments import commit

__all__ = ["coalition", "committed"]


def committed(case: Case) -> str:
    """Check that every vector is the one committed to, and no longer than the scale."""
    evidence = case.evidence
    rows = zip(evidence.queries, evidence.vectors, evidence.blindings, strict=True)
    for place, ((_, record), vector, blinding) in enumerate(rows):
        found = commit(vector_opening(vector, blinding))
        if not hmac.compare_digest(found, bytes.fromhex(record.vector)):
            raise refuse(
                "vectors.commitment", f"The vector of record {place:,} is not the committed one."
            )
    wide = evidence.vectors.astype(np.int64)
    sizes = np.einsum("nd,nd->n", wide, wide)
    for place, (_, record) in enumerate(evidence.queries):
        if sizes[place] > evidence.mechanism(record).scale ** 2:
            raise refuse("vectors.norm", f"The vector of record {place:,} is above the scale.")
    return f"{len(evidence.vectors):,} vectors opened, none above the scale"


def coalition(case: Case) -> str:
    """Estimate the coalition again and hold it against the certificate and the policy's cap."""
    from ragwitness.attest.coalition import certificate, estimate

    evidence = case.evidence
    policy, said = evidence.policy, evidence.close
    asked = [(record.tenant, record.account) for _, record in evidence.queries]
    found = estimate(policy, asked, evidence.vectors)
    data = evidence.bundle.files["estimate.json"]
    if sha256(data).hexdigest() != said.certificate:
        raise refuse("estimate.digest", "The certificate is not the one that the close states.")
    if certificate(found) != data:
        raise refuse(
            "estimate.certificate", "The policy's estimator gives another result on these queries."
        )
    if int(said.coalition) != found.size:
        raise refuse(
            "estimate.size", f"The estimate is {found.size}; the close states {said.coalition}."
        )
    if found.size > policy.k_max:
        raise refuse(
            "estimate.cap",
            f"{found.size} accounts ask like one; the policy declares at most {policy.k_max}.",
        )
    return (
        f"{found.size} of at most {policy.k_max} ask alike (estimator {policy.estimator.name},"
        f" cosine {found.threshold} or more)"
    )
