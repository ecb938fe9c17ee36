"""``ragwitness attest receipt``: what an account keeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ragwitness.cli.attest import print_values, signers
from ragwitness.cli.options import (
    AsJson,
    Trusted,
)
from ragwitness.core.errors import VerificationError
from ragwitness.core.options import Arg, PathRole

if TYPE_CHECKING:
    from ragwitness.crypto.notes.witness import Signers


def check(
    file: Annotated[Path, PathRole.READS, Arg()],
    trust: Trusted,
    query: str | None = None,
    nonce: str | None = None,
    checkpoint: str | None = None,
    account: str | None = None,
    sequence: int | None = None,
    as_json: AsJson = False,
) -> None:
    """Check a receipt offline.

    It must be signed, in the log, and of this query, vector and answer. Give all that you know:
    the noise depends on query, nonce, checkpoint, account and sequence, and a provider that changed
    one of them, or asked in your name, could have chosen it. It exits with 3 and the name of the
    check that fails.

    Args:
        file: The receipt.
        query: The query as you sent it; - reads standard input.
        nonce: The nonce that you sent.
        checkpoint: The checkpoint that you named, as text: its size and root.
        account: Your name as an account.
        sequence: The number of queries that you had sent before.
    """
    from ragwitness.attest.receipts import MOST_RECEIPT
    from ragwitness.core.files import read_file

    data = read_file(file, MOST_RECEIPT)
    who = signers(trust)
    known = {"account": account, "nonce": nonce, "checkpoint": checkpoint, "sequence": sequence}
    found = _query(data, who, query)
    # What the user knows is compared with what was signed: the noise follows from exactly these
    # values.
    for field, value in known.items():
        if value is None:
            continue
        held = found[field]
        if held != value:
            why = f"The record is of another {field} than yours."
            if field == "sequence":
                why = f"You had sent {value:,} queries before; the log has {held:,} of yours."
            raise VerificationError(f"receipt.{field}", why)
    print_values({"holds": True, **found}, as_json=as_json)


def _query(data: bytes, who: Signers, query: str | None) -> dict[str, object]:
    from ragwitness.attest.receipts import Receipt, check_receipt
    from ragwitness.crypto.transcript.records import SignedQueryRecord

    receipt = Receipt.parse(data)
    # Signature, inclusion in the log and the record's own digests; then the query, which only the
    # user knows.
    record, proof, signed = check_receipt(receipt, who)
    _compare(receipt.opened.query, query)
    return {
        "window": record.window,
        "tenant": record.tenant,
        "account": record.account,
        "sequence": int(record.sequence),
        "number": int(record.number),
        "nonce": record.nonce,
        "checkpoint": record.checkpoint,
        "signed": isinstance(record, SignedQueryRecord),
        "ids": list(receipt.opened.ids),
        "index": proof.index,
        "log_size": signed.checkpoint.size,
        "witnesses": [name for name, _ in signed.times],
    }


def _compare(digest: bytes, query: str | None) -> None:
    """Compare the receipt's query with the account's."""
    import sys
    from hashlib import sha256

    if query is not None:
        text = sys.stdin.read() if query == "-" else query
        if sha256(text.encode()).digest() != digest:
            raise VerificationError("receipt.query", "The receipt is of another query than this.")
