"""The entries of a log in one file, each with its length before it in two bytes."""

from __future__ import annotations

from collections.abc import Iterator

from ragwitness.core.errors import InputError, require

LENGTH_BYTES = 2
"""Length of the length before each entry."""

MAX_ENTRY = (1 << 8 * LENGTH_BYTES) - 1
"""Longest entry, in bytes, that a bundle can hold."""


def framed(entry: bytes) -> bytes:
    """Return an entry with its length before it.

    Raises:
        InputError: It is longer than 65,535 bytes.
    """
    if len(entry) > MAX_ENTRY:
        raise InputError(f"An entry of the log has at most {MAX_ENTRY:,} bytes.")
    return len(entry).to_bytes(LENGTH_BYTES, "big") + entry


def read_entries(data: bytes) -> Iterator[bytes]:
    """Yield the complete entries at the start of ``data``; stop before one that is cut short."""
    at = 0
    while at + LENGTH_BYTES <= len(data):
        end = at + LENGTH_BYTES + int.from_bytes(data[at : at + LENGTH_BYTES], "big")
        if end > len(data):
            return
        yield data[at + LENGTH_BYTES : end]
        at = end


def read_all_entries(data: bytes, check: str) -> list[bytes]:
    """Return the entries of a file that must not end inside one.

    Raises:
        VerificationError: ``check``.
    """
    entries = list(read_entries(data))
    used = sum(map(len, entries)) + LENGTH_BYTES * len(entries)
    require(used == len(data), check, "A file of the log's entries is cut off.")
    return entries
