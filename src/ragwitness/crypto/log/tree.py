"""The log in memory: leaf hashes and the hashes of all complete subtrees, 64 bytes per entry."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Protocol

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.canonical import U64_MAX
from ragwitness.crypto.hashing import EMPTY_ROOT, HASH_BYTES, leaf_hash, node_hash

# Roots and proofs out of the hashes of complete subtrees, wherever kept (RFC 9162, §2.1).
#
# Node (level, index) is the root over entries [index · 2^level, (index + 1) · 2^level). Any other
# range that a proof needs starts at a multiple of its largest power of two, so a few such nodes
# make it.


class Nodes(Protocol):
    """The hashes of a log's complete subtrees."""

    @property
    def size(self) -> int:
        """Number of entries."""
        ...

    def node(self, level: int, index: int) -> bytes:
        """Return the hash over entries [index · 2^level, (index + 1) · 2^level)."""
        ...


def tree_root(nodes: Nodes, size: int | None = None) -> bytes:
    """Return the root over the first ``size`` entries; all of them without.

    Raises:
        InputError: The log is smaller.
    """
    size = nodes.size if size is None else size
    _within(nodes, size)
    return _range_root(nodes, 0, size) if size else EMPTY_ROOT


def inclusion_path(nodes: Nodes, index: int, size: int | None = None) -> tuple[bytes, ...]:
    """Return the proof that entry ``index`` is in the tree of ``size`` (RFC 9162, §2.1.3.1).

    Returns:
        Hashes from the leaf's sibling up to the root's child.

    Raises:
        InputError: There is no such entry or no such tree.
    """
    size = nodes.size if size is None else size
    _within(nodes, size)
    if not 0 <= index < size:
        raise InputError(f"A log of {size:,} entries has no entry {index:,}.")
    # PATH of §2.1.3.1: descend to the entry, noting the root of the other half.
    path, low, high = [], 0, size
    while high - low > 1:
        middle = low + _split(high - low)
        if index < middle:
            path.append(_range_root(nodes, middle, high))
            high = middle
        else:
            path.append(_range_root(nodes, low, middle))
            low = middle
    return tuple(reversed(path))


def consistency_path(nodes: Nodes, first: int, second: int | None = None) -> tuple[bytes, ...]:
    """Return the proof that the tree of ``first`` is a prefix of that of ``second`` (§2.1.4.1).

    Empty where the sizes are equal or ``first`` is 0: then the roots alone decide.

    Raises:
        InputError: The log has not been that large, or ``first`` is above ``second``.
    """
    second = nodes.size if second is None else second
    _within(nodes, second)
    if not 0 <= first <= second:
        raise InputError(f"A log of {second:,} entries has no earlier size {first:,}.")
    if first in (0, second):
        return ()
    # SUBPROOF of §2.1.4.1: descend to where the old tree ends.
    path, low, high = [], 0, second
    whole = True  # SUBPROOF's b: the old tree's root is this very subtree, which the verifier has
    while first != high:
        middle = low + _split(high - low)
        if first <= middle:
            path.append(_range_root(nodes, middle, high))
            high = middle
        else:
            path.append(_range_root(nodes, low, middle))
            low, whole = middle, False
    if not whole:
        path.append(_range_root(nodes, low, high))
    return tuple(reversed(path))


def _split(size: int) -> int:
    """Return the largest power of two below ``size`` (RFC 9162, §2.1.1)."""
    return 1 << ((size - 1).bit_length() - 1)


def _range_root(nodes: Nodes, low: int, high: int) -> bytes:
    """Return the root over [low, high), with low a multiple of the range's largest power of two."""
    # Complete subtrees from left to right, then folded from the right.
    parts: list[bytes] = []
    while low < high:
        level = (high - low).bit_length() - 1
        parts.append(nodes.node(level, low >> level))
        low += 1 << level
    root = parts.pop()
    while parts:
        root = node_hash(parts.pop(), root)
    return root


def _within(nodes: Nodes, size: int) -> None:
    if not 0 <= size <= nodes.size:
        raise InputError(
            f"The log has {nodes.size:,} entries; a tree of {size:,} is no part of it."
        )


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
            # Pairs that have no node above them yet.
            starts = range(2 * len(above), len(below) - pair + 1, pair)
            above += b"".join(
                [sha256(b"\x01" + below[start : start + pair]).digest() for start in starts]
            )


