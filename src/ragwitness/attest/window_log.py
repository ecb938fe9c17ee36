"""Signed checkpoints of the window's log, and the tiles that monitors check them by."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.core.files import append_synced, only_writer, read_file, replace_file
from ragwitness.crypto.hashing import HASH_BYTES, leaf_hash
from ragwitness.crypto.keys import PrivateKey
from ragwitness.crypto.merkle import MapEntry, MerkleLog, consistency_path, map_key, map_root
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
from ragwitness.crypto.tiles import (
    LENGTH_BYTES,
    WIDTH,
    Source,
    TileFolder,
    load_log,
    read_entries,
    tiles_reach,
    write_tiles,
)


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
            as :func:`~ragwitness.crypto.notes.open_checkpoint`.
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
        note = cosign(old, note, path, signers, witness, time)
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


# The window's log on disk, and everything replayed from it: accounts, places, counts, chain (R2).
#
# ``log/entries.bin`` is the log: each entry with its length before it in two bytes, appended and
# forced to the disk before anything is said about it. All else is replayed from it.


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
    """The log of one window; whoever changes it holds the window's lock.

    Args:
        public: The window's public folder.
    """

    def __init__(self, public: Path) -> None:
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
        """Read what other processes have added.

        Args:
            repair: Cut off an entry that a crash left half written: nobody was told of it. Only
                for a holder of the lock, or another's entry could be cut while it is written.

        Raises:
            VerificationError: An entry is not a record.
            InputError: The file cannot be read.
        """
        # Whole entries are applied in their order; what follows the last is cut short.
        data = _tail(self.path, self._read)
        end = self._read + len(data)
        for entry in read_entries(data):
            self._apply(entry)
        if repair and self._read < end:
            os.truncate(self.path, self._read)

    def append(self, record: LogRecord) -> int:
        """Log a record and return its index, once it is on the disk.

        Raises:
            InputError: The record does not fit an entry, or the disk fails.
        """
        # On the disk first: what is in memory alone was never logged.
        entry = encode(record)
        append_synced(self.path, len(entry).to_bytes(LENGTH_BYTES, "big") + entry, AGAIN)
        self._apply(entry)
        return self.log.size - 1

    def entry(self, index: int) -> bytes:
        """Return one entry.

        Raises:
            InputError: There is no such entry, or the file cannot be read.
        """
        if not 0 <= index < len(self._starts):
            raise InputError(f"The log has {len(self._starts):,} entries.")
        return self.entries(index, index + 1)[0]

    def entries(self, start: int = 0, stop: int | None = None) -> list[bytes]:
        """Return the entries from ``start`` to before ``stop``; all of the file without."""
        if stop is None:
            return list(read_entries(_tail(self.path, 0)))[start:]
        first = self._starts[start]
        last = self._starts[stop] if stop < len(self._starts) else self._read
        return list(read_entries(_tail(self.path, first, last - first)))

    def _apply(self, entry: bytes) -> None:
        record, index = decode(entry), self.log.append(entry)
        self._starts.append(self._read)
        self._read += LENGTH_BYTES + len(entry)
        if isinstance(record, OpenRecord) and index == 0:
            self._opened = record
        elif isinstance(record, AdmitRecord):
            place = len(self.accounts)
            key = bytes.fromhex(record.key) if isinstance(record, KeyedAdmitRecord) else b""
            self.accounts[record.tenant, record.account] = LoggedAccount(place, index, key=key)
        elif isinstance(record, BeaconRecord):
            self.beacon, self.beacon_at = bytes.fromhex(record.value), index
        elif isinstance(record, QueryRecord):
            # The chain of an account: its count, and the hash of its last record.
            who = (record.tenant, record.account)
            old = self.accounts[who]
            self.accounts[who] = replace(old, count=old.count + 1, last=leaf_hash(entry))
            if record.nonce:
                self.nonces[*who, record.nonce] = len(self.queries)
            self.queries.append(index)
        elif isinstance(record, CloseRecord):
            self.closed = record


def accounts_root(window: str, accounts: dict[tuple[str, str], LoggedAccount]) -> bytes:
    """Return the root of the map of all accounts that asked (§5.4: who, and how often)."""
    return map_root(
        {
            map_key(window, tenant, name): MapEntry(account.count, account.last)
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
