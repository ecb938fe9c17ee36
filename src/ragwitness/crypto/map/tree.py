"""The map: a binary trie over 256-bit keys in which a lone entry stands as high as it can.

A log alone cannot show that something is *not* in it. This map beside it can: from the root, each
bit of a key leads one way, to an entry or to nothing, and the hashes tell nodes, entries and
nothing apart. So a root fixes one answer for every key, however it was built. The shape hangs on
the entries alone and not on their order: who replays the log gets the same root.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from ragwitness.crypto.canonical import U64_MAX
from ragwitness.crypto.hashing import HASH_BYTES, tagged_hash
from ragwitness.errors import InputError

__all__ = [
    "EMPTY",
    "Branch",
    "Entry",
    "Leaf",
    "Node",
    "SparseMap",
    "account_key",
    "bit",
    "branch_hash",
    "digest_of",
    "entry_hash",
]

_DOMAIN = b"ragwitness/map/v1"

EMPTY = sha256(_DOMAIN + b"\x02").digest()
"""Hash of a subtree with nothing in it."""


@dataclass(frozen=True, slots=True)
class Entry:
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


def account_key(window: str, tenant: str, account: str) -> bytes:
    """Return the key of an account's entry, 32 bytes.

    Names that can be guessed can be found again in a published proof; a provider that would hide
    its accounts names them by random identifiers.
    """
    parts = (part.encode() for part in (window, tenant, account))
    return tagged_hash("ragwitness/map-key/v1", *parts)


def entry_hash(key: bytes, entry: Entry) -> bytes:
    """Return the hash of an entry, with its whole key."""
    count = entry.count.to_bytes(8, "big")
    return sha256(_DOMAIN + b"\x00" + key + count + entry.last).digest()


def branch_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node with two subtrees."""
    return sha256(_DOMAIN + b"\x01" + left + right).digest()


def bit(key: bytes, depth: int) -> int:
    """Return bit ``depth`` of a key, from the left."""
    return key[depth >> 3] >> (7 - (depth & 7)) & 1


@dataclass(frozen=True, slots=True)
class Leaf:
    """One entry."""

    key: bytes
    entry: Entry
    digest: bytes


@dataclass(frozen=True, slots=True)
class Branch:
    """Two subtrees, with at least two entries between them."""

    left: Node
    right: Node
    digest: bytes


Node = Leaf | Branch | None
"""A subtree; None where there is nothing."""


class SparseMap:
    """An immutable map; an update gives a new one that shares all that did not change.

    So the map of every checkpoint can be kept and still prove.
    """

    def __init__(self, node: Node = None) -> None:
        self.node = node

    @property
    def root(self) -> bytes:
        """32 bytes."""
        return digest_of(self.node)

    def get(self, key: bytes) -> Entry | None:
        """Return the entry of a key; None where there is none."""
        node, depth = self.node, 0
        while isinstance(node, Branch):
            node, depth = (node.right if bit(key, depth) else node.left), depth + 1
        return node.entry if node is not None and node.key == key else None

    def updated(self, changes: Mapping[bytes, Entry]) -> SparseMap:
        """Return the map with entries added or replaced; each node on the way is hashed once.

        Raises:
            InputError: A key has not 32 bytes, or a count is not above what it was.
        """
        for key, entry in changes.items():
            old = self.get(key) if len(key) == HASH_BYTES else None
            if len(key) != HASH_BYTES or (old is not None and old.count >= entry.count):
                raise InputError(
                    f"An account's count went from {old.count} to {entry.count}; it only grows."
                    if old is not None
                    else f"A key of the map has {HASH_BYTES} bytes, not {len(key)}."
                )
        leaves = [Leaf(key, entry, entry_hash(key, entry)) for key, entry in changes.items()]
        return SparseMap(_merged(self.node, leaves, 0))


def digest_of(node: Node) -> bytes:
    """Return the hash of a subtree."""
    return EMPTY if node is None else node.digest


def _merged(node: Node, leaves: list[Leaf], depth: int) -> Node:
    if not leaves:
        return node
    if isinstance(node, Branch):
        left, right = node.left, node.right
    else:
        if node is not None and all(leaf.key != node.key for leaf in leaves):
            leaves = [*leaves, node]
        if len(leaves) == 1:
            return leaves[0]
        left = right = None
    sides: tuple[list[Leaf], list[Leaf]] = ([], [])
    for leaf in leaves:
        sides[bit(leaf.key, depth)].append(leaf)
    left = _merged(left, sides[0], depth + 1)
    right = _merged(right, sides[1], depth + 1)
    return Branch(left, right, branch_hash(digest_of(left), digest_of(right)))
