"""Signed requests and receipts: an account's evidence of its queries, checked offline (R2).

An account's public key (Ed25519, RFC 8032) is logged with its place, before its first query. Each
query carries a signature over all inputs of its noise and over the number of earlier queries. An
account signs one request under each number, so the provider cannot draw another noise for it.

A receipt holds the record of a query, the proof that the log has it, and its openings.
"""

from __future__ import annotations

import contextlib
import hmac
import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, PlainSerializer, PlainValidator

from ragwitness.attest.commitments import (
    answer_opening,
    query_opening,
    vector_bytes,
    vector_opening,
)
from ragwitness.attest.window_log import AGAIN
from ragwitness.core.errors import InputError, VerificationError, require
from ragwitness.core.files import append_synced
from ragwitness.crypto.hashing import (
    BLINDING_BYTES,
    Opening,
    b64,
    canonical,
    commit,
    draw_blinding,
    parse_b64,
    u64_text,
)
from ragwitness.crypto.keys import KeyKind, PrivateKey, PublicKey, key_fault, read_key, write_key
from ragwitness.crypto.notes import LogProof, SignedCheckpoint, Signers, open_proof
from ragwitness.crypto.records import (
    STRICT,
    Hex,
    QueryRecord,
    Slots,
    decode,
    encode_form,
    parse_form,
    validated,
)

MOST_RECEIPT = 1 << 20
"""Longest receipt that is read, in bytes."""


def _vector(text: object) -> NDArray[np.int16]:
    data = parse_b64(text, "vector") if isinstance(text, str) else b"\0"
    if len(data) % 2:
        raise ValueError("not a base64 text of two bytes for each entry")
    return np.frombuffer(data, "<i2").astype(np.int16)


