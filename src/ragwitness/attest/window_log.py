"""The window's log on disk, its signed checkpoints, and the tiles that monitors check them by (R2).

``log/entries.bin`` is the log: each entry with its length before it in two bytes, appended and
forced to the disk before an answer is given. Accounts, places, counts and chains are replayed from
it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ragwitness.core.errors import InputError, VerificationError, require
from ragwitness.core.files import append_synced, only_writer, read_file, replace_file
from ragwitness.crypto.entries import framed, read_entries
from ragwitness.crypto.hashing import HASH_BYTES, leaf_hash
from ragwitness.crypto.keys import PrivateKey
from ragwitness.crypto.merkle import MerkleLog, map_key, map_root
from ragwitness.crypto.notes import (
    MAX_NOTE,
    Checkpoint,
    Note,
    SignedCheckpoint,
    Signers,
    cosign,
    open_checkpoint,
    sign_checkpoint,
    verify_extension,
)
from ragwitness.crypto.records import (
    AdmitRecord,
    BeaconRecord,
    CloseRecord,
    KeyedAdmitRecord,
    LogRecord,
    OpenRecord,
    QueryRecord,
    decode,
    encode,
)
from ragwitness.crypto.tiles import Source, TileFolder, load_log, tiles_reach, write_tiles

WINDOW_ENTRIES = "log/entries.bin"
AGAIN = "Free some disk space; nothing was answered, and the same query can be sent again."


@dataclass(frozen=True, slots=True)
class LoggedAccount:
    """An account as the log has it.

    Attributes:
        place: Place in the order of admission.
        admitted: Index of its admission in the log.
        count: Its query records.
        last: Leaf hash of the last of them; zeros before the first.
        key: Key with which it signs, 32 bytes; none for an account without one.
    """

    place: int
    admitted: int
    count: int = 0
    last: bytes = bytes(HASH_BYTES)
    key: bytes = b""


class WindowLog:
    """The log of one window; a process that changes it holds the window's lock.

    Args:
        public: The window's public folder.
    """

    def __init__(self, public: Path) -> None:
        # The file, and the state replayed from it.
        self.path = public / WINDOW_ENTRIES
        self.log = MerkleLog()
        self.accounts: dict[tuple[str, str], LoggedAccount] = {}
        self.nonces: dict[tuple[str, str, str], int] = {}
        self.queries: list[int] = []
        self.closed: CloseRecord | None = None
        self.beacon = b""
        self.beacon_at = -1
        self._opened: OpenRecord | None = None
        self._starts: list[int] = []
        self._read = 0

    @property
    def opened(self) -> OpenRecord:
        """The open record.

        Raises:
            VerificationError: ``open.missing``; the log does not begin with one.
        """
        if self._opened is None:
            raise VerificationError("open.missing", f"{self.path} begins with no open record.")
        return self._opened

    def refresh(self, *, repair: bool = False) -> None:
        """Read the entries that other processes have added.

        Args:
            repair: Cut off an entry that a crash left half written; no client knows of it. Only
                for a holder of the lock, or another's entry could be cut while it is written.

        Raises:
            VerificationError: An entry is not a record.
            InputError: The file cannot be read.
        """
        # Complete entries are applied in their order; bytes after the last are a half entry.
        data = _tail(self.path, self._read)
        end = self._read + len(data)
        for entry in read_entries(data):
            self._apply(entry)
        if repair and self._read < end:
            os.truncate(self.path, self._read)

    def append(self, record: LogRecord) -> None:
        """Log a record; it is on the disk when this returns.

        Raises:
            InputError: The record does not fit an entry, or the disk fails.
        """
        # On the disk first: an entry in memory alone was never logged.
        entry = encode(record)
        append_synced(self.path, framed(entry), AGAIN)
        self._apply(entry)

    def entry(self, index: int) -> bytes:
        """Return one entry.

        Raises:
            InputError: The file cannot be read.
        """
        return self.entries(index, index + 1)[0]

    def entries(self, start: int = 0, stop: int | None = None) -> list[bytes]:
        """Return the entries from ``start`` to before ``stop``; all of the log without."""
        starts = [*self._starts, self._read]
        first, last = starts[start], starts[len(self._starts) if stop is None else stop]
        return list(read_entries(_tail(self.path, first, last - first)))

    def _apply(self, entry: bytes) -> None:
        record, index = decode(entry), self.log.append(entry)
        self._starts.append(self._read)
        self._read += len(framed(entry))
        if isinstance(record, OpenRecord) and index == 0:
            self._opened = record
        elif isinstance(record, AdmitRecord):
            next_place = len(self.accounts)
            key = bytes.fromhex(record.key) if isinstance(record, KeyedAdmitRecord) else b""
            self.accounts[record.tenant, record.account] = LoggedAccount(next_place, index, key=key)
        elif isinstance(record, BeaconRecord):
            self.beacon, self.beacon_at = bytes.fromhex(record.value), index
        elif isinstance(record, QueryRecord):
            # The chain of an account: its count, and the hash of its last record.
            name = (record.tenant, record.account)
            old = self.accounts[name]
            self.accounts[name] = replace(old, count=old.count + 1, last=leaf_hash(entry))
            if record.nonce:
                self.nonces[*name, record.nonce] = len(self.queries)
            self.queries.append(index)
        elif isinstance(record, CloseRecord):
            self.closed = record


def accounts_root(window: str, accounts: dict[tuple[str, str], LoggedAccount]) -> bytes:
    """Return the root of the map of all accounts that asked, with their counts (§5.4)."""
    return map_root(
        {
            map_key(window, tenant, name): (account.count, account.last)
            for (tenant, name), account in accounts.items()
            if account.count
        }
    )


def _tail(path: Path, start: int, size: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(size)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}.",
            "Give a folder that ragwitness attest commit made.",
        ) from error


# Signed checkpoints.


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

    ``public`` is the log's prefix (C2SP tlog-tiles). A published checkpoint of this size stays,
    with its witnesses' signatures.

    Args:
        public: The window's public folder.
        log: The log.
        keys: Its own.
        entries: Returns those from one index to before another.

    Raises:
        InputError: There is no key, or the folder cannot be written.
    """
    # Tiles since the last published checkpoint, then the new one.
    path, note = public / "checkpoint", sign(log, keys)
    published = read_file(path, MAX_NOTE) if path.exists() else None
    size = Checkpoint.of_note(published).size if published else 0
    try:
        write_tiles(public, log, size if tiles_reach(public, size) else 0, entries)
    except OSError as error:
        raise InputError(f"{public} cannot be written: {error.strerror}.") from error
    if published and Note.parse(published).text == Note.parse(note).text:
        return published
    replace_file(path, note)
    return note


