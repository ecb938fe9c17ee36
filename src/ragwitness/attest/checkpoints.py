"""Signed checkpoints of the window's log, and the tiles that monitors check them by."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.core.files import append_synced, only_writer, read_file, replace_file
from ragwitness.crypto.keys import PrivateKey
from ragwitness.crypto.log.tiles import (
    LENGTH_BYTES,
    WIDTH,
    Source,
    TileFolder,
    load_log,
    read_entries,
    tiles_reach,
    write_tiles,
)
from ragwitness.crypto.log.tree import MerkleLog, consistency_path
from ragwitness.crypto.notes.note import MAX_NOTE, Checkpoint, Note, sign_checkpoint
from ragwitness.crypto.notes.witness import (
    SignedCheckpoint,
    Signers,
    cosign,
    open_checkpoint,
    verify_extension,
)
from ragwitness.crypto.transcript.records import AdmitRecord, QueryRecord, decode


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


def publish(
    public: Path,
    log: MerkleLog,
    keys: Sequence[PrivateKey],
    entries: Callable[[int, int], Sequence[bytes]],
) -> bytes:
    """Write the log's tiles and entries, then its signed checkpoint, and return that.

    ``public`` is the log's prefix (C2SP tlog-tiles). A checkpoint of this size that is there
    stays, with what witnesses have signed under it.

    Args:
        public: The window's public folder.
        log: The log.
        keys: Its own.
        entries: Returns those from one index to before another.

    Raises:
        InputError: There is no key, or the folder cannot be written.
    """
    path, note = public / "checkpoint", sign(log, keys)
    shown = read_file(path, MAX_NOTE) if path.exists() else None
    known = Checkpoint.parse(Note.parse(shown).text).size if shown else 0
    since = known if tiles_reach(public, known) else 0
    try:
        write_tiles(public, log, since, entries)
    except OSError as error:
        raise InputError(f"{public} cannot be written: {error.strerror}.") from error
    if shown and Note.parse(shown).text == Note.parse(note).text:
        return shown
    replace_file(path, note)
    return note


def check_published(public: Path, log: MerkleLog) -> None:
    """Check that a log on the disk still holds what its last published checkpoint says.

    Raises:
        VerificationError: ``log.rolled_back``; entries are gone or changed, as after an old backup.
    """
    if not (public / "checkpoint").exists():
        return
    shown = Checkpoint.parse(Note.parse(read_file(public / "checkpoint", MAX_NOTE)).text)
    if shown.size > log.size or log.root(shown.size) != shown.root:
        raise VerificationError(
            "log.rolled_back",
            f"The log in {public} has {log.size:,} entries, and not the {shown.size:,} that its"
            " checkpoint was signed for.",
            "Restore the newer copy; whatever is logged after this one is a second history, and"
            " convicts its key.",
        )


# A log that one key keeps in a folder of its own, such as that of its runs or of its windows.

ENTRIES, CHECKPOINT = "entries.bin", "checkpoint"
"""Files of the folder: what is logged, and the signed size and root."""


def kept_entries(folder: Path) -> list[bytes]:
    """Return the entries of a log in a folder; none where it is not there.

    Raises:
        InputError: The file cannot be read.
    """
    path = folder / ENTRIES
    return list(read_entries(read_file(path))) if path.exists() else []


def log_entry(folder: Path, keys: Sequence[PrivateKey], entry: bytes, again: str) -> None:
    """Log an entry, once, and publish the log; the entry is on the disk before this returns.

    Args:
        folder: It is made where it is missing.
        keys: Sign the checkpoint.
        entry: What is logged.
        again: What to do where the disk is full.

    Raises:
        InputError: The log is another key's, or cannot be written.
        VerificationError: ``log.rolled_back``; an old copy stands in its place.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with only_writer(folder / ".lock"):
        if (path := folder / CHECKPOINT).exists():
            note = Note.parse(read_file(path))
            if keys[0].public not in note.signatures_of([keys[0].public]):
                raise InputError(
                    f"{folder} is the log of {Checkpoint.parse(note.text).origin!r}, signed by"
                    f" another key than {keys[0].name!r}.",
                    "Give the key of the log, or name another folder.",
                )
        there, log = kept_entries(folder), MerkleLog()
        log.extend(there)
        # An old copy put in place of the log would forget entries: its own checkpoint tells.
        check_published(folder, log)
        if entry not in there:
            whole = len(entry).to_bytes(LENGTH_BYTES, "big") + entry
            append_synced(folder / ENTRIES, whole, again)
            there.append(entry)
            log.append(entry)
        publish(folder, log, keys, lambda start, stop: there[start:stop])


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
    note = read_file(public / "open.checkpoint", MAX_NOTE)
    why = ""
    for named in (tuple(keys), tuple(window_key(key, window) for key in keys)):
        try:
            open_checkpoint(note, Signers(tuple(key.public for key in named)))
        except VerificationError as error:
            why = error.message
        else:
            return named
    raise InputError(
        f"The key of {keys[0].name} did not open this window: {why}",
        "Give the key that ragwitness attest commit was given.",
    )


