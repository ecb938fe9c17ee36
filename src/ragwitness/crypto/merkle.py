"""Merkle trees: the append-only log (RFC 9162), the map of accounts, and the tree of sub-seeds.

Node (level, index) of a log is the root over entries [index · 2^level, (index + 1) · 2^level). Any
other range that a proof needs starts at a multiple of its largest power of two, so a few such nodes
make it (RFC 9162, §2.1).
"""

from __future__ import annotations

import hmac
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import TypeAlias

from ragwitness.core.errors import InputError, require
from ragwitness.crypto.hashing import (
    EMPTY_ROOT,
    HASH_BYTES,
    U64_MAX,
    leaf_hash,
    node_hash,
    tagged_hash,
    u64_text,
)


class LogNodes(ABC):
    """The hashes of a log's complete subtrees, with its roots and proofs."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of entries."""

    @abstractmethod
    def node(self, level: int, index: int) -> bytes:
        """Return the hash over entries [index · 2^level, (index + 1) · 2^level).

        Raises:
            InputError: That subtree is not complete.
        """

    def root(self, size: int | None = None) -> bytes:
        """Return the root over the first ``size`` entries; all of them without.

        Raises:
            InputError: The log is smaller.
        """
        size = self._within(size)
        return self._range_root(0, size) if size else EMPTY_ROOT

    def inclusion(self, index: int, size: int | None = None) -> tuple[bytes, ...]:
        """Return the proof that entry ``index`` is in the tree of ``size`` (RFC 9162, §2.1.3.1).

        Returns:
            Hashes from the leaf's sibling up to the root's child.

        Raises:
            InputError: There is no such entry or no such tree.
        """
        size = self._within(size)
        if not 0 <= index < size:
            raise InputError(f"A log of {size:,} entries has no entry {index:,}.")
        # PATH of §2.1.3.1: descend to the entry, noting the root of the other half.
        path, low, high = [], 0, size
        while high - low > 1:
            middle = low + _split(high - low)
            if index < middle:
                path.append(self._range_root(middle, high))
                high = middle
            else:
                path.append(self._range_root(low, middle))
                low = middle
        return tuple(reversed(path))

    def consistency(self, first: int, second: int | None = None) -> tuple[bytes, ...]:
        """Return the proof that the tree of ``first`` is a prefix of that of ``second`` (§2.1.4.1).

        Empty where the sizes are equal or ``first`` is 0: then the roots alone decide.

        Raises:
            InputError: The log has not been that large, or ``first`` is above ``second``.
        """
        second = self._within(second)
        if not 0 <= first <= second:
            raise InputError(f"A log of {second:,} entries has no earlier size {first:,}.")
        if first in (0, second):
            return ()
        # SUBPROOF of §2.1.4.1: descend to the old tree's end.
        path, low, high = [], 0, second
        complete = True  # SUBPROOF's b: the verifier has the root of this very subtree
        while first != high:
            middle = low + _split(high - low)
            if first <= middle:
                path.append(self._range_root(middle, high))
                high = middle
            else:
                path.append(self._range_root(low, middle))
                low, complete = middle, False
        if not complete:
            path.append(self._range_root(low, high))
        return tuple(reversed(path))

    def _within(self, size: int | None) -> int:
        size = self.size if size is None else size
        if not 0 <= size <= self.size:
            raise InputError(
                f"The log has {self.size:,} entries; a tree of {size:,} is no part of it."
            )
        return size

    def _range_root(self, low: int, high: int) -> bytes:
        """Return the root over [low, high); low is a multiple of its largest power of two."""
        # Complete subtrees from left to right, then folded from the right.
        subtrees: list[bytes] = []
        while low < high:
            level = (high - low).bit_length() - 1
            subtrees.append(self.node(level, low >> level))
            low += 1 << level
        root = subtrees.pop()
        while subtrees:
            root = node_hash(subtrees.pop(), root)
        return root


def _split(size: int) -> int:
    """Return the largest power of two below ``size`` (RFC 9162, §2.1.1)."""
    return 1 << ((size - 1).bit_length() - 1)


