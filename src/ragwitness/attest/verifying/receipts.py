"""Checks of the accounts' receipts: what was promised at the answer stands in the log (M5)."""

from __future__ import annotations

from ragwitness.attest.receipts import Receipt, check_receipt
from ragwitness.attest.verifying.log import compare
from ragwitness.attest.verifying.steps import Case, NotCheckedError, refuse
from ragwitness.errors import VerificationError

__all__ = ["kept"]


def kept(case: Case) -> str:
    """Check each receipt against the log; one that contradicts it convicts the log's key.

    One that does not hold in itself says nothing of the provider: anybody can have written it.
    """
    if not case.receipts:
        raise NotCheckedError("none was given, so that a dropped record would go unseen")
    signers = case.trusted("no one can say whose receipts these are").listeners
    entries = case.evidence.entries
    for number, data in enumerate(case.receipts, 1):
        try:
            receipt = Receipt.parse(data)
            _, proof, signed = check_receipt(receipt, signers)
        except VerificationError as error:
            raise refuse(
                error.check,
                f"Receipt {number:,} of {len(case.receipts):,} does not hold in itself, which tells"
                f" of who handed it in, not of the log: {error.message}",
            ) from error
        if proof.index >= len(entries):
            raise refuse(
                "receipt.missing",
                f"A receipt is for entry {proof.index:,}; the log was closed with"
                f" {len(entries):,}.",
            )
        if entries[proof.index] != receipt.entry:
            raise refuse(
                "receipt.contradicted", f"The log has another entry {proof.index:,} than a receipt."
            )
        compare(case, signed.checkpoint, "receipt")
    return f"{len(case.receipts):,} receipts stand in the log"
