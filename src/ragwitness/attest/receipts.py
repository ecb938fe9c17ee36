"""Receipts: an account's evidence of a query, checked offline by the log's key (R2)."""

from __future__ import annotations

import contextlib
import hmac
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.attest.commitments import (
    answer_opening,
    parse_token,
    query_opening,
    vector_bytes,
    vector_opening,
)
from ragwitness.attest.window_log import AGAIN
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.core.files import append_synced
from ragwitness.crypto.hashing import (
    BLINDING_BYTES,
    HASH_BYTES,
    Opening,
    b64,
    canonical,
    commit,
    draw_blinding,
    parse,
    parse_b64,
    parse_hex,
    u64_text,
)
from ragwitness.crypto.keys import KeyKind, PrivateKey, PublicKey, read_key, write_key
from ragwitness.crypto.merkle import verify_inclusion
from ragwitness.crypto.notes import LogProof, SignedCheckpoint, Signers, open_proof
from ragwitness.crypto.records import KeyedAdmitRecord, QueryRecord, decode

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
                :func:`~ragwitness.crypto.hashing.parse` ``receipt.*``.
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


# Requests signed by their account: a provider cannot invent what somebody asked.
#
# An account's public key (Ed25519, RFC 8032) is logged with its place, before its first query. Each
# of its queries carries its signature over everything that its noise is made of, and over how many
# came before: an account signs one request under each number, so that another noise for it needs
# another signature.


KEY_BYTES = 32
"""Length of an account's public key."""

_DOMAIN = "ragwitness/request/v1"
_NONCE_BYTES = 16
_SIGNATURE_BYTES = 64

# edwards25519 (RFC 8032, 5.1): -x² + y² = 1 + d x² y² over the integers modulo p.
_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)


@dataclass(frozen=True, slots=True)
class RequestSignature:
    """What an account with a key adds to a request.

    Attributes:
        sequence: How many queries of it came before in this window.
        blinding: Of its commitment to the query, 32 bytes; its own, so that it can sign what will
            stand in the log.
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
        tenant: Whose index is asked.
        account: Who asks.
        query: SHA-256 of the query as it was sent, in hex.
        vector: Its integer vector, shape (dimension,).
        nonce: The client's own random text.
        checkpoint: Which the client names: the window's at the time when the client saw it.
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
    """Return what an account signs: canonical JSON, under a domain of its own.

    The checkpoint's root covers the window's open record and the account's key, so that the
    signature holds in one log alone. No signed note or cosignature has this form: one ends in a
    new line, the other begins with its version.

    Args:
        window: Identifier of the audit window.
        tenant: Whose index is asked.
        account: Who asks.
        sequence: How many queries of it came before.
        nonce: Its own random text.
        checkpoint: The last of the log that it saw.
        query: Its commitment to the query's SHA-256, in hex: ``query`` of the record.
    """
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
    """Return an account's key out of its file, which is made where there is none.

    Raises:
        InputError: The file is unreadable, others can read it, or it holds no Ed25519 key.
    """
    if not path.exists():
        write_key(path, PrivateKey.generate("account"))
    key = read_key(path)
    if key.kind is not KeyKind.NOTE:
        raise InputError(f"{path} holds no Ed25519 key.", "Let a new one be made in another file.")
    return key


def draw_nonce() -> str:
    """Return a fresh nonce."""
    return os.urandom(_NONCE_BYTES).hex()


def sign_request(key: PrivateKey, window: str, request: Request, sequence: int) -> Request:
    """Return a request with its account's signature.

    Never sign two requests under one sequence: the provider would choose between their noises. A
    request that was not answered is sent again as it is.

    Args:
        key: The account's.
        window: Identifier of the audit window.
        request: With nonce and checkpoint.
        sequence: How many queries of the account came before.
    """
    hidden = draw_blinding()
    committed = commit(query_opening(bytes.fromhex(request.query), hidden)).hex()
    message = request_message(
        window,
        request.tenant,
        request.account,
        sequence,
        request.nonce,
        request.checkpoint,
        committed,
    )
    return replace(request, signed=RequestSignature(sequence, hidden, key.sign(message)))


def verify_request(record: QueryRecord, signature: bytes, key: bytes) -> None:
    """Check the signature of a record by its account's key.

    Raises:
        VerificationError: ``record.signature``; what stands in the record was not signed by it.
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

    Under a key of small order anybody can write signatures that hold, for any message.

    Raises:
        VerificationError: ``admit.key``; another length, a number above the field, no point of the
            curve (a key of another curve, as a rule), or a point of order 1, 2, 4 or 8.
    """
    if len(key) != KEY_BYTES:
        raise VerificationError(
            "admit.key", f"An account's key has {KEY_BYTES} bytes (Ed25519), not {len(key)}."
        )
    number = int.from_bytes(key, "little")
    sign, y = number >> 255, number & (1 << 255) - 1
    # RFC 8032, 5.1.3: x² = (y² - 1) / (d y² + 1), whose root exists for points of the curve alone.
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT % _P
    if y >= _P or (x * x - square) % _P or (x == 0 and sign):
        raise VerificationError(
            "admit.key", "An account's key is no point of edwards25519: a key of another curve?"
        )
    # Three doublings: 8 P is the neutral element (0, 1) for points of small order alone.
    for _ in range(3):
        both = _D * x * x * y * y
        x, y = (
            2 * x * y * pow(1 + both, -1, _P) % _P,
            (y * y + x * x) * pow(1 - both, -1, _P) % _P,
        )
    if x == 0 and y == 1:
        raise VerificationError(
            "admit.key", "An account's key is of small order: anybody could sign under it."
        )


def check_admission(
    entry: bytes, index: int, path: Sequence[bytes], checkpoint: str, key: bytes
) -> KeyedAdmitRecord:
    """Check, as an account, that the log has its own key, under the checkpoint it will name.

    Args:
        entry: The record of the admission, as it was logged.
        index: Its place.
        path: Proof that it is in the log.
        checkpoint: Size and root, as ``checkpoint_token`` writes them.
        key: The account's public key, 32 bytes.

    Raises:
        VerificationError: ``admit.key`` (none or another was logged), ``admit.checkpoint``, or by
            :func:`~ragwitness.crypto.merkle.verify_inclusion` ``log.*``.
    """
    record = decode(entry)
    if not isinstance(record, KeyedAdmitRecord) or record.key != key.hex():
        raise VerificationError(
            "admit.key", "The log admits the account without its key, or with another's."
        )
    size, root = parse_token(checkpoint, "admit.checkpoint")
    verify_inclusion(entry, index, size, path, root)
    return record
