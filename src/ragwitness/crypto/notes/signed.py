"""A text and the signatures under it (C2SP signed-note); no signature is checked here.

::

    text, one or more lines
                                          (an empty line)
    — key name base64(key id ‖ signature)
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from ragwitness.crypto.encoding import b64, parse_b64
from ragwitness.errors import VerificationError

__all__ = ["MAX_NOTE", "MAX_SIGNATURES", "Note", "Signature"]

MAX_NOTE = 1 << 18
"""Longest note that is read, in bytes: far above 64 signatures of ML-DSA-44."""

MAX_SIGNATURES = 64

_DASH = "\N{EM DASH} "
_ID_BYTES = 4


@dataclass(frozen=True, slots=True)
class Signature:
    """One line under a note.

    Attributes:
        name: Of the key.
        key_id: 4 bytes.
        data: What the key made; a bare signature, or a time and a signature.
    """

    name: str
    key_id: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class Note:
    """A text and its signatures, none of them checked.

    Attributes:
        text: Ends with a newline; empty lines may stand in it.
        signatures: In the order in which they stand.
    """

    text: str
    signatures: tuple[Signature, ...]

    def encode(self) -> bytes:
        """Return the note in UTF-8."""
        lines = (f"{_DASH}{s.name} {b64(s.key_id + s.data)}\n" for s in self.signatures)
        return (self.text + "\n" + "".join(lines)).encode()

    @classmethod
    def parse(cls, data: bytes) -> Note:
        """Return the note of a file; whatever :meth:`encode` does not write is refused.

        Raises:
            VerificationError: ``note.size``, ``note.utf8``, ``note.format``, ``note.duplicate`` or
                ``note.signature_line``.
        """
        if len(data) > MAX_NOTE:
            raise VerificationError(
                "note.size", f"A note has {len(data):,} bytes; at most {MAX_NOTE:,} are read."
            )
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise VerificationError("note.utf8", "A note is not valid UTF-8.") from error
        body, empty, tail = text.rpartition("\n\n")
        plain = all(c == "\n" or unicodedata.category(c) != "Cc" for c in text)
        if not empty or not body.strip("\n") or not tail.endswith("\n") or not plain:
            raise VerificationError(
                "note.format", "A signed note is a text, an empty line and its signatures."
            )
        lines = tail.removesuffix("\n").split("\n")
        if len(lines) > MAX_SIGNATURES:
            raise VerificationError(
                "note.size", f"A note has more than {MAX_SIGNATURES} signatures."
            )
        return cls(body + "\n", _distinct(tuple(map(_signature, lines))))


def _distinct(signatures: tuple[Signature, ...]) -> tuple[Signature, ...]:
    if len({(s.name, s.key_id) for s in signatures}) != len(signatures):
        raise VerificationError("note.duplicate", "One key signed the same note twice.")
    return signatures


def _signature(line: str) -> Signature:
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    spaced = not name or "+" in name or any(c.isspace() for c in name)
    if not line.startswith(_DASH) or not space or spaced:
        raise VerificationError("note.signature_line", f"{line[:60]!r} is no line of a signature.")
    data = parse_b64(encoded, "note.signature_line")
    if len(data) <= _ID_BYTES:
        raise VerificationError("note.signature_line", f"The signature of {name!r} is empty.")
    return Signature(name, data[:_ID_BYTES], data[_ID_BYTES:])