# Watching a window's log from its prefix: nothing that was shown is changed later.

MOST_ENTRIES = 1 << 20
"""Entries of a log that is read; a window has at most some 104,000 (policy)."""


@dataclass(frozen=True, slots=True)
class WatchedStep:
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
    log: Path | Source,
    note: bytes,
    signers: Signers,
    known: bytes | None = None,
    witness: PrivateKey | None = None,
    time: int = 0,
    *,
    entries: bool = False,
) -> WatchedStep:
    """Check that a log extends what it showed before, and sign that as a witness.

    Args:
        log: The log's prefix: a folder with ``tile/``, or what reads files elsewhere.
        note: The signed checkpoint that the log shows now.
        signers: Whose signatures count.
        known: The checkpoint that was seen last, as it was stored; None at the first look, at
            which all tiles are read.
        witness: Signs the new checkpoint too. Store the returned note before it is handed out.
        time: Time of the signature, POSIX seconds.
        entries: Read the new entries, too, and check that they are those whose hashes are logged.

    Raises:
        VerificationError: ``log.rolled_back``, ``log.split_view`` (two roots for one size),
            ``log.consistency`` (what was shown before is changed), ``log.tile``, ``log.root``,
            ``log.size`` (more entries than a window can have), ``log.bundle``, ``log.entry``, or
            as :func:`~ragwitness.crypto.notes.witness.open_checkpoint`.
    """
    # 1. Signatures under both checkpoints.
    new = open_checkpoint(note, signers)
    old = open_checkpoint(known, signers).checkpoint if known is not None else None
    # 2. At the first look the tiles have the root; later the new log extends the old one.
    path: tuple[bytes, ...] = ()
    size = new.checkpoint.size
    if size > MOST_ENTRIES:
        raise VerificationError("log.size", f"A log of {size:,} entries is no window's.")
    if old is None:
        load_log(log, new.checkpoint.size, new.checkpoint.root)
    else:
        path = _path(log, old, new.checkpoint)
        verify_extension(old, new.checkpoint, path)
    tiles = TileFolder(log, size)
    for number in range(old.size // WIDTH if old else 0, -(-size // WIDTH)) if entries else ():
        tiles.entries(number)
    # 3. Only then a witness signs: a signature says that nothing seen before has changed.
    if witness is not None:
        note, _ = cosign(old, note, path, signers, witness, time)
    return WatchedStep(old, new, note)


def count_queries(
    log: Path | Source, shown: Checkpoint, tenant: str, account: str
) -> tuple[bool, int]:
    """Return whether a log admits an account, and how many queries it has of it; all of it is read.

    Args:
        log: The log's prefix, as for :func:`watch`.
        shown: A checkpoint of it whose signatures were checked.
        tenant: Whose index.
        account: Who is counted.

    Raises:
        VerificationError: ``log.root`` (these are not the entries that were signed for), or as
            :func:`watch`.
    """
    tiles, whole = TileFolder(log, shown.size), MerkleLog()
    entries = [one for n in range(-(-shown.size // WIDTH)) for one in tiles.entries(n)]
    whole.extend(entries)
    if whole.root() != shown.root:
        raise VerificationError("log.root", "The log's entries do not have the checkpoint's root.")
    records = [one for one in map(decode, entries) if isinstance(one, AdmitRecord | QueryRecord)]
    own = [one for one in records if (one.tenant, one.account) == (tenant, account)]
    count = sum(isinstance(one, QueryRecord) for one in own)
    return len(own) > count, count


def _path(log: Path | Source, old: Checkpoint, new: Checkpoint) -> tuple[bytes, ...]:
    """Return the proof of consistency out of the tiles of the log of ``new``."""
    if not 0 < old.size < new.size:
        return ()
    return consistency_path(TileFolder(log, new.size), old.size, new.size)
