"""The window's log on disk, and what follows from it: accounts, places, counts, the chain (R2).

``log/entries.bin`` is the log: each entry with its length before it in two bytes, appended and
forced to the disk before anything is said about it. All else is replayed from it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ragwitness.crypto.hashing import HASH_BYTES, leaf_hash
from ragwitness.crypto.log import MerkleLog
from ragwitness.crypto.map import Entry, SparseMap, account_key
from ragwitness.crypto.transcript import (
    AdmitRecord,
    CloseRecord,
    OpenRecord,
    QueryRecord,
    Record,
    decode,
    encode,
)
from ragwitness.errors import InputError, RagwitnessError, VerificationError

__all__ = ["Account", "Ledger", "account_map", "append_synced", "read_entries"]

ENTRIES = "log/entries.bin"
_LENGTH = 2


@dataclass(frozen=True, slots=True)
class Account:
    """What the log says of an account.

    Attributes:
        place: By order of admission.
        admitted: Index of its admission in the log.
        count: Its query records.
        last: Leaf hash of the last of them; zeros before the first.
    """

    place: int
    admitted: int
    count: int = 0
    last: bytes = bytes(HASH_BYTES)


class Ledger:
    """The log of one window; whoever changes it holds the window's lock.

    Args:
        public: The window's public folder.
    """

    def __init__(self, public: Path) -> None:
        self.path = public / ENTRIES
        self.log = MerkleLog()
        self.accounts: dict[tuple[str, str], Account] = {}
        self.nonces: dict[tuple[str, str, str], int] = {}
        self.queries: list[int] = []
        self.closed: CloseRecord | None = None
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
            VerificationError: An entry is no record.
            InputError: The file cannot be read.
        """
        data = _tail(self.path, self._read)
        end = self._read + len(data)
        for entry in read_entries(data):
            self._apply(entry)
        if repair and self._read < end:
            os.truncate(self.path, self._read)

    def append(self, record: Record) -> int:
        """Log a record and return its index, once it is on the disk.

        Raises:
            InputError: The record does not fit an entry, or the disk fails.
        """
        entry = encode(record)
        append_synced(self.path, len(entry).to_bytes(_LENGTH, "big") + entry)
        self._apply(entry)
        return self.log.size - 1

    def entry(self, index: int) -> bytes:
        """Return one entry.

        Raises:
            InputError: There is no such entry, or the file cannot be read.
        """
        if not 0 <= index < len(self._starts):
            raise InputError(f"The log has {len(self._starts):,} entries.")
        start = self._starts[index]
        stop = self._starts[index + 1] if index + 1 < len(self._starts) else self._read
        return next(read_entries(_tail(self.path, start, stop - start)))

    def entries(self) -> list[bytes]:
        """Return all entries."""
        return list(read_entries(_tail(self.path, 0)))

    def _apply(self, entry: bytes) -> None:
        record, index = decode(entry), self.log.append(entry)
        self._starts.append(self._read)
        self._read += _LENGTH + len(entry)
        if isinstance(record, OpenRecord) and index == 0:
            self._opened = record
        elif isinstance(record, AdmitRecord):
            place = len(self.accounts)
            self.accounts[record.tenant, record.account] = Account(place, index)
        elif isinstance(record, QueryRecord):
            who = (record.tenant, record.account)
            old = self.accounts[who]
            self.accounts[who] = Account(old.place, old.admitted, old.count + 1, leaf_hash(entry))
            if record.nonce:
                self.nonces[*who, record.nonce] = len(self.queries)
            self.queries.append(index)
        elif isinstance(record, CloseRecord):
            self.closed = record


def account_map(window: str, accounts: dict[tuple[str, str], Account]) -> SparseMap:
    """Return the map of all accounts that asked (§5.4: who is in, who is not, and how often)."""
    return SparseMap().updated(
        {
            account_key(window, tenant, name): Entry(account.count, account.last)
            for (tenant, name), account in accounts.items()
            if account.count
        }
    )


def read_entries(data: bytes) -> Iterator[bytes]:
    """Yield the whole entries at the start of ``data``; stop before one that is cut short."""
    at = 0
    while at + _LENGTH <= len(data):
        end = at + _LENGTH + int.from_bytes(data[at : at + _LENGTH], "big")
        if end > len(data):
            return
        yield data[at + _LENGTH : end]
        at = end


def append_synced(path: Path, data: bytes) -> None:
    """Append bytes to a file and return once the disk has them; all of them or none.

    Raises:
        RagwitnessError: The disk is full or fails.
    """
    try:
        with path.open("ab", buffering=0) as file:
            before = file.tell()
            try:
                if file.write(data) != len(data):
                    raise OSError(28, "No space left on device")
                os.fsync(file.fileno())
            except OSError:
                file.truncate(before)
                raise
    except OSError as error:
        raise RagwitnessError(
            f"{path} cannot be written: {error.strerror}.",
            "Free some disk space; nothing was answered, and the same query can be sent again.",
        ) from error


def _tail(path: Path, start: int, size: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(size)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}.",
            "Give a folder that ragwitness commit made.",
        ) from error
