"""The log in memory: leaf hashes and the hashes of all complete subtrees, 64 bytes per entry."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from ragwitness.crypto.hashing import HASH_BYTES
from ragwitness.crypto.log.proofs import consistency_path, inclusion_path, tree_root
from ragwitness.errors import InputError

__all__ = ["MerkleLog"]


class MerkleLog:
    """Entries go in at the end and never leave; every earlier size keeps its root and proofs.

    The entries themselves are not kept, only their hashes. Not safe for appends from two threads.
    """

    def __init__(self) -> None:
        self._levels: list[bytearray] = [bytearray()]

    @property
    def size(self) -> int:
        """Number of entries."""
        return len(self._levels[0]) // HASH_BYTES

    def append(self, entry: bytes) -> int:
        """Append one entry and return its index."""
        return self.extend((entry,)).start

    def extend(self, entries: Iterable[bytes]) -> range:
        """Append entries in their order and return their indexes."""
        return self.extend_hashes(sha256(b"\x00" + entry).digest() for entry in entries)

    def extend_hashes(self, leaves: Iterable[bytes]) -> range:
        """Append entries by their leaf hashes, 32 bytes each, and return their indexes.

        Raises:
            InputError: A hash has another length; then nothing is appended.
        """
        first, added = self.size, b"".join(map(_leaf, leaves))
        self._levels[0] += added
        self._complete()
        return range(first, self.size)

    def node(self, level: int, index: int) -> bytes:
        """Return the hash over entries [index · 2^level, (index + 1) · 2^level).

        Raises:
            InputError: That subtree is not complete.
        """
        start = index * HASH_BYTES
        if not 0 <= level < len(self._levels) or not 0 <= start < len(self._levels[level]):
            raise InputError(f"The log has no complete subtree {index} of height {level} yet.")
        return bytes(self._levels[level][start : start + HASH_BYTES])

    def root(self, size: int | None = None) -> bytes:
        """Return the root over the first ``size`` entries; all of them without.

        Raises:
            InputError: The log is smaller.
        """
        return tree_root(self, size)

    def inclusion(self, index: int, size: int | None = None) -> tuple[bytes, ...]:
        """Return the proof that entry ``index`` is in the tree of ``size``; see `inclusion_path`.

        Raises:
            InputError: There is no such entry or no such tree.
        """
        return inclusion_path(self, index, size)

    def consistency(self, first: int, second: int | None = None) -> tuple[bytes, ...]:
        """Return the proof that the tree of ``first`` grew into that of ``second``.

        Raises:
            InputError: The log has not been that large, or ``first`` is above ``second``.
        """
        return consistency_path(self, first, second)

    def _complete(self) -> None:
        """Hash the pairs that have become whole, level by level."""
        pair = 2 * HASH_BYTES
        for level in range(64):
            below = self._levels[level]
            if len(below) < pair:
                return
            if level + 1 == len(self._levels):
                self._levels.append(bytearray())
            above = self._levels[level + 1]
            starts = range(2 * len(above), len(below) - pair + 1, pair)
            above += b"".join(
                [sha256(b"\x01" + below[start : start + pair]).digest() for start in starts]
            )


def _leaf(leaf: bytes) -> bytes:
    if len(leaf) != HASH_BYTES:
        raise InputError(f"A leaf hash has {HASH_BYTES} bytes, not {len(leaf)}.")
    return leaf
