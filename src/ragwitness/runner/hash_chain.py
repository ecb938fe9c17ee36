"""The hash chain of a sealed run: each answer is bound to the seal and to all earlier answers.

Link n = H(link n - 1 ‖ label ‖ commitment), and link 0 is the hash of the seal. The label holds the
system that was asked, the stage, the document, and whether the query failed. The commitment hides
question and answer. Each row has its own blinding, so one can be opened while every other stays
hidden. A row that is changed, dropped, added or moved gives another last link.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from ragwitness.core.files import read_file, read_object
from ragwitness.core.run_files import SEAL, SEAL_SECRET
from ragwitness.crypto.hashing import Opening, commit, tagged_hash

ROW = "ragwitness/answer/v1"
"""Domain of the commitment to a row."""

Label: TypeAlias = tuple[str, str, str, str]

CHAIN_OBSERVERS: dict[Path, Callable[[str, int], None]] = {}
"""By run folder: called with the head and the length of its chain at 1, 2, 4, 8 … rows."""

_LINK = "ragwitness/chain/v1"
_RESTORE = "Restore it from a copy: without it nothing of this run can be opened."


def dense(value: object, *, finite: bool = True) -> bytes:
    """Return a value as JSON without spaces, its names sorted: the same bytes for the same value.

    Args:
        value: Anything that JSON can hold.
        finite: Refuse NaN and infinity, which log-probabilities of a target may be.

    Raises:
        ValueError: A number is not finite.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=not finite).encode()


@dataclass(frozen=True, slots=True)
class Link:
    """One row of a chain.

    Attributes:
        label: The system, stage, document, and ``"answer"`` or ``"failed"``.
        commitment: To the row, 32 bytes.
        head: Of the chain up to here, 32 bytes.
        text: The bytes of the row in the commitment.
        blinding: Opens the commitment.
    """

    label: Label
    commitment: bytes
    head: bytes
    text: bytes
    blinding: bytes


def first_link(seal: bytes) -> bytes:
    """Return the head of a chain without rows, from the bytes of its seal."""
    return tagged_hash(_LINK, sha256(seal).digest())


def next_link(head: bytes, label: Label, commitment: bytes) -> bytes:
    """Return the head of a chain that grew by a row."""
    return tagged_hash(_LINK, head, dense(label), commitment)


def blinding_of(salt: bytes, *parts: bytes) -> bytes:
    """Return the blinding of one commitment, 32 bytes; it reveals no other."""
    return hmac.digest(salt, tagged_hash(ROW, *parts), "sha256")


class HashChain:
    """The chain of one run.

    Args:
        seal: Bytes of the seal.
        salt: 32 secret bytes, from which blindings are derived.
        observer: Called with the head and the length at 1, 2, 4, 8 … rows.
    """

    def __init__(
        self, seal: bytes, salt: bytes, observer: Callable[[str, int], None] | None = None
    ) -> None:
        self.head = first_link(seal)
        self.length = 0
        self._salt, self._observer = salt, observer

    @classmethod
    def of_run(cls, run: Path) -> HashChain | None:
        """Return the empty chain of a sealed run; None where the run is not sealed.

        Raises:
            InputError: The secret file is missing, or others can read it.
        """
        if not (run / SEAL).exists():
            return None
        secret = read_object(run / SEAL_SECRET, _RESTORE, secret=True)
        salt = bytes.fromhex(secret["salt"])
        return cls(read_file(run / SEAL), salt, CHAIN_OBSERVERS.get(run.resolve()))

    def add(self, row: dict[str, Any]) -> Link:
        """Append a row, without its own link, and return its link."""
        question = row["asked"]
        kind = "answer" if "answer" in row else "failed"
        label = (str(question["target"]), str(question["stage"]), str(question["document"]), kind)
        text = dense(row, finite=False)
        # No head occurs twice, so no two blindings are alike.
        blinding = blinding_of(self._salt, self.head)
        commitment = commit(Opening(ROW, text, blinding))
        self.head = next_link(self.head, label, commitment)
        self.length += 1
        # 1, 2, 4, 8 …: few log entries, and each covers all earlier rows.
        if self._observer is not None and not self.length & (self.length - 1):
            self._observer(self.head.hex(), self.length)
        return Link(label, commitment, self.head, text, blinding)

    def resume(self, head: str) -> None:
        """Continue behind a row that is stored already."""
        self.head, self.length = bytes.fromhex(head), self.length + 1
