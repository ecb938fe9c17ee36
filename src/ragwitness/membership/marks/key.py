"""The key of marked documents: seed, places and lots, and the commitment to all of them.

::

    secret seed ──┐ committed to, with texts and alternatives
                  ├─HKDF─► the drawn alternatives; wording and order of questions
    beacon ───────┘ public randomness of later, if it was promised

The key stays secret until the last audit: its reader can name every lot.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from pydantic import TypeAdapter

from ragwitness.core.errors import InputError, RagwitnessError
from ragwitness.core.files import read_object, replace_file
from ragwitness.crypto.hashing import Opening, canonical, commit, draw_blinding, verify_opening
from ragwitness.membership.marks.lots import MarkedDocument
from ragwitness.privacy.sampler import Bits, uniform
from ragwitness.privacy.streams import SEED_BYTES, beacon_bits, beacon_bytes
from ragwitness.runner.hash_chain import dense

VERSION = "ragwitness/marks-key/v1"
_DOMAIN = "ragwitness/marks/v1"
_STREAM = "ragwitness/marks-stream/v1"
_LOST = (
    "ragwitness mark writes such a key once. Restore it from a copy: the drawn words are in it"
    " alone."
)


@dataclass(frozen=True)
class MarksKey:
    """The source of marked documents.

    Attributes:
        documents: With their lots.
        seed: 32 secret bytes.
        blinding: 32 more, of the commitment.
        commitment: 32 bytes, to be published before anything is shared.
        beacon_source: Public randomness that was promised, in words; empty for none.
        beacon: Its value, once it was joined, in hex.
    """

    documents: tuple[MarkedDocument, ...]
    seed: bytes
    blinding: bytes
    commitment: bytes
    beacon_source: str = ""
    beacon: str = ""

    @classmethod
    def fresh(cls, documents: Sequence[MarkedDocument], beacon_source: str = "") -> Self:
        """Draw a seed for documents, and commit to all."""
        seed, blinding = os.urandom(SEED_BYTES), draw_blinding()
        key = cls(tuple(documents), seed, blinding, b"", beacon_source)
        return replace(key, commitment=commit(key._opening()))

    def _opening(self) -> Opening:
        documents = dense([asdict(document) for document in self.documents])
        digest = hashlib.sha256(documents).hexdigest()
        fields = {"beacon": self.beacon_source, "documents": digest, "seed": self.seed.hex()}
        return Opening(_DOMAIN, canonical(fields), self.blinding)

    def bits(self, label: str) -> Bits:
        """Return a stream of random bytes of this key.

        Raises:
            InputError: The promised beacon has not been joined.
        """
        if bool(self.beacon) != bool(self.beacon_source):
            raise InputError(
                f"The beacon {self.beacon_source!r} has not been joined, so nothing is drawn yet.",
                "Once it is public: ragwitness mark --key KEY --beacon-value HEX --out FOLDER",
            )
        return beacon_bits(self.seed, self.beacon, _STREAM, label)

    @cached_property
    def drawn(self) -> tuple[tuple[int, ...], ...]:
        """The alternative that was drawn at each lot of each document."""
        rows = []
        for number, document in enumerate(self.documents):
            bits = self.bits(f"lots {number}")
            rows.append(tuple(uniform(len(lot.alternatives), bits) for lot in document.lots))
        return tuple(rows)

    def joined(self, beacon: str) -> MarksKey:
        """Return the key with the promised public randomness.

        Raises:
            InputError: None was promised, it is not bytes in hex, or another was joined before.
        """
        if not self.beacon_source:
            raise InputError(
                "The commitment names no beacon, so none can be joined now.",
                "Mark anew with --beacon and, in words, where it will come from.",
            )
        value = beacon_bytes(beacon)
        if self.beacon not in ("", value):
            raise InputError("Another beacon was joined before.", "Leave --beacon-value out.")
        return replace(self, beacon=value)

    def check(self) -> None:
        """Check that seed, texts and alternatives are those committed to.

        Raises:
            VerificationError: ``commitment.*``.
        """
        verify_opening(self.commitment, self._opening())

    def stored(self) -> dict[str, Any]:
        """Return the key as its file holds it."""
        drawn = self.drawn if bool(self.beacon) == bool(self.beacon_source) else ()
        return {
            "version": VERSION,
            "commitment": self.commitment.hex(),
            "beacon_source": self.beacon_source,
            "beacon": self.beacon,
            "seed": self.seed.hex(),
            "blinding": self.blinding.hex(),
            "documents": [asdict(document) for document in self.documents],
            "drawn": [list(row) for row in drawn],
        }

    @classmethod
    def from_stored(cls, fields: dict[str, Any]) -> Self:
        """Return a key from its file.

        Raises:
            KeyError, TypeError, ValueError: A field is missing or malformed.
        """
        rows = json.dumps(fields["documents"])
        documents = TypeAdapter(tuple[MarkedDocument, ...]).validate_json(rows, strict=True)
        names = ("seed", "blinding", "commitment")
        seed, blinding, commitment = (bytes.fromhex(fields[name]) for name in names)
        source, beacon = str(fields["beacon_source"]), str(fields["beacon"])
        return cls(documents, seed, blinding, commitment, source, beacon)


def write_key(path: Path, key: MarksKey, *, again: bool = False) -> None:
    """Write a key for its owner alone.

    Args:
        path: The file.
        key: The key.
        again: Whether this key is there already, without its beacon.

    Raises:
        InputError: Something is there, or it cannot be written.
    """
    if path.exists() and not again:
        raise InputError(
            f"{path} is there already, and a key that is lost cannot be drawn again.",
            "Give a new file: --key FILE",
        )
    replace_file(path, json.dumps(key.stored(), ensure_ascii=False, indent=1) + "\n", secret=True)


def read_key(path: Path) -> MarksKey:
    """Read a key, and check it against its own commitment.

    Raises:
        InputError: There is none, others can read it, or it is not what was written.
    """
    fields = read_object(path, _LOST, secret=True)
    if fields.get("version") != VERSION:
        raise InputError(f"{path} is no key of marked documents ({VERSION}).", _LOST)
    try:
        key = MarksKey.from_stored(fields)
        key.check()
        if fields["drawn"] and [list(row) for row in key.drawn] != fields["drawn"]:
            raise ValueError("the lots do not follow from the seed")
    except (KeyError, TypeError, ValueError, AttributeError, RagwitnessError) as error:
        reason = error.message if isinstance(error, RagwitnessError) else repr(error)
        raise InputError(f"{path} was changed since it was written: {reason}.", _LOST) from error
    return key
