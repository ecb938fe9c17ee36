"""Receipts: what an account keeps of a query, checked offline against the log's key (R2)."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.attest.openings import answer_opening, query_opening, vector_bytes, vector_opening
from ragwitness.crypto.canonical import canonical, parse
from ragwitness.crypto.commitments import BLINDING_BYTES, Opening, commit
from ragwitness.crypto.encoding import b64, parse_b64, parse_hex
from ragwitness.crypto.notes import LogProof, SignedCheckpoint, open_proof
from ragwitness.crypto.notes import Policy as Signers
from ragwitness.crypto.transcript import QueryRecord, decode
from ragwitness.errors import VerificationError

__all__ = ["MOST_RECEIPT", "Opened", "Receipt", "check_receipt"]

VERSION = "ragwitness/receipt/v1"
MOST_RECEIPT = 1 << 20
"""Longest receipt that is read, in bytes."""

_FIELDS = {"version", "entry", "proof", "query", "vector", "ids", "blindings"}
_HASH_BYTES = 32


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """What a query record commits to.

    Attributes:
        query: SHA-256 of the query as it was sent, 32 bytes.
        vector: That was searched with, shape (dimension,).
        ids: The answer's slots, best first.
        blindings: Of query, vector and answer, 32 bytes each.
    """

    query: bytes
    vector: NDArray[np.int16]
    ids: tuple[int, ...]
    blindings: tuple[bytes, bytes, bytes]

    @property
    def openings(self) -> tuple[Opening, Opening, Opening]:
        """Of query, vector and answer."""
        first, second, third = self.blindings
        return (
            query_opening(self.query, first),
            vector_opening(self.vector, second),
            answer_opening(self.ids, third),
        )

    def fields(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "query": self.query.hex(),
            "vector": b64(vector_bytes(self.vector)),
            "ids": list(self.ids),
            "blindings": [blinding.hex() for blinding in self.blindings],
        }

    @classmethod
    def of(cls, value: dict[str, Any], check: str) -> Opened:
        """Return what :meth:`fields` wrote.

        Raises:
            VerificationError: ``check``; a field is missing or has another form.
        """
        ids, blindings = value.get("ids"), value.get("blindings")
        texts = (value.get("query"), value.get("vector"))
        if (
            not (isinstance(ids, list) and isinstance(blindings, list) and len(blindings) == 3)
            or not all(isinstance(text, str) for text in (*texts, *blindings))
            or not all(type(slot) is int and 0 <= slot < 1 << 32 for slot in ids)
        ):
            raise VerificationError(check, "What opens a record is not in its form.")
        data = parse_b64(value["vector"], check)
        if len(data) % 2:
            raise VerificationError(check, "A vector has two bytes for each entry.")
        first, second, third = (parse_hex(text, BLINDING_BYTES, check) for text in blindings)
        return cls(
            parse_hex(value["query"], _HASH_BYTES, check),
            np.frombuffer(data, "<i2").astype(np.int16),
            tuple(ids),
            (first, second, third),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Receipt:
    """A record of the log, the proof that it is in, and what opens it for its account.

    Attributes:
        entry: The record, as it was logged.
        proof: A file of C2SP tlog-proof.
        opened: Query, vector and answer with their blindings; for the account alone.
    """

    entry: bytes
    proof: bytes
    opened: Opened

    def encode(self) -> bytes:
        """Return the file: canonical JSON."""
        texts = {"version": VERSION, "entry": self.entry.decode(), "proof": self.proof.decode()}
        return canonical(texts | self.opened.fields())

    @classmethod
    def parse(cls, data: bytes) -> Receipt:
        """Return the receipt of a file; nothing is checked but its form.

        Raises:
            VerificationError: ``receipt.version``, ``receipt.fields``, or by
                :func:`~ragwitness.crypto.canonical.parse` ``receipt.*``.
        """
        value = parse(data, MOST_RECEIPT, "receipt")
        if not isinstance(value, dict) or value.get("version") != VERSION:
            raise VerificationError("receipt.version", f"This is no receipt of {VERSION}.")
        texts = (value.get("entry"), value.get("proof"))
        if set(value) != _FIELDS or not all(isinstance(text, str) for text in texts):
            raise VerificationError("receipt.fields", "A receipt has too few or other fields.")
        opened = Opened.of(value, "receipt.fields")
        return cls(value["entry"].encode(), value["proof"].encode(), opened)


def check_receipt(
    receipt: Receipt, signers: Signers
) -> tuple[QueryRecord, LogProof, SignedCheckpoint]:
    """Check that a receipt's record is logged and commits to what the receipt says.

    An account compares the rest with what it knows: its nonce, its query and its answer.

    Args:
        receipt: Of a query.
        signers: Whose signatures under a checkpoint count.

    Returns:
        The record, its place in the log, and the checkpoint that covers it.

    Raises:
        VerificationError: ``receipt.record`` (no record of a query), ``receipt.query``,
            ``receipt.vector`` or ``receipt.answer`` (another than the record commits to), or by
            :func:`~ragwitness.crypto.notes.open_proof` ``proof.*``, ``checkpoint.*``, ``log.*``.
    """
    record = decode(receipt.entry)
    if not isinstance(record, QueryRecord):
        raise VerificationError("receipt.record", "A receipt holds the record of no query.")
    proof, signed = open_proof(receipt.proof, receipt.entry, signers)
    names = ("query", "vector", "answer")
    for name, opening in zip(names, receipt.opened.openings, strict=True):
        if not hmac.compare_digest(commit(opening).hex(), getattr(record, name)):
            raise VerificationError(
                f"receipt.{name}",
                f"The {name} on the receipt is not the one that its record commits to.",
            )
    return record, proof, signed
