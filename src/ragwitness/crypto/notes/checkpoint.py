"""The log's size and root in three lines (C2SP tlog-checkpoint): origin, size, base64 root."""

from __future__ import annotations

from dataclasses import dataclass

from ragwitness.crypto.canonical import parse_u64, u64_text
from ragwitness.crypto.encoding import b64, parse_hash
from ragwitness.crypto.hashing import EMPTY_ROOT, HASH_BYTES
from ragwitness.errors import InputError, VerificationError

__all__ = ["Checkpoint"]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a log says of itself, unsigned.

    Extension lines, which C2SP allows and advises against, are not read: ML-DSA-44 signatures do
    not cover them, and nothing here needs them.

    Attributes:
        origin: Name of the log.
        size: Number of entries.
        root: 32 bytes.
    """

    origin: str
    size: int
    root: bytes

    def __post_init__(self) -> None:
        if not self.origin or not self.origin.isprintable():
            raise InputError(f"{self.origin!r} names no log: it is empty or not printable.")
        if len(self.root) != HASH_BYTES or (self.size == 0) != (self.root == EMPTY_ROOT):
            raise InputError(f"This cannot be the root of a log of {self.size:,} entries.")
        u64_text(self.size, "size of a log")

    @property
    def text(self) -> str:
        """The note's text."""
        return f"{self.origin}\n{self.size}\n{b64(self.root)}\n"

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        """Return the checkpoint of a note's text.

        Raises:
            VerificationError: ``checkpoint.format``, ``checkpoint.extension``, ``checkpoint.size``
                or ``checkpoint.root``.
        """
        lines = text.removesuffix("\n").split("\n")
        if not text.endswith("\n") or len(lines) < 3:
            raise VerificationError(
                "checkpoint.format", "A checkpoint has three lines: origin, size and root."
            )
        if len(lines) > 3:
            raise VerificationError(
                "checkpoint.extension", "A checkpoint has more than three lines; no log here does."
            )
        size = parse_u64(lines[1], "checkpoint.size")
        root = parse_hash(lines[2], "checkpoint.root")
        if (size == 0) != (root == EMPTY_ROOT):
            raise VerificationError(
                "checkpoint.root", f"This cannot be the root of a log of {size:,} entries."
            )
        try:
            return cls(lines[0], size, root)
        except InputError as error:
            raise VerificationError("checkpoint.format", error.message) from error