_Vector = Annotated[
    NDArray[np.int16],
    PlainValidator(_vector),
    PlainSerializer(lambda vector: b64(vector_bytes(vector))),
]


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """Everything that opens a query record.

    Attributes:
        query: SHA-256 of the query as it was sent, 32 bytes.
        vector: Vector that was searched with, shape (dimension,).
        ids: The answer's slots, best first.
        blindings: Blindings of query, vector and answer, 32 bytes each.
    """

    query: Hex
    vector: _Vector
    ids: Slots
    blindings: tuple[Hex, Hex, Hex]
    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    @property
    def openings(self) -> tuple[Opening, Opening, Opening]:
        """Of query, vector and answer."""
        first, second, third = self.blindings
        return (
            query_opening(self.query, first),
            vector_opening(self.vector, second),
            answer_opening(self.ids, third),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _ReceiptFile:
    """The file of a receipt."""

    version: Literal["ragwitness/receipt/v1"]
    entry: str
    proof: str
    query: Hex
    vector: _Vector
    ids: Slots
    blindings: tuple[Hex, Hex, Hex]
    __pydantic_config__: ClassVar[ConfigDict] = STRICT


@dataclass(frozen=True, slots=True, eq=False)
class Receipt:
    """A record of the log, the proof that it is in, and its openings for its account.

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
        file = _ReceiptFile(
            "ragwitness/receipt/v1",
            self.entry.decode(),
            self.proof.decode(),
            self.opened.query,
            self.opened.vector,
            self.opened.ids,
            self.opened.blindings,
        )
        return encode_form(file)

    @classmethod
    def parse(cls, data: bytes) -> Receipt:
        """Return the receipt of a file; only its form is checked.

        Raises:
            VerificationError: ``receipt.fields``, or by
                :func:`~ragwitness.crypto.hashing.parse` ``receipt.*``.
        """
        file = parse_form(_ReceiptFile, data, MOST_RECEIPT, "receipt")
        opened = Opened(file.query, file.vector, file.ids, file.blindings)
        return cls(file.entry.encode(), file.proof.encode(), opened)


def check_receipt(
    receipt: Receipt, signers: Signers
) -> tuple[QueryRecord, LogProof, SignedCheckpoint]:
    """Check that a receipt's record is logged and commits to the receipt's contents.

    The account compares the rest with its own knowledge: its nonce, its query and its answer.

    Args:
        receipt: Receipt of a query.
        signers: Keys whose signatures under a checkpoint count.

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
    """Check that a receipt's record commits to its contents; the log is not looked at.

    Raises:
        VerificationError: ``receipt.record``, ``.query``, ``.vector`` or ``.answer``.
    """
    record = decode(receipt.entry)
    if not isinstance(record, QueryRecord):
        raise VerificationError("receipt.record", "A receipt does not hold the record of a query.")
    for name, opening in zip(("query", "vector", "answer"), receipt.opened.openings, strict=True):
        same = hmac.compare_digest(commit(opening).hex(), getattr(record, name))
        fault = f"The {name} on the receipt is not the one that its record commits to."
        require(same, f"receipt.{name}", fault)
    return record


# The openings of the window's query records: the provider's secret, one line for each.


@dataclass(frozen=True, slots=True, eq=False)
class KeptOpening:
    """One query record's secrets.

    Attributes:
        opened: Query, vector and answer with their blindings.
        text: The query itself, where the provider keeps it.
    """

    opened: Opened
    text: str | None


class OpeningsStore:
    """Openings by the leaf hash of their record.

    A line is written before its record is logged. After a crash a line may have no record, and no
    client knows of it.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[str, int] = {}
        self._read = 0

    def put(self, leaf: bytes, kept: KeptOpening) -> None:
        """Store the opening of a record; it is on the disk when this returns. Needs the lock.

        Raises:
            RagwitnessError: The disk is full or fails.
        """
        # The leaf hash of the record finds the line again.
        values = json.loads(encode_form(kept.opened))
        opened = {field.name: values[field.name] for field in fields(Opened)}
        row = {"leaf": leaf.hex(), "text": kept.text, **opened}
        line = json.dumps(row, separators=(",", ":")).encode() + b"\n"
        append_synced(self._path, self._seam() + line, AGAIN)

    def get(self, leaf: bytes) -> KeptOpening:
        """Return the opening of a record.

        Raises:
            InputError: The file is damaged, or has no such line.
        """
        try:
            # Another process may have written the line since the last look.
            if leaf.hex() not in self._places:
                self._index()
            with self._path.open("rb") as file:
                file.seek(self._places[leaf.hex()])
                row = json.loads(file.readline())
            text, _ = row.pop("text"), row.pop("leaf")
            return KeptOpening(validated(Opened, json.dumps(row).encode(), "opening"), text)
        except KeyError:
            raise self._damaged(f"the opening of {leaf.hex()[:16]}… is missing") from None
        except (OSError, ValueError, VerificationError) as error:
            raise self._damaged(str(error)) from error

    def _index(self) -> None:
        """Note the places of the lines that are new."""
        with self._path.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    continue
                # A line that a crash cut short opens nothing: no record follows it.
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    self._places[json.loads(line)["leaf"]] = self._read
                self._read += len(line)

    def _seam(self) -> bytes:
        """Return the bytes before the next line: a line cut short must not swallow it."""
        with self._path.open("rb") as file:
            # Read the last byte: a complete line ends with a newline.
            size = file.seek(0, 2)
            file.seek(max(0, size - 1))
            return b"" if file.read(1) in (b"", b"\n") else b"\n"

    def _damaged(self, why: str) -> InputError:
        return InputError(
            f"{self._path} cannot open the window's records: {why}.",
            "Without it the record cannot be proved; restore the file from a backup.",
        )


# Requests that are signed by their account.

_DOMAIN = "ragwitness/request/v1"
_KEY_BYTES = 32
_SIGNATURE_BYTES = 64


@dataclass(frozen=True, slots=True)
class RequestSignature:
    """An account's signature of a request.

    Attributes:
        sequence: Number of its earlier queries in this window.
        blinding: Of its commitment to the query, 32 bytes; its own, so that it can sign the
            commitment that is logged.
        signature: 64 bytes.

    Raises:
        InputError: Blinding or signature have another length.
    """

    sequence: int
    blinding: bytes
    signature: bytes

    def __post_init__(self) -> None:
        if len(self.blinding) != BLINDING_BYTES or len(self.signature) != _SIGNATURE_BYTES:
            raise InputError(
                f"A signed request has a blinding of {BLINDING_BYTES} bytes and a signature of"
                f" {_SIGNATURE_BYTES}, not {len(self.blinding)} and {len(self.signature)}."
            )


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One query as a client sent it.

    Attributes:
        tenant: Tenant of the index.
        account: The account that asks.
        query: SHA-256 of the query as it was sent, in hex.
        vector: Its integer vector, shape (dimension,).
        nonce: The client's own random text.
        checkpoint: The window's last checkpoint that the client saw.
        text: The query itself, if it is to be kept for a challenge.
        signed: The account's signature, where the account has a key
            (:func:`sign_request`).
    """

    tenant: str
    account: str
    query: str
    vector: NDArray[np.integer]
    nonce: str
    checkpoint: str
    text: str | None = None
    signed: RequestSignature | None = None


def request_message(
    window: str, tenant: str, account: str, sequence: int, nonce: str, checkpoint: str, query: str
) -> bytes:
    """Return the message that an account signs: canonical JSON under its own domain.

    The checkpoint's root covers the window's open record and the account's key, so that the
    signature holds in one log alone. No signed note or cosignature has this form: one ends in a
    new line, the other begins with its version.

    Args:
        window: Identifier of the audit window.
        tenant: Tenant of the index.
        account: The account that asks.
        sequence: Number of its earlier queries.
        nonce: Its own random text.
        checkpoint: The last of the log that it saw.
        query: Its commitment to the query's SHA-256, in hex: ``query`` of the record.
    """
    # Every input of the noise, and the number of earlier queries.
    texts = {
        "account": account,
        "checkpoint": checkpoint,
        "domain": _DOMAIN,
        "nonce": nonce,
        "query": query,
        "sequence": u64_text(sequence),
        "tenant": tenant,
        "window": window,
    }
    return canonical(texts)


def account_key(path: Path) -> PrivateKey:
    """Return an account's key from its file; a missing file gets a new key.

    Raises:
        InputError: The file is unreadable, others can read it, or it holds no Ed25519 key.
    """
    if not path.exists():
        write_key(path, PrivateKey.generate("account"))
    key = read_key(path)
    if key.kind is not KeyKind.NOTE:
        raise InputError(f"{path} holds no Ed25519 key.", "Let a new one be made in another file.")
    return key


def sign_request(key: PrivateKey, window: str, request: Request, sequence: int) -> Request:
    """Return a request with its account's signature.

    Never sign two requests under one sequence: the provider would choose between their noises. Send
    a request without an answer again unchanged.

    Args:
        key: The account's.
        window: Identifier of the audit window.
        request: With nonce and checkpoint.
        sequence: Number of the account's earlier queries.
    """
    # The account's own commitment to the query is logged and signed.
    blinding = draw_blinding()
    message = request_message(
        window,
        request.tenant,
        request.account,
        sequence,
        request.nonce,
        request.checkpoint,
        commit(query_opening(bytes.fromhex(request.query), blinding)).hex(),
    )
    return replace(request, signed=RequestSignature(sequence, blinding, key.sign(message)))


def verify_request(record: QueryRecord, signature: bytes, key: bytes) -> None:
    """Check the signature of a record by its account's key.

    Raises:
        VerificationError: ``record.signature``; the account did not sign this record's request.
    """
    message = request_message(
        record.window,
        record.tenant,
        record.account,
        int(record.sequence),
        record.nonce,
        record.checkpoint,
        record.query,
    )
    try:
        PublicKey("account", KeyKind.NOTE, key).verify(message, signature)
    except VerificationError as error:
        raise VerificationError(
            "record.signature", f"{record.account!r} did not sign what this record says it asked."
        ) from error


def check_key(key: bytes) -> None:
    """Check an account's public key: a point of edwards25519 that is not of small order.

    Raises:
        VerificationError: ``admit.key``; another length, or by
            :func:`~ragwitness.crypto.keys.key_fault`.
    """
    size = f"An account's key has {_KEY_BYTES} bytes (Ed25519), not {len(key)}."
    require(len(key) == _KEY_BYTES, "admit.key", size)
    require(not (fault := key_fault(key)), "admit.key", f"An account's key {fault}.")
