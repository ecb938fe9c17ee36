"""The commitments of a run before its first query, and their digests.

The texts are leaves of a Merkle tree. A leaf holds a text's part, id and truth, and a commitment to
the text itself with its own blinding. So each text can be opened alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ragwitness.core.errors import VerificationError
from ragwitness.crypto.hashing import canonical, parse
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.runner.hash_chain import HashChain, Link, dense

VERSION = "ragwitness/seal/v2"
EARLIER = "ragwitness/seal/v1"
"""Said of its code one digest of everything, pages and style sheets included."""

TEXT = "ragwitness/document/v1"
"""Domain of the commitment to a text."""


@dataclass(frozen=True, slots=True)
class SealedText:
    """A text that is committed to.

    Attributes:
        part: Which part it has in the run, such as ``"known_out"``.
        id: Of the document; it is not hidden.
        text: Hidden until it is opened.
        member: The truth, where it is known; not hidden.
    """

    part: str
    id: str
    text: str
    member: bool | None = None


@dataclass(frozen=True, slots=True)
class SealSubject:
    """The commitments of a run before its first query.

    Attributes:
        task: Kind of its result: ``"audit"``, ``"leak"`` or ``"canary"``.
        settings: Everything that its result follows from, besides texts and answers, as JSON.
        texts: Everything that may stay hidden.
        units: Stage and document of each question, in order.
        looks: Number of looks that may decide; 0 where it was left open.
        series: Alike for runs of one series: the same documents at the same system.
        home: Folder of the plan that the run belongs to; None where it belongs to none.
    """

    task: str
    settings: Mapping[str, Any]
    texts: tuple[SealedText, ...]
    units: Sequence[tuple[str, str]]
    looks: int
    series: bytes
    home: Path | None = None


@dataclass(frozen=True, slots=True)
class SealedRun:
    """A sealed run with everything that opens it.

    Attributes:
        folder: Of the run.
        seal: Its bytes.
        texts: Everything that was committed to.
        openings: Commitment and blinding of each text.
        links: The chain of answers.
        key: File of the signing key.
        log: Folder of the log of runs; None without one.
        home: Folder of the plan that the run belongs to; None where it belongs to none.
    """

    folder: Path
    seal: bytes
    texts: tuple[SealedText, ...]
    openings: tuple[tuple[bytes, bytes], ...]
    links: tuple[Link, ...]
    key: Path
    log: Path | None
    home: Path | None = None

    @property
    def task(self) -> str:
        """Kind of its result."""
        return str(json.loads(self.seal)["errand"])

    @property
    def head(self) -> str:
        """Last link of its chain, in hex; of the seal alone where nothing was answered."""
        empty = HashChain(self.seal, b"").head
        return (self.links[-1].head if self.links else empty).hex()


def leaf_of(text: SealedText, commitment: bytes) -> bytes:
    """Return the leaf of a text in the tree of the seal."""
    return dense([text.part, text.id, text.member, commitment.hex()])


def root_of(leaves: Iterable[bytes]) -> str:
    """Return the root of the tree over all leaves, in hex."""
    tree = MerkleLog()
    tree.extend(leaves)
    return tree.root().hex()


def units_digest(units: Iterable[Sequence[str]]) -> str:
    """Return SHA-256 of the units in their order, in hex."""
    return hashlib.sha256(dense([list(unit) for unit in units])).hexdigest()


def seal_text(seal: bytes) -> str:
    """Return what is signed of a seal."""
    return f"ragwitness seal\n{hashlib.sha256(seal).hexdigest()}\n"


def changed(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the names under which two mappings hold different values, sorted."""
    missing = object()
    names = earlier.keys() | now.keys()
    return sorted(name for name in names if earlier.get(name, missing) != now.get(name, missing))


def result_digest(result: Mapping[str, Any]) -> str:
    """Return SHA-256 of a result as packs show it with hidden texts, in hex."""
    return hashlib.sha256(dense(without_words(result))).hexdigest()


def without_words(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored result, or a row of scores, without the words of documents in it."""
    fields = dict(result)
    if "evidence" in fields:
        fields["evidence"] = []
    if "bets" in fields:
        # Stake and length, and how many words were said.
        fields["bets"] = [[*bet[:2], *(len(words) for words in bet[2:3])] for bet in fields["bets"]]
    if isinstance(rows := fields.get("documents"), list):
        fields["documents"] = [without_words(row) for row in rows]
    return fields


# The log of one's runs: every sealed run, before its first query and with its result.
#
# A discarded run stays in the log, because the log only grows. Its checkpoint is signed,
# anybody may keep an old one, and :mod:`ragwitness.attest.window_log` lets monitors and witnesses
# watch it like the log of a window. An entry holds digests and no text.


MOST_ENTRY = 4096
_VERSION = "ragwitness/run/v1"


@dataclass(frozen=True, slots=True)
class RunBegun:
    """A run whose first query was about to be sent.

    Attributes:
        seal: SHA-256 of its seal, in hex.
        series: Alike for runs of the same documents at the same system, as their owner says.
        task: Kind of run.
    """

    seal: str
    series: str
    task: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run that has a result.

    Attributes:
        seal: SHA-256 of its seal, in hex.
        head: Last link of its answers, in hex.
        answers: Number of links.
        result: SHA-256 of its result without words of documents, in hex.
    """

    seal: str
    head: str
    answers: int
    result: str


@dataclass(frozen=True, slots=True)
class RunAnswered:
    """A run whose answers are arriving: logged at its row 1, and whenever their number doubled.

    Attributes:
        seal: SHA-256 of its seal, in hex.
        head: Last link of its answers so far, in hex.
        answers: Number of links so far.
    """

    seal: str
    head: str
    answers: int


RunEntry = RunBegun | RunAnswered | RunEnded

_KINDS: dict[str, type[RunEntry]] = {
    "begun": RunBegun,
    "answered": RunAnswered,
    "ended": RunEnded,
}


_STORED = {"task": "errand"}  # names of fields in every log that was ever written


def encode_entry(entry: RunEntry) -> bytes:
    """Return an entry as it is logged."""
    event = next(name for name, kind in _KINDS.items() if isinstance(entry, kind))
    fields = {_STORED.get(name, name): value for name, value in asdict(entry).items()}
    return canonical({"version": _VERSION, "what": event, **fields})


def decode_entry(data: bytes) -> RunEntry:
    """Return an entry of a log.

    Raises:
        VerificationError: ``runs.entry``, or as :func:`~ragwitness.crypto.hashing.parse`.
    """
    row: Any = parse(data, MOST_ENTRY, "runs.entry")
    try:
        version, kind = row.pop("version"), _KINDS[row.pop("what")]
        if version != _VERSION:
            raise ValueError(version)
        names = {stored: name for name, stored in _STORED.items()}
        return kind(**{names.get(name, name): value for name, value in row.items()})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise VerificationError("runs.entry", "The log holds an entry of no run.") from error
