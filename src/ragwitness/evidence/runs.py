"""The log of one's runs: every sealed run, from before its first query to its result.

A run that is thrown away stays in the log, because the log only grows: its checkpoint is signed,
anybody may keep an old one, and :mod:`ragwitness.attest.checkpoints` lets monitors and witnesses
watch it like the log of a window. An entry holds digests and no text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ragwitness.attest.checkpoints import check_published, publish
from ragwitness.crypto.canonical import canonical, parse
from ragwitness.crypto.keys import PrivateKey
from ragwitness.crypto.log.tiles import LENGTH_BYTES, read_entries
from ragwitness.crypto.log.tree import MerkleLog
from ragwitness.crypto.notes.note import Checkpoint, Note
from ragwitness.errors import InputError, VerificationError
from ragwitness.kit.files import append_synced, only_writer, read_file

ENTRIES, CHECKPOINT = "entries.bin", "checkpoint"
"""Files of the folder: what is logged, and the signed size and root."""

MOST_ENTRY = 4096
_VERSION = "ragwitness/run/v1"
_BEGUN, _ENDED = "begun", "ended"


@dataclass(frozen=True, slots=True)
class RunBegun:
    """A run whose first query was about to be sent.

    Attributes:
        seal: SHA-256 of its seal, in hex.
        series: Alike for runs of the same documents at the same system, as their owner says.
        errand: What kind of run it is.
    """

    seal: str
    series: str
    errand: str


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


RunEntry = RunBegun | RunEnded


def encode_entry(entry: RunEntry) -> bytes:
    """Return an entry as it is logged."""
    what = _BEGUN if isinstance(entry, RunBegun) else _ENDED
    return canonical({"version": _VERSION, "what": what, **asdict(entry)})


def decode_entry(data: bytes) -> RunEntry:
    """Return an entry of a log.

    Raises:
        VerificationError: ``runs.entry``, or as :func:`~ragwitness.crypto.canonical.parse`.
    """
    row: Any = parse(data, MOST_ENTRY, "runs.entry")
    try:
        known, what = row.pop("version"), row.pop("what")
        if known != _VERSION or what not in (_BEGUN, _ENDED):
            raise ValueError(known)
        return RunBegun(**row) if what == _BEGUN else RunEnded(**row)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise VerificationError("runs.entry", "The log holds an entry of no run.") from error


class RunsLog:
    """A folder with a log of runs.

    Args:
        folder: It is made where it is missing.
        key: Signs the checkpoint.
    """

    def __init__(self, folder: Path, key: PrivateKey) -> None:
        self._folder, self._key = folder, key

    def begin(self, seal: str, series: str, errand: str) -> None:
        """Log that a run begins; it is on the disk before its first query. Once for each seal.

        Raises:
            InputError: The log is another key's, or cannot be written.
        """
        self._add(RunBegun(seal, series, errand))

    def end(self, seal: str, head: str, answers: int, result: str) -> None:
        """Log the result of a run; the same result is logged once.

        Raises:
            InputError: The log is another key's, or cannot be written.
        """
        self._add(RunEnded(seal, head, answers, result))

    def entries(self) -> list[bytes]:
        """Return all entries.

        Raises:
            InputError: The file cannot be read.
        """
        path = self._folder / ENTRIES
        return list(read_entries(read_file(path))) if path.exists() else []

    def _add(self, entry: RunEntry) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with only_writer(self._folder / ".lock"):
            if (path := self._folder / CHECKPOINT).exists():
                self._refuse_another(path)
            data, there = encode_entry(entry), self.entries()
            log = MerkleLog()
            log.extend(there)
            # An old copy put in place of the log would forget runs: its own checkpoint tells.
            check_published(self._folder, log)
            if data not in there:
                again = "Nothing was sent. The same command tries again."
                whole = len(data).to_bytes(LENGTH_BYTES, "big") + data
                append_synced(self._folder / ENTRIES, whole, again)
                there.append(data)
                log.append(data)

            def between(start: int, stop: int) -> Sequence[bytes]:
                return there[start:stop]

            publish(self._folder, log, [self._key], between)

    def _refuse_another(self, path: Path) -> None:
        note = Note.parse(read_file(path))
        origin = Checkpoint.parse(note.text).origin
        if self._key.public not in note.signatures_of([self._key.public]):
            raise InputError(
                f"{self._folder} is the log of {origin!r}, signed by another key than"
                f" {self._key.name!r}.",
                "Seal with the key of the log, or choose another folder with --runs-log.",
            )