def check_published(public: Path, log: MerkleLog) -> None:
    """Check that a log on the disk still holds the state of its last published checkpoint.

    Raises:
        VerificationError: ``log.rolled_back``; entries are gone or changed, as after an old backup.
    """
    if not (public / "checkpoint").exists():
        return
    # A published checkpoint must be a prefix of the log.
    published = Checkpoint.of_note(read_file(public / "checkpoint", MAX_NOTE))
    require(
        published.size <= log.size and log.root(published.size) == published.root,
        "log.rolled_back",
        f"The log in {public} has {log.size:,} entries, and not the {published.size:,} that its"
        " checkpoint was signed for.",
        "Restore the newer copy; entries that are logged after this one are a second history, and"
        " convict its key.",
    )


def window_key(key: PrivateKey, window: str) -> PrivateKey:
    """Return a log's key under the name of one window, ``NAME/WINDOW``.

    Each window is one log, and a name belongs to one log only. Two windows under one name are a
    split view, which their two signed checkpoints show. The key material is the same.
    """
    suffix = f"/{window}"
    return key if key.name.endswith(suffix) else replace(key, name=key.name + suffix)


def opening_keys(public: Path, keys: Sequence[PrivateKey], window: str) -> tuple[PrivateKey, ...]:
    """Return keys under the names by which they signed a window's opening.

    Raises:
        InputError: They did not.
    """
    # The key's own name, then its name for this window.
    note = read_file(public / "open.checkpoint", MAX_NOTE)
    reason = ""
    for named in (tuple(keys), tuple(window_key(key, window) for key in keys)):
        try:
            open_checkpoint(note, Signers(tuple(key.public for key in named)))
        except VerificationError as error:
            reason = error.message
        else:
            return named
    raise InputError(
        f"The key of {keys[0].name} did not open this window: {reason}",
        "Give the key that ragwitness attest commit was given.",
    )


# A log that one key keeps in one folder, such as that of its runs or of its windows.

ENTRIES, CHECKPOINT = "entries.bin", "checkpoint"
"""Files of the folder: the entries, and the signed size and root."""


