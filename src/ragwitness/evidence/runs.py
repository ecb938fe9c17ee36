"""The log of one's runs: every sealed run, from before its first query to its result.

A run that is thrown away stays in the log, because the log only grows: its checkpoint is signed,
anybody may keep an old one, and :mod:`ragwitness.attest.window_log` lets monitors and witnesses
watch it like the log of a window. An entry holds digests and no text.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ragwitness.core.errors import VerificationError
from ragwitness.crypto.hashing import canonical, parse

MOST_ENTRY = 4096
_VERSION = "ragwitness/run/v1"


@dataclass(frozen=True, slots=True)
class RunBegun:
    """A run whose first query was about to be sent.

    Attributes:
        seal: SHA-256 of its seal, in hex.
        series: Alike for runs of the same documents at the same system, as their owner says.
        task: What kind of run it is.
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
    what = next(name for name, kind in _KINDS.items() if isinstance(entry, kind))
    fields = {_STORED.get(name, name): value for name, value in asdict(entry).items()}
    return canonical({"version": _VERSION, "what": what, **fields})


def decode_entry(data: bytes) -> RunEntry:
    """Return an entry of a log.

    Raises:
        VerificationError: ``runs.entry``, or as :func:`~ragwitness.crypto.hashing.parse`.
    """
    row: Any = parse(data, MOST_ENTRY, "runs.entry")
    try:
        known, kind = row.pop("version"), _KINDS[row.pop("what")]
        if known != _VERSION:
            raise ValueError(known)
        names = {stored: name for name, stored in _STORED.items()}
        return kind(**{names.get(name, name): value for name, value in row.items()})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise VerificationError("runs.entry", "The log holds an entry of no run.") from error
