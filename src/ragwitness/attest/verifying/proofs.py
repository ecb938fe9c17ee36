"""The expensive checks: the proofs of the norms, and those of the challenged answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwitness.attest.disclosure import Disclosure, noise_of
from ragwitness.attest.openings import link_context, norm_context
from ragwitness.attest.verifying.steps import Case
from ragwitness.crypto.transcript import QueryRecord
from ragwitness.errors import VerificationError

if TYPE_CHECKING:
    from ragwitness.crypto.proofs import Claim

__all__ = ["links", "norms"]

_SLOTS = 1 << 22  # whose noise is held at a time: 32 MB


def norms(case: Case) -> str:
    """Check once per tenant that no row is longer than the scale, on which the noise rests."""
    from ragwitness.crypto.proofs import verify_norms

    evidence = case.evidence
    for name, place in evidence.tenants.items():
        case.progress("norms", place, len(evidence.tenants))
        context = norm_context(evidence.policy.window, name)
        data = evidence.bundle.tenant(place, "norms.bin")
        try:
            verify_norms(evidence.setup, evidence.columns[place], context, data)
        except VerificationError as error:
            raise VerificationError(error.check, f"Index of {name}: {error.message}") from error
    case.progress("norms", len(evidence.tenants), len(evidence.tenants))
    return f"all rows of {len(evidence.tenants)} indexes are within the scale"


def links(case: Case) -> str:
    """Check that each challenged answer is what index, vector and sub-seed select (A2 to A4)."""
    from ragwitness.crypto.proofs import verify_selections

    rows = case.evidence.challenged
    largest = max(mechanism.capacity for mechanism in case.evidence.policy.tenants.values())
    group = max(1, _SLOTS // largest)
    for start in range(0, len(rows), group):
        case.progress("answers", start, len(rows))
        part = rows[start : start + group]
        claims = [_claim(case, *row) for row in part]
        files = case.evidence.bundle.files
        proofs = [files[f"records/{place}.proof"] for place, _, _ in part]
        try:
            verify_selections(case.evidence.setup, claims, proofs)
        except VerificationError as error:
            at = part[getattr(error, "place", 0)][0]
            _, _, said = error.message.partition(": ")
            raise VerificationError(
                error.check, f"Record {at:,}: {said or error.message}", error.hint
            ) from error
    case.progress("answers", len(rows), len(rows))
    return f"{len(rows):,} answers are the top of committed scores and committed noise"


def _claim(case: Case, place: int, record: QueryRecord, found: Disclosure) -> Claim:
    from ragwitness.crypto.proofs import Claim

    mechanism = case.evidence.mechanism(record)
    columns = case.evidence.columns[case.evidence.tenants[record.tenant]]
    noise = noise_of(mechanism, record, found.seed, found.query)
    return Claim(columns, case.evidence.vectors[place], noise, found.ids, link_context(record))