class MerkleLog(LogNodes):
    """Entries go in at the end and never leave; every earlier size keeps its root and proofs.

    It keeps hashes, 64 bytes an entry, and no entries. Not safe for appends from two threads.
    """

    def __init__(self, entries: Iterable[bytes] = ()) -> None:
        self._levels: list[bytearray] = [bytearray()]
        self.extend(entries)

    @property
    def size(self) -> int:
        """Number of entries."""
        return len(self._levels[0]) // HASH_BYTES

    def append(self, entry: bytes) -> int:
        """Append one entry and return its index."""
        self.extend((entry,))
        return self.size - 1

    def extend(self, entries: Iterable[bytes]) -> None:
        """Append entries in their order."""
        self.extend_hashes(map(leaf_hash, entries))

    def extend_hashes(self, leaves: Iterable[bytes]) -> None:
        """Append entries by their leaf hashes, 32 bytes each."""
        self._levels[0] += b"".join(leaves)
        # Hash the pairs that have become complete, level by level.
        pair = 2 * HASH_BYTES
        for level, below in enumerate(self._levels):
            if len(below) < pair:
                return
            if level + 1 == len(self._levels):
                self._levels.append(bytearray())
            above = self._levels[level + 1]
            # Pairs that have no node above them yet.
            starts = range(2 * len(above), len(below) - pair + 1, pair)
            above += b"".join(
                [sha256(b"\x01" + below[start : start + pair]).digest() for start in starts]
            )

    def node(self, level: int, index: int) -> bytes:
        """Return the hash over entries [index · 2^level, (index + 1) · 2^level).

        Raises:
            InputError: That subtree is not complete.
        """
        start = index * HASH_BYTES
        if not 0 <= level < len(self._levels) or not 0 <= start < len(self._levels[level]):
            raise InputError(f"The log has no complete subtree {index} of height {level} yet.")
        return bytes(self._levels[level][start : start + HASH_BYTES])


# Checks of the log's proofs: RFC 9162, §2.1.3.2 and §2.1.4.2, step by step. Both end by asking that
# the size is used up (sn = 0), so that no prefix of a path and no other size passes.


def verify_inclusion(
    entry: bytes, index: int, size: int, path: Sequence[bytes], root: bytes
) -> None:
    """Check that ``entry`` is number ``index`` of the tree of ``size`` with this ``root``.

    Args:
        entry: The entry itself, not its hash: a hash that is taken on trust could be a node's.
        index: From 0.
        size: Number of entries under the root.
        path: Hashes from the leaf's sibling up to the root's child.
        root: 32 bytes.

    Raises:
        VerificationError: ``log.size``, ``log.index``, ``log.hash``, ``log.path_length`` or
            ``log.inclusion``.
    """
    # Sizes and lengths first; the steps below rely on them.
    _check_form((size,), (*path, root))
    beyond = f"A log of {size:,} entries has no entry {index:,}."
    require(0 <= index < size, "log.index", beyond)  # step 1
    fn, sn, r = index, size - 1, leaf_hash(entry)  # steps 2 and 3
    for p in path:  # step 4
        _check_length(sn != 0)
        if fn & 1 or fn == sn:
            r = node_hash(p, r)
            fn, sn = _shifted(fn, sn)
        else:
            r = node_hash(r, p)
        fn, sn = fn >> 1, sn >> 1
    _check_length(sn == 0)  # step 5
    fault = f"The entry is not number {index:,} of the log with this root."
    require(hmac.compare_digest(r, root), "log.inclusion", fault)


def verify_consistency(
    first: int, first_root: bytes, second: int, second_root: bytes, path: Sequence[bytes]
) -> None:
    """Check that the tree of ``first`` entries is a prefix of the tree of ``second``.

    RFC 9162 leaves out two cases that need no path: equal sizes, where the roots must be equal,
    and ``first`` = 0, where ``first_root`` must be the hash of nothing.

    Raises:
        VerificationError: ``log.size``, ``log.hash``, ``log.rolled_back``, ``log.empty_root``,
            ``log.split_view``, ``log.path_length`` or ``log.consistency``.
    """
    _check_form((first, second), (*path, first_root, second_root))
    for size, root in ((first, first_root), (second, second_root)):
        wrong = f"The root of the log's first {size:,} entries cannot be this one."
        require((size == 0) == (root == EMPTY_ROOT), "log.empty_root", wrong)
    shrunk = f"The log had {first:,} entries and has {second:,} now."
    require(first <= second, "log.rolled_back", shrunk)
    if first in (0, second):
        _check_length(not path)
        same = first != second or hmac.compare_digest(first_root, second_root)
        two = f"Two roots are shown for the same {first:,} entries."
        require(same, "log.split_view", two)
        return
    # §2.1.4.2, for 0 < first < second.
    _check_length(len(path) > 0)  # step 1
    steps = list(path)
    if first & (first - 1) == 0:  # step 2: the old tree is a complete subtree of the new one
        steps.insert(0, first_root)
    fn, sn = first - 1, second - 1  # step 3
    while fn & 1:  # step 4
        fn, sn = fn >> 1, sn >> 1
    fr = sr = steps[0]  # step 5
    for c in steps[1:]:  # step 6
        _check_length(sn != 0)
        if fn & 1 or fn == sn:
            fr, sr = node_hash(c, fr), node_hash(c, sr)
            fn, sn = _shifted(fn, sn)
        else:
            sr = node_hash(sr, c)
        fn, sn = fn >> 1, sn >> 1
    _check_length(sn == 0)  # step 7
    same = hmac.compare_digest(fr, first_root) & hmac.compare_digest(sr, second_root)
    changed = f"The log's first {first:,} of {second:,} entries are not those shown before."
    require(same, "log.consistency", changed)


