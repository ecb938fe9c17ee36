"""Requests signed by their account: a provider cannot invent what somebody asked.

An account's public key (Ed25519, RFC 8032) is logged with its place, before its first query. Each
of its queries carries its signature over everything that its noise is made of, and over how many
came before: under one such number an account signs one request, so that whoever wants another noise
for it needs another signature.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ragwitness.attest.commitments import parse_token, query_opening
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.canonical import canonical, u64_text
from ragwitness.crypto.commitments import BLINDING_BYTES, commit, draw_blinding
from ragwitness.crypto.keys import KeyKind, PrivateKey, PublicKey, read_key, write_key
from ragwitness.crypto.log.tree import verify_inclusion
from ragwitness.crypto.transcript.records import KeyedAdmitRecord, QueryRecord, decode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
            :func:`~ragwitness.crypto.log.tree.verify_inclusion` ``log.*``.
    """
    record = decode(entry)
    if not isinstance(record, KeyedAdmitRecord) or record.key != key.hex():
        raise VerificationError(
            "admit.key", "The log admits the account without its key, or with another's."
        )
    size, root = parse_token(checkpoint, "admit.checkpoint")
    verify_inclusion(entry, index, size, path, root)
    return record
