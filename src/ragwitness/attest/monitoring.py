"""Watching a window's log from its public folder: nothing that was shown is changed later."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ragwitness.crypto.keys import PrivateKey
from ragwitness.crypto.log import consistency_path
from ragwitness.crypto.log.folder import TileFolder, load_log
from ragwitness.crypto.notes import Checkpoint, SignedCheckpoint, open_checkpoint
from ragwitness.crypto.notes import Policy as Signers
from ragwitness.crypto.notes.witness import cosign, verify_extension

__all__ = ["Seen", "compare", "watch"]


@dataclass(frozen=True, slots=True)
class Seen:
    """A step of the log that was checked.

    Attributes:
        old: What was known before; None at the first look.
        new: What the log shows now.
        note: The new checkpoint, with the witness's signature where there is one.
    """

    old: Checkpoint | None
    new: SignedCheckpoint
    note: bytes


def watch(
    log: Path,
    note: bytes,
    signers: Signers,
    known: bytes | None = None,
    witness: PrivateKey | None = None,
    time: int = 0,
) -> Seen:
    """Check that a log extends what it showed before, and sign that as a witness.

    Args:
        log: Folder with ``tile/``.
        note: The signed checkpoint that the log shows now.
        signers: Whose signatures count.
        known: The checkpoint that was seen last, as it was stored; None at the first look, at
            which all tiles are read.
        witness: Signs the new checkpoint too. Store the returned note before it is handed out.
        time: Of the signature, POSIX seconds.

    Raises:
        VerificationError: ``log.rolled_back``, ``log.split_view`` (two roots for one size),
            ``log.consistency`` (what was shown before is changed), ``log.tile``, ``log.root``,
            or as :func:`~ragwitness.crypto.notes.open_checkpoint`.
    """
    new = open_checkpoint(note, signers)
    old = open_checkpoint(known, signers).checkpoint if known is not None else None
    path: tuple[bytes, ...] = ()
    if old is None:
        load_log(log, new.checkpoint.size, new.checkpoint.root)
    else:
        path = _path(log, old, new.checkpoint)
        verify_extension(old, new.checkpoint, path)
    if witness is not None:
        note, _ = cosign(old, note, path, signers, witness, time)
    return Seen(old, new, note)


def compare(log: Path, one: bytes, other: bytes, signers: Signers) -> tuple[Checkpoint, Checkpoint]:
    """Check that two checkpoints, seen by whomever, are of one log; return them by size.

    Raises:
        VerificationError: ``log.split_view`` or ``log.consistency``: two people were shown two
            logs; or as :func:`watch`.
    """
    both = [open_checkpoint(note, signers).checkpoint for note in (one, other)]
    first, second = sorted(both, key=lambda checkpoint: checkpoint.size)
    verify_extension(first, second, _path(log, first, second))
    return first, second


def _path(log: Path, old: Checkpoint, new: Checkpoint) -> tuple[bytes, ...]:
    """Return the proof of consistency out of the log's tiles."""
    if not 0 < old.size < new.size:
        return ()
    return consistency_path(TileFolder(log, new.size), old.size, new.size)
