"""Hash commitments: say now, show later.

C = SHA-256(domain ‖ blinding ‖ message), each part with its length before it.

*Binding*: two openings of one C are a collision of SHA-256, 128 bits of work. *Hiding*: with
SHA-256 as a random oracle, C tells nothing of the message to whoever does not guess the 32
blinding bytes, however few messages are possible. A blinding is drawn for one commitment and used
for no other: the same one would show that two messages are equal.
"""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.canonical import canonical
from ragwitness.crypto.hashing import tagged_hash

BLINDING_BYTES = 32

_DOMAIN = "ragwitness/commit/v1"
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Opening:
    """What opens a commitment.

    Attributes:
        domain: What was committed to, e.g. ``"ragwitness/window-seed/v1"``.
        message: The committed bytes.
        blinding: 32 secret bytes until it is opened.
    """

    domain: str
    message: bytes
    blinding: bytes


def draw_blinding() -> bytes:
    """Return 32 fresh bytes of the operating system."""
    return os.urandom(BLINDING_BYTES)


def commit(opening: Opening) -> bytes:
    """Return the commitment, 32 bytes (the paper's Com(·), eq. 5.1).

    Raises:
        InputError: The blinding has another length than 32 bytes.
    """
    if len(opening.blinding) != BLINDING_BYTES:
        raise InputError(
            f"A blinding has {BLINDING_BYTES} bytes, not {len(opening.blinding)}.",
            "Draw one with draw_blinding().",
        )
    return tagged_hash(_DOMAIN, opening.domain.encode(), opening.blinding, opening.message)


def commit_digests(domain: str, digests: Mapping[str, str], blinding: bytes) -> bytes:
    """Return one commitment to several named artifacts (G1), e.g. an embedder's files.

    Committed is the canonical JSON of names and digests, so no artifact can be left out or
    exchanged, and opening shows digests and not the artifacts.

    Args:
        domain: What the list is, e.g. ``"ragwitness/embedder/v1"``.
        digests: Artifact name (embedder, template, tokenizer, schema, …) to its SHA-256 in hex.
        blinding: 32 bytes.

    Raises:
        InputError: A digest is not 64 lower-case hex digits, there is none, or the blinding has
            another length.
    """
    # Names and digests as one text: nothing can be left out, added or exchanged.
    wrong = [name for name, digest in digests.items() if not _DIGEST.fullmatch(digest)]
    if wrong or not digests:
        raise InputError(
            f"Not a SHA-256 in lower-case hex: the digest of {wrong[0]!r}."
            if wrong
            else "A commitment to artifacts needs at least one.",
            "Take it with hashlib.file_digest(file, 'sha256').hexdigest().",
        )
    return commit(Opening(domain, canonical(dict(digests)), blinding))


def verify_opening(commitment: bytes, opening: Opening) -> None:
    """Check that ``opening`` is what was committed to.

    Raises:
        VerificationError: ``commitment.blinding`` or ``commitment.opening``.
    """
    if len(opening.blinding) != BLINDING_BYTES:
        raise VerificationError(
            "commitment.blinding",
            f"A blinding has {BLINDING_BYTES} bytes, not {len(opening.blinding)}.",
        )
    if not hmac.compare_digest(commit(opening), commitment):
        raise VerificationError(
            "commitment.opening",
            f"What was opened under {opening.domain!r} is not what was committed to.",
        )
