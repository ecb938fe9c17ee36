"""Challenges from all messages so far (Fiat-Shamir), with SHAKE256 as the random oracle.

Every part is framed by its kind, its label's length and its own length, so two different
conversations never give the hash the same input.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from ragwitness.crypto.proofs.group import R, encode_scalar

_CHALLENGE_BYTES = 64  # 512 bits modulo R: a bias below 2⁻²⁵⁶


class ProofTranscript:
    """The messages of prover and verifier so far, and the challenges that follow from them.

    Args:
        domain: Name and version of the proof, e.g. ``"ragwitness/answer/v1"``.
        statement: What is proved, as bytes that determine it.
    """

    def __init__(self, domain: str, statement: bytes) -> None:
        self._hash = hashlib.shake_256()
        self._frame(b"domain", domain, statement)

    def absorb_scalars(self, label: str, scalars: Iterable[int]) -> None:
        """Take in scalars, each in [0, R)."""
        self._frame(b"scalars", label, b"".join(map(encode_scalar, scalars)))

    def absorb_points(self, label: str, points: Iterable[bytes]) -> None:
        """Take in points of G1, encoded."""
        self._frame(b"points", label, b"".join(points))

    def expand(self, label: str, size: int) -> bytes:
        """Return ``size`` bytes that depend on all before."""
        # The request is absorbed too, then a copy is squeezed: the transcript goes on from here.
        self._frame(b"squeeze", label, size.to_bytes(8, "big"))
        return self._hash.copy().digest(size)

    def challenge(self, label: str) -> int:
        """Return a scalar in [0, R) that depends on all before."""
        return int.from_bytes(self.expand(label, _CHALLENGE_BYTES), "big") % R

    def _frame(self, kind: bytes, label: str, data: bytes) -> None:
        # Length before content, for each of the three: no two conversations share an input.
        for part in (kind, label.encode(), data):
            self._hash.update(len(part).to_bytes(8, "big") + part)
