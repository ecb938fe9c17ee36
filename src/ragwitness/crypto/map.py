"""A sparse Merkle map, account to (count, last record): who is in, who is not, and how often."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from ragwitness.crypto.canonical import U64_MAX
from ragwitness.crypto.hashing import HASH_BYTES, tagged_hash
from ragwitness.errors import InputError, VerificationError

# The map: a binary trie over 256-bit keys in which a lone entry stands as high as it can.
#
# A log alone cannot show that something is *not* in it. This map beside it can: from the root, each
# bit of a key leads one way, to an entry or to nothing, and the hashes tell nodes, entries and
# nothing apart. So a root fixes one answer for every key, however it was built. The shape hangs on
# the entries alone and not on their order: who replays the log gets the same root.

_DOMAIN = b"ragwitness/map/v1"

EMPTY = sha256(_DOMAIN + b"\x02").digest()
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


def account_key(window: str, tenant: str, account: str) -> bytes:
    """Return the key of an account's entry, 32 bytes.

    Names that can be guessed can be found again in a published proof; a provider that would hide
    its accounts names them by random identifiers.
    """
    parts = (part.encode() for part in (window, tenant, account))
    return tagged_hash("ragwitness/map-key/v1", *parts)


def entry_hash(key: bytes, entry: MapEntry) -> bytes:
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
    entry: MapEntry
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

    def get(self, key: bytes) -> MapEntry | None:
        """Return the entry of a key; None where there is none."""
        node, depth = self.node, 0
        while isinstance(node, Branch):
            node, depth = (node.right if bit(key, depth) else node.left), depth + 1
        return node.entry if node is not None and node.key == key else None

    def updated(self, changes: Mapping[bytes, MapEntry]) -> SparseMap:
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
        # Counts only grow, so that a map of a later checkpoint never hides a record.
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
    # Split by this depth's bit; a lone entry stays as high as it can.
    sides: tuple[list[Leaf], list[Leaf]] = ([], [])
    for leaf in leaves:
        sides[bit(leaf.key, depth)].append(leaf)
    left = _merged(left, sides[0], depth + 1)
    right = _merged(right, sides[1], depth + 1)
    return Branch(left, right, branch_hash(digest_of(left), digest_of(right)))


# Proofs of the map: what stands at a key, or that nothing does, and that a count keeps its cap.
#
# One answer per root and key: the walk from the root along the key's bits ends at the first entry
# or empty subtree. It ends at an entry with another key only if that key shares the bits walked,
# so a proof that shows such an entry shows that the key asked for is absent.

_BITS = 256
_ENTRY_BYTES = HASH_BYTES + 8 + HASH_BYTES


@dataclass(frozen=True, slots=True)
class MapProof:
    """Where the walk along a key's bits ends, and what lies beside it.

    Attributes:
        siblings: Hashes of the subtrees not walked into, from the root down.
        end: Key and entry where the walk ends; None at an empty subtree.
    """

    siblings: tuple[bytes, ...]
    end: tuple[bytes, MapEntry] | None

    def encode(self) -> bytes:
        """Return the proof in bytes.

        The depth in two bytes, a bit per sibling that is not empty (padded with zeros), those
        siblings, then the entry if the walk ends at one: key, count in eight bytes, last record.
        """
        depth = len(self.siblings)
        mask = sum(1 << (_BITS - 1 - i) for i, s in enumerate(self.siblings) if s != EMPTY)
        bits = mask.to_bytes(_BITS // 8, "big")[: -(-depth // 8)]
        shown = b"".join(s for s in self.siblings if s != EMPTY)
        end = b""
        if self.end is not None:
            key, entry = self.end
            end = key + entry.count.to_bytes(8, "big") + entry.last
        return depth.to_bytes(2, "big") + bits + shown + end

    @classmethod
    def decode(cls, data: bytes) -> MapProof:
        """Return the proof of its bytes; whatever :meth:`encode` does not write is refused.

        Raises:
            VerificationError: ``map.format``.
        """
        # Depth, mask, the siblings that are not empty, the entry; then the one form is demanded.
        depth = int.from_bytes(data[:2], "big")
        start = 2 + -(-depth // 8)
        if len(data) < start or depth > _BITS:
            raise _malformed()
        mask = int.from_bytes(data[2:start], "big") << (_BITS - 8 * (start - 2))
        at = start
        siblings: list[bytes] = []
        for i in range(depth):
            full = mask >> (_BITS - 1 - i) & 1
            siblings.append(data[at : at + HASH_BYTES] if full else EMPTY)
            at += HASH_BYTES * full
        proof = cls(tuple(siblings), _end(data[at:]))
        if proof.encode() != data:  # padding, a written empty sibling, bytes missing or too many
            raise _malformed()
        return proof


def prove_entry(tree: SparseMap, key: bytes) -> MapProof:
    """Return the proof of what stands at ``key``, be it nothing."""
    # Walk along the key's bits, noting what lies on the other side.
    siblings: list[bytes] = []
    node = tree.node
    while isinstance(node, Branch):
        right = bit(key, len(siblings))
        siblings.append(digest_of(node.left if right else node.right))
        node = node.right if right else node.left
    return MapProof(tuple(siblings), (node.key, node.entry) if isinstance(node, Leaf) else None)


def verify_entry(root: bytes, key: bytes, proof: MapProof) -> MapEntry | None:
    """Return what the map of this root says of ``key``: an entry, or None for nothing.

    Raises:
        VerificationError: ``map.format``, ``map.prefix`` (the walk of another key is shown) or
            ``map.root``.
    """
    depth = len(proof.siblings)
    hashes = (root, key, *proof.siblings)
    if depth > _BITS or any(len(part) != HASH_BYTES for part in hashes):
        raise _malformed()
    # 1. The end of the walk: nothing, or an entry whose key shares every bit walked.
    found = EMPTY
    if proof.end is not None:
        other, entry = proof.end
        if len(other) != HASH_BYTES or any(bit(other, i) != bit(key, i) for i in range(depth)):
            raise VerificationError(
                "map.prefix", "A proof about the map ends at an entry that is not on the way."
            )
        found = entry_hash(other, entry)
    # 2. Back up to the root.
    for i in reversed(range(depth)):
        pair = (proof.siblings[i], found) if bit(key, i) else (found, proof.siblings[i])
        found = branch_hash(*pair)
    if not hmac.compare_digest(found, root):
        raise VerificationError("map.root", "A proof about the map does not lead to its root.")
    return proof.end[1] if proof.end is not None and proof.end[0] == key else None


def _end(data: bytes) -> tuple[bytes, MapEntry] | None:
    if not data:
        return None
    if len(data) != _ENTRY_BYTES:
        raise _malformed()
    count = int.from_bytes(data[HASH_BYTES:-HASH_BYTES], "big")
    try:
        return data[:HASH_BYTES], MapEntry(count, data[-HASH_BYTES:])
    except InputError as error:
        raise _malformed() from error


def _malformed() -> VerificationError:
    return VerificationError("map.format", "A proof about the map is not in its one form.")