def log_entry(folder: Path, keys: Sequence[PrivateKey], entry: bytes, again: str) -> None:
    """Log an entry, once, and publish the log; the entry is on the disk before this returns.

    Args:
        folder: It is made where it is missing.
        keys: Sign the checkpoint.
        entry: The new entry.
        again: Advice for a full disk.

    Raises:
        InputError: The log is another key's, or cannot be written.
        VerificationError: ``log.rolled_back``; the folder holds an old copy of the log.
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
        # Append the entry once, and publish.
        path = folder / ENTRIES
        entries = list(read_entries(read_file(path))) if path.exists() else []
        # An old copy of the log would forget entries: its own checkpoint shows that.
        check_published(folder, MerkleLog(entries))
        if entry not in entries:
            append_synced(path, framed(entry), again)
            entries.append(entry)
        publish(folder, MerkleLog(entries), keys, lambda start, stop: entries[start:stop])


# Watching a window's log from its prefix: it may only grow.

MOST_ENTRIES = 1 << 20
"""Entries of a log that is read; a window has at most some 104,000 (policy)."""


@dataclass(frozen=True, slots=True)
class WatchedStep:
    """A step of the log that was checked.

    Attributes:
        old: The last known checkpoint; None at the first look.
        new: The log's current checkpoint.
        note: The new checkpoint, with the witness's signature where there is one.
    """

    old: Checkpoint | None
    new: SignedCheckpoint
    note: bytes


def watch(
    log: Path | Source,
    note: bytes,
    signers: Signers,
    stored: bytes | None = None,
    witness: PrivateKey | None = None,
    time: int = 0,
    *,
    entries: bool = False,
) -> WatchedStep:
    """Check that a log extends its earlier state, and sign that as a witness.

    Args:
        log: The log's prefix: a folder with ``tile/``, or a function that reads files elsewhere.
        note: The log's current signed checkpoint.
        signers: Keys whose signatures count.
        stored: The last checkpoint, as it was stored; None at the first look, at which all tiles
            are read.
        witness: Signs the new checkpoint too. Store the returned note before it is handed out.
        time: Time of the signature, POSIX seconds.
        entries: Read the new entries, too, and check them against their logged hashes.

    Raises:
        VerificationError: ``log.rolled_back``, ``log.split_view`` (two roots for one size),
            ``log.consistency`` (earlier entries are changed), ``log.tile``, ``log.root``,
            ``log.size`` (more entries than a window can have), ``log.bundle``, ``log.entry``, or
            as :func:`~ragwitness.crypto.notes.open_checkpoint`.
    """
    # 1. Signatures under both checkpoints.
    signed = open_checkpoint(note, signers)
    old = open_checkpoint(stored, signers).checkpoint if stored is not None else None
    # 2. At the first look the tiles have the root; later the new log extends the old one.
    path: tuple[bytes, ...] = ()
    new = signed.checkpoint
    many = f"A log of {new.size:,} entries is no window's."
    require(new.size <= MOST_ENTRIES, "log.size", many)
    tiles = TileFolder(log, new.size)
    if old is None:
        load_log(log, new.size, new.root)
    else:
        path = tiles.consistency(old.size) if 0 < old.size < new.size else ()
        verify_extension(old, new, path)
    if entries:
        list(tiles.all_entries(old.size if old else 0))
    # 3. Only then a witness signs: its signature says that the log only grew.
    if witness is not None:
        note = cosign(old, note, path, signers, witness, time)
    return WatchedStep(old, signed, note)


def count_queries(
    log: Path | Source, shown: Checkpoint, tenant: str, account: str
) -> tuple[bool, int]:
    """Return whether a log admits an account, and its number of queries; all entries are read.

    Args:
        log: The log's prefix, as for :func:`watch`.
        shown: A checkpoint of it whose signatures were checked.
        tenant: The index's tenant.
        account: Name of the account.

    Raises:
        VerificationError: ``log.root`` (the entries have another root), or as :func:`watch`.
    """
    # All entries, checked against the signed root.
    entries = list(TileFolder(log, shown.size).all_entries())
    fault = "The log's entries do not have the checkpoint's root."
    require(MerkleLog(entries).root() == shown.root, "log.root", fault)
    # The account's admission and its queries.
    kinds = [
        type(record)
        for record in map(decode, entries)
        if isinstance(record, AdmitRecord | QueryRecord)
        and (record.tenant, record.account) == (tenant, account)
    ]
    count = sum(issubclass(kind, QueryRecord) for kind in kinds)
    return len(kinds) > count, count
