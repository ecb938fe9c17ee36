"""Strict readers of the texts that proofs travel in: one spelling for each value, all else refused.

A lax reader gives a forger room: two texts for one proof defeat a hash over the text.
"""

from __future__ import annotations

import base64
import binascii
import re

from ragwitness.crypto.hashing import HASH_BYTES
from ragwitness.errors import VerificationError

__all__ = ["b64", "parse_b64", "parse_hash", "parse_hex"]

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
