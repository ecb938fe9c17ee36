"""SHA-256 with a separate domain for everything that is hashed, so that no hash means two things.

Leaves and nodes of the log are those of RFC 9162, §2.1.1 (RFC 6962): 0x00 before an entry, 0x01
before two hashes. All else goes through :func:`tagged_hash`.
"""

from __future__ import annotations

from hashlib import sha256

__all__ = ["EMPTY_ROOT", "HASH_BYTES", "leaf_hash", "node_hash", "tagged_hash"]

HASH_BYTES = 32

EMPTY_ROOT = sha256(b"").digest()
"""Root of a log without entries (RFC 9162, §2.1.1)."""


def leaf_hash(entry: bytes) -> bytes:
    """Return SHA-256(0x00 ‖ entry), 32 bytes."""
    return sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return SHA-256(0x01 ‖ left ‖ right), 32 bytes."""
    return sha256(b"\x01" + left + right).digest()


def tagged_hash(domain: str, *parts: bytes) -> bytes:
    """Return SHA-256 over a domain and parts, each with its length before it as 8 bytes.

    Two different lists of parts, or two domains, never give the hash the same input.

    Args:
        domain: What the hash is for, e.g. ``"ragwitness/commit/v1"``.
        parts: Bytes.
    """
    digest = sha256()
    for part in (domain.encode(), *parts):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()
