"""Receipts: an account's evidence of a query, checked offline by the log's key (R2)."""

from __future__ import annotations

import contextlib
import hmac
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.attest.commitments import (
    answer_opening,
    query_opening,
    vector_bytes,
    vector_opening,
)
from ragwitness.attest.ledger import AGAIN
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.core.files import append_synced
from ragwitness.crypto.canonical import canonical, parse
from ragwitness.crypto.commitments import BLINDING_BYTES, Opening, commit
from ragwitness.crypto.hashing import HASH_BYTES, b64, parse_b64, parse_hex
from ragwitness.crypto.notes.witness import LogProof, SignedCheckpoint, Signers, open_proof
from ragwitness.crypto.transcript.records import QueryRecord, decode

VERSION = "ragwitness/receipt/v1"
MOST_RECEIPT = 1 << 20
"""Longest receipt that is read, in bytes."""

_FIELDS = {"version", "entry", "proof", "query", "vector", "ids", "blindings"}


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """What a query record commits to.

    Attributes:
        query: SHA-256 of the query as it was sent, 32 bytes.
        vector: Vector that was searched with, shape (dimension,).
        ids: The answer's slots, best first.
        blindings: Blindings of query, vector and answer, 32 bytes each.
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
            parse_hex(value["query"], HASH_BYTES, check),
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
            raise VerificationError("receipt.version", f"This is not a receipt of {VERSION}.")
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
        receipt: Receipt of a query.
        signers: Whose signatures under a checkpoint count.

    Returns:
        The record, its place in the log, and the checkpoint that covers it.

    Raises:
        VerificationError: ``receipt.record`` (no record of a query), ``receipt.query``,
            ``receipt.vector`` or ``receipt.answer`` (another than the record commits to), or by
            ``open_proof`` ``proof.*``, ``checkpoint.*``, ``log.*``.
    """
    # 1. The record of a query, 2. logged under a trusted signature.
    record = check_openings(receipt)
    proof, signed = open_proof(receipt.proof, receipt.entry, signers)
    return record, proof, signed


def check_openings(receipt: Receipt) -> QueryRecord:
    """Check that a receipt's record commits to what the receipt says; whether it is logged is open.

    Raises:
        VerificationError: ``receipt.record``, ``.query``, ``.vector`` or ``.answer``.
    """
    record = decode(receipt.entry)
    if not isinstance(record, QueryRecord):
        raise VerificationError("receipt.record", "A receipt does not hold the record of a query.")
    names = ("query", "vector", "answer")
    for name, opening in zip(names, receipt.opened.openings, strict=True):
        if not hmac.compare_digest(commit(opening).hex(), getattr(record, name)):
            raise VerificationError(
                f"receipt.{name}",
                f"The {name} on the receipt is not the one that its record commits to.",
            )
    return record


# What opens the window's query records: the provider's secret, one line for each.


@dataclass(frozen=True, slots=True, eq=False)
class KeptOpening:
    """One query record's secrets.

    Attributes:
        opened: Query, vector and answer with their blindings.
        text: The query itself, where the provider keeps it.
    """

    opened: Opened
    text: str | None


class OpeningsJournal:
    """Lines found by the leaf hash of the record that they open.

    A line is written before its record is logged. So one may stand here that no record follows,
    after a crash: nobody was told of it, and nothing looks for it.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[str, int] = {}
        self._read = 0

    def put(self, leaf: bytes, kept: KeptOpening) -> None:
        """Store what opens a record, once it is on the disk. Only for a holder of the lock.

        Raises:
            RagwitnessError: The disk is full or fails.
        """
        # Found again by the leaf hash of the record, which follows from what is stored.
        row = {"leaf": leaf.hex(), "text": kept.text, **kept.opened.fields()}
        line = json.dumps(row, separators=(",", ":")).encode() + b"\n"
        append_synced(self._path, self._seam() + line, AGAIN)

    def get(self, leaf: bytes) -> KeptOpening:
        """Return what opens a record.

        Raises:
            InputError: The file is damaged, or has no such line.
        """
        # Another process may have written it since the last look.
        if leaf.hex() not in self._places:
            self._index()
        place = self._places.get(leaf.hex())
        if place is None:
            raise self._damaged(f"what opens the record {leaf.hex()[:16]}… is missing")
        try:
            with self._path.open("rb") as file:
                file.seek(place)
                row = json.loads(file.readline())
            return KeptOpening(Opened.of(row, "journal"), row["text"])
        except (OSError, ValueError, KeyError, VerificationError) as error:
            raise self._damaged(str(error)) from error

    def _index(self) -> None:
        """Note the places of the lines that are new."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                for line in file:
                    if not line.endswith(b"\n"):
                        continue
                    # A line that a crash cut short opens nothing: no record follows it.
                    with contextlib.suppress(ValueError, KeyError, TypeError):
                        self._places[json.loads(line)["leaf"]] = self._read
                    self._read += len(line)
        except OSError as error:
            raise self._damaged(str(error.strerror)) from error

    def _seam(self) -> bytes:
        """Return what must stand before the next line: a line cut short must not swallow it."""
        with self._path.open("rb") as file:
            size = file.seek(0, 2)
            if not size:
                return b""
            file.seek(size - 1)
            return b"" if file.read(1) == b"\n" else b"\n"

    def _damaged(self, why: str) -> InputError:
        return InputError(
            f"{self._path} cannot open the window's records: {why}.",
            "Without it the record cannot be proved; restore the file from a backup.",
        )
