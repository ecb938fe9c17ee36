"""Signed checkpoints of the window's log, and the tiles that monitors check them by."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ragwitness.attest.folder import read_bytes, write_whole
from ragwitness.crypto.keys import PrivateKey
from ragwitness.crypto.log import MerkleLog
from ragwitness.crypto.log.folder import write_tiles
from ragwitness.crypto.notes import Checkpoint, Note, Policy, open_checkpoint, sign_checkpoint
from ragwitness.crypto.notes.signed import MAX_NOTE
from ragwitness.errors import InputError, VerificationError

__all__ = ["check_published", "opening_keys", "publish", "sign", "window_key"]


def sign(log: MerkleLog, keys: Sequence[PrivateKey]) -> bytes:
    """Return the signed checkpoint of a log whose entries are all on the disk.

    Raises:
        InputError: There is no key.
    """
    if not keys:
        raise InputError(
            "The window was loaded without the log's key, so nothing can be signed.",
            "Give the key: --key KEY.",
        )
    checkpoint = Checkpoint(keys[0].name, log.size, log.root())
    return sign_checkpoint(checkpoint, keys, int(time.time()))


def publish(public: Path, log: MerkleLog, keys: Sequence[PrivateKey]) -> bytes:
    """Write the log's tiles, then its signed checkpoint, and return that.

    Raises:
        InputError: There is no key, or the folder cannot be written.
    """
    note = sign(log, keys)
    try:
        write_tiles(public / "log", log, _published(public / "checkpoint"))
    except OSError as error:
        raise InputError(f"{public} cannot be written: {error.strerror}.") from error
    write_whole(public / "checkpoint", note)
    return note


def check_published(public: Path, log: MerkleLog) -> None:
    """Check that a log on the disk still holds what its last published checkpoint says.

    Raises:
        VerificationError: ``log.rolled_back``; entries are gone or changed, as after an old backup.
    """
    if not (public / "checkpoint").exists():
        return
    shown = Checkpoint.parse(Note.parse(read_bytes(public / "checkpoint", MAX_NOTE)).text)
    if shown.size > log.size or log.root(shown.size) != shown.root:
        raise VerificationError(
            "log.rolled_back",
            f"The log in {public} has {log.size:,} entries, and not the {shown.size:,} that its"
            " checkpoint was signed for.",
            "Restore the newer copy; whatever is logged after this one is a second history, and"
            " convicts its key.",
        )


def window_key(key: PrivateKey, window: str) -> PrivateKey:
    """Return a log's key under the name of one window, ``NAME/WINDOW``.

    Each window is a log of its own, and a name must stand for one log only: two windows that were
    opened under one name are then a split view, and their two signed checkpoints show it. Who
    knows the provider's key finds the same key material in both names.
    """
    suffix = f"/{window}"
    return key if key.name.endswith(suffix) else replace(key, name=key.name + suffix)


def opening_keys(public: Path, keys: Sequence[PrivateKey], window: str) -> tuple[PrivateKey, ...]:
    """Return keys under the names by which they signed a window's opening.

    Raises:
        InputError: They did not.
    """
    note = read_bytes(public / "open.checkpoint", MAX_NOTE)
    why = ""
    for named in (tuple(keys), tuple(window_key(key, window) for key in keys)):
        try:
            open_checkpoint(note, Policy(tuple(key.public for key in named)))
        except VerificationError as error:
            why = error.message
        else:
            return named
    raise InputError(
        f"The key of {keys[0].name} did not open this window: {why}",
        "Give the key that ragwitness commit was given.",
    )


def _published(path: Path) -> int:
    """Return how many entries the tiles cover already."""
    return Checkpoint.parse(Note.parse(path.read_bytes()).text).size if path.exists() else 0
