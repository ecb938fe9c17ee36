"""The log in memory: leaf hashes and the hashes of all complete subtrees, 64 bytes per entry."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.hashing import (
    EMPTY_ROOT,
    HASH_BYTES,
    U64_MAX,
    leaf_hash,
    node_hash,
    tagged_hash,
    u64_text,
)

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


# A sparse Merkle map, account to (count, last record): who is in, who is not, and how often.


# The map: a binary trie over 256-bit keys in which a lone entry stands as high as it can.
#
# From the root, each bit of a key leads one way, to an entry or to nothing, and the hashes tell
# nodes, entries and nothing apart. So a root fixes one answer for every key. The shape hangs on the
# entries alone and not on their order: who replays the log gets the same root.

_MAP_DOMAIN = b"ragwitness/map/v1"

EMPTY_MAP = sha256(_MAP_DOMAIN + b"\x02").digest()
"""Hash of a subtree with nothing in it."""


@dataclass(frozen=True, slots=True)
class MapEntry:
    """What the map says of one account.

    Attributes:
        count: Its records in the window, from 1.
        last: Hash of the last of them, 32 bytes.
    """

    count: int
    last: bytes

    def __post_init__(self) -> None:
        if not 1 <= self.count <= U64_MAX or len(self.last) != HASH_BYTES:
            raise InputError(
                f"An entry is a count from 1 to 2^64 - 1 and a hash of {HASH_BYTES} bytes, not "
                f"{self.count} and {len(self.last)} bytes."
            )


def map_key(window: str, tenant: str, account: str) -> bytes:
    """Return the key of an account's entry, 32 bytes."""
    parts = (part.encode() for part in (window, tenant, account))
    return tagged_hash("ragwitness/map-key/v1", *parts)


def map_root(entries: Mapping[bytes, MapEntry], depth: int = 0) -> bytes:
    """Return the root over entries, 32 bytes: of nothing, of one, or of two halves by a key's bit.

    Args:
        entries: By their keys, 32 bytes each.
        depth: Bits of the keys that are alike.
    """
    if not entries:
        return EMPTY_MAP
    if len(entries) == 1:
        [(key, entry)] = entries.items()
        count = entry.count.to_bytes(8, "big")
        return sha256(_MAP_DOMAIN + b"\x00" + key + count + entry.last).digest()
    sides: tuple[dict[bytes, MapEntry], ...] = ({}, {})
    for key, entry in entries.items():
        sides[key[depth >> 3] >> (7 - (depth & 7)) & 1][key] = entry
    left, right = (map_root(side, depth + 1) for side in sides)
    return sha256(_MAP_DOMAIN + b"\x01" + left + right).digest()


# One commitment to the secrets of all records of a window, opened one record at a time (G4).
#
# The paper opens the window's seed at the close, and with it the noise of every answer. Here the
# leaves of a Merkle tree are the records' sub-seeds (``privacy.streams.sub_seed`` derives them):
# opening one shows nothing of the others. A leaf hash hides its sub-seed because that is 256 bits
# which nobody can guess; so leaves need no blinding of their own.


_SEED_DOMAIN = b"ragwitness/sub-seed-leaf/v1\n"


@dataclass(frozen=True, slots=True)
class SeedOpening:
    """One record's sub-seed and its proof.

    Attributes:
        number: Number of the record, from 0.
        seed: 32 bytes.
        path: Hashes from the leaf's sibling up.
    """

    number: int
    seed: bytes
    path: tuple[bytes, ...]


class SeedTree:
    """The tree over all sub-seeds; keeps hashes, 64 bytes per record, and no secret.

    Args:
        seeds: 32 bytes each, in the order of their numbers.

    Raises:
        InputError: There is none, or one has another length.
    """

    def __init__(self, seeds: Iterable[bytes]) -> None:
        self._log = MerkleLog()
        self._log.extend_hashes(_seed_leaf(number, seed) for number, seed in enumerate(seeds))
        if not self._log.size:
            raise InputError("A window needs at least one sub-seed.")

    @property
    def size(self) -> int:
        """Number of sub-seeds; stated beside the root, or a tree could be shown at two sizes."""
        return self._log.size

    @property
    def root(self) -> bytes:
        """32 bytes, published before the window opens."""
        return self._log.root()

    def open(self, number: int, seed: bytes) -> SeedOpening:
        """Return the opening of one sub-seed.

        Raises:
            InputError: The number is none, or this is not the sub-seed that was committed to.
        """
        path = self._log.inclusion(number)
        if self._log.node(0, number) != _seed_leaf(number, seed):
            raise InputError(
                f"This is not the sub-seed {number:,} that the tree was made of.",
                "Derive it from the same window seed and window name.",
            )
        return SeedOpening(number, seed, path)


def verify_seed(root: bytes, size: int, opening: SeedOpening) -> None:
    """Check that an opened sub-seed is the one committed to under its number.

    Raises:
        VerificationError: ``seed.size``, or by
            :func:`~ragwitness.crypto.merkle.verify_inclusion` ``log.*``.
    """
    if len(opening.seed) != HASH_BYTES:
        raise VerificationError(
            "seed.size", f"A sub-seed has {HASH_BYTES} bytes, not {len(opening.seed)}."
        )
    if not 0 <= opening.number < min(size, U64_MAX):
        raise VerificationError("log.index", f"There is no sub-seed {opening.number:,}.")
    # The leaf names its number, so no sub-seed can stand in for another.
    verify_inclusion(
        _seed_entry(opening.number, opening.seed), opening.number, size, opening.path, root
    )


def _seed_leaf(number: int, seed: bytes) -> bytes:
    if len(seed) != HASH_BYTES:
        raise InputError(f"A sub-seed has {HASH_BYTES} bytes, not {len(seed)}.")
    return leaf_hash(_seed_entry(number, seed))


def _seed_entry(number: int, seed: bytes) -> bytes:
    return _SEED_DOMAIN + u64_text(number).encode() + b"\n" + seed