def _leaf(leaf: bytes) -> bytes:
    if len(leaf) != HASH_BYTES:
        raise InputError(f"A leaf hash has {HASH_BYTES} bytes, not {len(leaf)}.")
    return leaf


# Checks of the log's proofs: RFC 9162, §2.1.3.2 and §2.1.4.2, step by step.
#
# Both end by asking that the size is used up (sn = 0): a proof that is right for a prefix of the
# path, or for another size, fails there.


def verify_inclusion(
    entry: bytes, index: int, size: int, path: Sequence[bytes], root: bytes
) -> None:
    """Check that ``entry`` stands at ``index`` of the tree of ``size`` with this ``root``.

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
    _hashes(path, root)
    found = inclusion_root(leaf_hash(entry), index, size, path)
    if not hmac.compare_digest(found, root):
        raise VerificationError(
            "log.inclusion", f"The entry is not number {index:,} of the log with this root."
        )


def inclusion_root(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes:
    """Return the only root under which this path proves ``leaf`` at ``index``.

    Raises:
        VerificationError: ``log.size``, ``log.index`` or ``log.path_length``.
    """
    _size(size)
    if not 0 <= index < size:
        raise VerificationError(
            "log.index", f"A log of {size:,} entries has no entry {index:,}."
        )  # step 1
    fn, sn, r = index, size - 1, leaf  # steps 2 and 3
    for p in path:  # step 4
        if sn == 0:
            raise _length()
        if fn & 1 or fn == sn:
            r = node_hash(p, r)
            if not fn & 1:
                fn, sn = _shifted(fn, sn)
        else:
            r = node_hash(r, p)
        fn, sn = fn >> 1, sn >> 1
    if sn:  # step 5
        raise _length()
    return r


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
    _size(first)
    _size(second)
    _hashes(path, first_root, second_root)
    _empty(first, first_root)
    _empty(second, second_root)
    if first > second:
        raise VerificationError(
            "log.rolled_back", f"The log had {first:,} entries and has {second:,} now."
        )
    if first in (0, second):
        if path:
            raise _length()
        if first == second and not hmac.compare_digest(first_root, second_root):
            raise VerificationError(
                "log.split_view", f"Two roots are shown for the same {first:,} entries."
            )
        return
    _prefix(first, first_root, second, second_root, path)


def _prefix(
    first: int, first_root: bytes, second: int, second_root: bytes, path: Sequence[bytes]
) -> None:
    """RFC 9162, §2.1.4.2, for 0 < first < second."""
    if not path:  # step 1
        raise _length()
    steps = list(path)
    if first & (first - 1) == 0:  # step 2: the old tree is a complete subtree of the new one
        steps.insert(0, first_root)
    fn, sn = first - 1, second - 1  # step 3
    while fn & 1:  # step 4
        fn, sn = fn >> 1, sn >> 1
    fr = sr = steps[0]  # step 5
    for c in steps[1:]:  # step 6
        if sn == 0:
            raise _length()
        if fn & 1 or fn == sn:
            fr, sr = node_hash(c, fr), node_hash(c, sr)
            if not fn & 1:
                fn, sn = _shifted(fn, sn)
        else:
            sr = node_hash(sr, c)
        fn, sn = fn >> 1, sn >> 1
    if sn:  # step 7
        raise _length()
    same = hmac.compare_digest(fr, first_root) & hmac.compare_digest(sr, second_root)
    if not same:
        raise VerificationError(
            "log.consistency",
            f"The log's first {first:,} of {second:,} entries are not those shown before.",
        )


def _shifted(fn: int, sn: int) -> tuple[int, int]:
    """Shift both right until the low bit of ``fn`` is set or ``fn`` is 0."""
    while fn and not fn & 1:
        fn, sn = fn >> 1, sn >> 1
    return fn, sn


def _size(size: int) -> None:
    if not 0 <= size <= U64_MAX:
        raise VerificationError("log.size", f"{size} is no size of a log.")


def _empty(size: int, root: bytes) -> None:
    if (size == 0) != hmac.compare_digest(root, EMPTY_ROOT):
        raise VerificationError(
            "log.empty_root", f"The root of the log's first {size:,} entries cannot be this one."
        )


def _hashes(path: Sequence[bytes], *roots: bytes) -> None:
    if any(len(part) != HASH_BYTES for part in (*path, *roots)):
        raise VerificationError("log.hash", f"A hash in a proof has not {HASH_BYTES} bytes.")


def _length() -> VerificationError:
    return VerificationError(
        "log.path_length", "The proof has too many or too few hashes for the log's size."
    )
