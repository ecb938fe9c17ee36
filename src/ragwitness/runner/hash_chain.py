"""The chain of a sealed run: each answer is bound, as it arrives, to the seal and all before it.

Link n = H(link n - 1 ‖ label ‖ commitment), and link 0 is the hash of the seal. The label says
which system was asked, in which stage, about which document, and whether that failed; the
commitment hides the question and the answer, each row under a blinding of its own, so that one can
be opened and every other stay hidden. A row that is changed, dropped, added or moved gives another
last link.
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
"""What the commitment to a row is for."""

Label: TypeAlias = tuple[str, str, str, str]

GROWN: dict[Path, Callable[[str, int], None]] = {}
"""By folder of a run: what is told its head and its length at 1, 2, 4, 8 … rows."""

_LINK = "ragwitness/chain/v1"
_KEPT = "Restore it from a copy: without it nothing of this run can be opened."


def dense(value: object, *, finite: bool = True) -> bytes:
    """Return a value as JSON without spaces, its names sorted: the same bytes for the same value.

    Args:
        value: Anything that JSON can hold.
        finite: Refuse numbers that are not; a target may write such log-probabilities.

    Raises:
        ValueError: A number is not finite.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=not finite).encode()


@dataclass(frozen=True, slots=True)
class Link:
    """One row of a chain.

    Attributes:
        label: System that was asked, stage, document, and ``"answer"`` or ``"failed"``.
        commitment: To the row, 32 bytes.
        head: Of the chain up to here, 32 bytes.
        text: The row, as it was committed to.
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
    """Return the blinding of one commitment, 32 bytes; one that is shown tells of no other."""
    return hmac.digest(salt, tagged_hash(ROW, *parts), "sha256")


class AnswerChain:
    """The chain of one run.

    Args:
        seal: Bytes of the seal.
        salt: 32 secret bytes, of which the blindings come.
        grown: Told the head and the length at 1, 2, 4, 8 … rows.
    """

    def __init__(
        self, seal: bytes, salt: bytes, grown: Callable[[str, int], None] | None = None
    ) -> None:
        self.head = first_link(seal)
        self.length = 0
        self._salt, self._grown = salt, grown

    @classmethod
    def of_run(cls, run: Path) -> AnswerChain | None:
        """Return the empty chain of a sealed run; None where the run is not sealed.

        Raises:
            InputError: What the seal's owner keeps back is missing, or others can read it.
        """
        if not (run / SEAL).exists():
            return None
        kept = read_object(run / SEAL_SECRET, _KEPT, secret=True)
        salt = bytes.fromhex(kept["salt"])
        return cls(read_file(run / SEAL), salt, GROWN.get(run.resolve()))

    def add(self, row: dict[str, Any]) -> Link:
        """Append a row, without its own link, and return what that gives."""
        asked = row["asked"]
        kind = "answer" if "answer" in row else "failed"
        label = (str(asked["target"]), str(asked["stage"]), str(asked["document"]), kind)
        text = dense(row, finite=False)
        # The head so far is met once, so no two blindings are alike.
        blinding = blinding_of(self._salt, self.head)
        commitment = commit(Opening(ROW, text, blinding))
        self.head = next_link(self.head, label, commitment)
        self.length += 1
        # 1, 2, 4, 8 …: few entries in a log, and each holds all that came before.
        if self._grown is not None and not self.length & (self.length - 1):
            self._grown(self.head.hex(), self.length)
        return Link(label, commitment, self.head, text, blinding)

    def goes_on(self, head: str) -> None:
        """Take up the chain behind a row that is there already."""
        self.head, self.length = bytes.fromhex(head), self.length + 1