def _shifted(fn: int, sn: int) -> tuple[int, int]:
    """Shift both right until the low bit of ``fn`` is set or ``fn`` is 0."""
    while fn and not fn & 1:
        fn, sn = fn >> 1, sn >> 1
    return fn, sn


def _check_form(sizes: Sequence[int], hashes: Sequence[bytes]) -> None:
    for size in sizes:
        require(0 <= size <= U64_MAX, "log.size", f"{size} is no size of a log.")
    fits = all(len(digest) == HASH_BYTES for digest in hashes)
    require(fits, "log.hash", f"A hash in a proof has not {HASH_BYTES} bytes.")


def _check_length(holds: bool) -> None:
    fault = "The proof has too many or too few hashes for the log's size."
    require(holds, "log.path_length", fault)


# A sparse Merkle map from accounts to (count, last record): a binary trie over 256-bit keys, with
# each lone entry as high as it can be.
#
# From the root, each bit of a key leads one way, to an entry or to nothing, and the hashes tell
# nodes, entries and nothing apart. So a root fixes one answer for every key. The shape depends on
# the entries alone and not on their order.

_MAP_DOMAIN = b"ragwitness/map/v1"

EMPTY_MAP = sha256(_MAP_DOMAIN + b"\x02").digest()
"""Hash of a subtree with nothing in it."""


MapEntry: TypeAlias = tuple[int, bytes]
"""An account's number of records in the window, and the hash of the last of them, 32 bytes."""


def map_key(window: str, tenant: str, account: str) -> bytes:
    """Return the key of an account's entry, 32 bytes."""
    names = (name.encode() for name in (window, tenant, account))
    return tagged_hash("ragwitness/map-key/v1", *names)


def map_root(entries: Mapping[bytes, MapEntry], depth: int = 0) -> bytes:
    """Return the root over entries, 32 bytes: of nothing, of one, or of two halves by a key's bit.

    Args:
        entries: By their keys, 32 bytes each.
        depth: Bits of the keys that are alike.
    """
    # Nothing, a lone entry, or two halves.
    if not entries:
        return EMPTY_MAP
    if len(entries) == 1:
        [(key, (count, last))] = entries.items()
        return sha256(_MAP_DOMAIN + b"\x00" + key + count.to_bytes(8, "big") + last).digest()
    sides: tuple[dict[bytes, MapEntry], ...] = ({}, {})
    for key, entry in entries.items():
        sides[key[depth >> 3] >> (7 - (depth & 7)) & 1][key] = entry
    low, high = (map_root(side, depth + 1) for side in sides)
    return sha256(_MAP_DOMAIN + b"\x01" + low + high).digest()


# One commitment to the secrets of all records of a window, opened one record at a time (G4).
#
# The paper opens the window's seed at the close, and with it the noise of every answer. Here the
# leaves of a Merkle tree are the records' sub-seeds (``privacy.streams.sub_seed`` derives them).
# Opening one shows nothing of the others. A sub-seed has 256 bits that cannot be guessed, so its
# leaf needs no blinding.

_SEED_DOMAIN = b"ragwitness/sub-seed-leaf/v1\n"


def seed_tree(seeds: Iterable[bytes]) -> MerkleLog:
    """Return the tree over all sub-seeds, 32 bytes each, in the order of their numbers.

    Its size is stated beside the root, or a tree could be shown at two sizes.
    """
    return MerkleLog(_seed_entry(number, seed) for number, seed in enumerate(seeds))


def verify_seed(root: bytes, size: int, number: int, seed: bytes, path: Sequence[bytes]) -> None:
    """Check that a sub-seed is the one committed to under its number.

    Args:
        root: Of the tree, 32 bytes.
        size: Sub-seeds of the tree.
        number: Number of the record, from 0.
        seed: 32 bytes.
        path: Hashes from the leaf's sibling up.

    Raises:
        VerificationError: ``seed.size``, or by :func:`verify_inclusion` ``log.*``.
    """
    # Length and number, then the path of the leaf.
    length = f"A sub-seed has {HASH_BYTES} bytes, not {len(seed)}."
    require(len(seed) == HASH_BYTES, "seed.size", length)
    inside = 0 <= number < min(size, U64_MAX)
    require(inside, "log.index", f"There is no sub-seed {number:,}.")
    # The leaf names its number, so no sub-seed can take another's place.
    verify_inclusion(_seed_entry(number, seed), number, size, path, root)


def _seed_entry(number: int, seed: bytes) -> bytes:
    return _SEED_DOMAIN + u64_text(number).encode() + b"\n" + seed
