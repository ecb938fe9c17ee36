"""SHA-256 with a separate domain for everything that is hashed, so that no hash means two things.

Leaves and nodes of the log are those of RFC 9162, §2.1.1 (RFC 6962): 0x00 before an entry, 0x01
before two hashes. All else goes through :func:`tagged_hash`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from hashlib import sha256

from ragwitness.core.errors import VerificationError

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


def text_digest(texts: Iterable[str], start: bytes = b"") -> str:
    """Return SHA-256 over ``start`` and texts in hex; lengths keep two splits of one text apart."""
    digest = sha256(start)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def sampling_seed(prompt: str, number: int) -> int:
    """Return the seed of one of several draws at a prompt: 31 bits, some servers take no more."""
    # The number enters the seed, so that n samples of one prompt are n draws.
    digest = sha256(f"{number}\0{prompt}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") >> 1


# Strict readers of the texts that proofs travel in: one spelling for each value, all else refused.
#
# A lax reader gives a forger room: two texts for one proof defeat a hash over the text.

_HEX = re.compile(r"[0-9a-f]*", re.ASCII)


def b64(data: bytes) -> str:
    """Return the standard base64 of ``data`` with padding (RFC 4648, §4)."""
    return base64.b64encode(data).decode()


def parse_b64(text: str, check: str) -> bytes:
    """Return the bytes of standard base64: padded, no other characters, unused bits zero.

    Raises:
        VerificationError: ``check``; the text is not what :func:`b64` writes.
    """
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise VerificationError(check, f"{text[:40]!r} is not base64.") from error
    if b64(data) != text:
        raise VerificationError(check, f"{text[:40]!r} is not the one base64 text of its bytes.")
    return data


def parse_hash(text: str, check: str) -> bytes:
    """Return the 32 bytes of a hash in base64.

    Raises:
        VerificationError: ``check``.
    """
    data = parse_b64(text, check)
    if len(data) != HASH_BYTES:
        raise VerificationError(check, f"A hash has {HASH_BYTES} bytes, not {len(data)}.")
    return data


def parse_hex(text: str, size: int, check: str) -> bytes:
    """Return the ``size`` bytes of lower-case hex.

    Raises:
        VerificationError: ``check``.
    """
    if len(text) != 2 * size or not _HEX.fullmatch(text):
        raise VerificationError(check, f"{text[:40]!r} is not {size} bytes in lower-case hex.")
    return bytes.fromhex(text)
