"""The window's log on disk, and everything replayed from it: accounts, places, counts, chain (R2).

``log/entries.bin`` is the log: each entry with its length before it in two bytes, appended and
forced to the disk before anything is said about it. All else is replayed from it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.core.files import append_synced
from ragwitness.crypto.hashing import HASH_BYTES, leaf_hash
from ragwitness.crypto.log.tiles import LENGTH_BYTES, read_entries
from ragwitness.crypto.log.tree import MerkleLog
from ragwitness.crypto.map import MapEntry, account_key, map_root
from ragwitness.crypto.transcript.records import (
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

ENTRIES = "log/entries.bin"
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
        self.path = public / ENTRIES
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
            account_key(window, tenant, name): MapEntry(account.count, account.last)
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
