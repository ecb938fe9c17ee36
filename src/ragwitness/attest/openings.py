"""What the commitments of a query record hide, and what its proofs are bound to.

One place for domains and bytes, so that provider, account and verifier cannot differ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragwitness.crypto.canonical import parse_u64
from ragwitness.crypto.commitments import Opening
from ragwitness.crypto.encoding import b64, parse_hash
from ragwitness.crypto.hashing import tagged_hash
from ragwitness.crypto.transcript import QueryRecord, record_hash
from ragwitness.errors import InputError, VerificationError

__all__ = [
    "answer_opening",
    "checkpoint_token",
    "link_context",
    "norm_context",
    "parse_token",
    "query_opening",
    "vector_bytes",
    "vector_opening",
]

_DIGEST_BYTES = 32


def query_opening(digest: bytes, blinding: bytes) -> Opening:
    """Return the opening of a query.

    Args:
        digest: SHA-256 of the query as it was sent, 32 bytes.
        blinding: 32 bytes.

    Raises:
        InputError: The digest has another length.
    """
    if len(digest) != _DIGEST_BYTES:
        raise InputError(f"A SHA-256 has {_DIGEST_BYTES} bytes, not {len(digest)}.")
    return Opening("ragwitness/query-hash/v1", digest, blinding)


def vector_opening(vector: NDArray[np.integer], blinding: bytes) -> Opening:
    """Return the opening of the integer vector that was searched with.

    Args:
        vector: Shape (dimension,).
        blinding: 32 bytes.

    Raises:
        InputError: An entry does not fit 16 bits.
    """
    return Opening("ragwitness/query-vector/v1", vector_bytes(vector), blinding)


def answer_opening(ids: Sequence[int], blinding: bytes) -> Opening:
    """Return the opening of an answer.

    Args:
        ids: Slots, best first.
        blinding: 32 bytes.

    Raises:
        InputError: A slot does not fit 32 bits.
    """
    if any(not 0 <= slot < 1 << 32 for slot in ids):
        raise InputError("A slot's number has at most 32 bits.")
    message = b"".join(slot.to_bytes(4, "little") for slot in ids)
    return Opening("ragwitness/answer/v1", message, blinding)


def vector_bytes(vector: NDArray[np.integer]) -> bytes:
    """Return an integer vector as it is committed to: 16 bits an entry, low byte first.

    Raises:
        InputError: It is none, or an entry does not fit 16 bits.
    """
    given = np.asarray(vector)
    limits = np.iinfo(np.int16)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise InputError("A query's vector is one row of whole numbers.")
    if given.size and not (limits.min <= given.min() and given.max() <= limits.max):
        raise InputError("An entry of a query's vector does not fit 16 bits.")
    return given.astype("<i2").tobytes()


def norm_context(window: str, tenant: str) -> bytes:
    """Return what the proof of a tenant's norms is bound to, 32 bytes."""
    return tagged_hash("ragwitness/norms/v1", window.encode(), tenant.encode())


def link_context(record: QueryRecord) -> bytes:
    """Return what a selection proof is bound to: the record's leaf hash, 32 bytes."""
    return record_hash(record)


def checkpoint_token(size: int, root: bytes) -> str:
    """Return the text by which a client names a checkpoint of the window's log in its request."""
    return f"{size} {b64(root)}"


def parse_token(text: str, check: str) -> tuple[int, bytes]:
    """Return size and root of a checkpoint that a record names.

    Raises:
        VerificationError: ``check``; the text is not what :func:`checkpoint_token` writes.
    """
    size, space, root = text.partition(" ")
    if not space:
        raise VerificationError(check, f"{text[:40]!r} names no checkpoint: size, space, root.")
    return parse_u64(size, check), parse_hash(root, check)
