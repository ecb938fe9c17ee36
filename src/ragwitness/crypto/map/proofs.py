"""Proofs of the map: what stands at a key, or that nothing does, and that a count keeps its cap.

One answer per root and key: the walk from the root along the key's bits ends at the first entry or
empty subtree. It ends at an entry with another key only if that key shares the bits walked, so a
proof that shows such an entry shows that the key asked for is absent.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from ragwitness.crypto.hashing import HASH_BYTES
from ragwitness.crypto.map.tree import (
    EMPTY,
    Branch,
    Entry,
    Leaf,
    SparseMap,
    bit,
    branch_hash,
    digest_of,
    entry_hash,
)
from ragwitness.errors import InputError, VerificationError

__all__ = ["MapProof", "prove_entry", "verify_entry"]

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
    end: tuple[bytes, Entry] | None

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
    siblings: list[bytes] = []
    node = tree.node
    while isinstance(node, Branch):
        right = bit(key, len(siblings))
        siblings.append(digest_of(node.left if right else node.right))
        node = node.right if right else node.left
    return MapProof(tuple(siblings), (node.key, node.entry) if isinstance(node, Leaf) else None)


def verify_entry(root: bytes, key: bytes, proof: MapProof) -> Entry | None:
    """Return what the map of this root says of ``key``: an entry, or None for nothing.

    Raises:
        VerificationError: ``map.format``, ``map.prefix`` (the walk of another key is shown) or
            ``map.root``.
    """
    depth = len(proof.siblings)
    hashes = (root, key, *proof.siblings)
    if depth > _BITS or any(len(part) != HASH_BYTES for part in hashes):
        raise _malformed()
    found = EMPTY
    if proof.end is not None:
        other, entry = proof.end
        if len(other) != HASH_BYTES or any(bit(other, i) != bit(key, i) for i in range(depth)):
            raise VerificationError(
                "map.prefix", "A proof about the map ends at an entry that is not on the way."
            )
        found = entry_hash(other, entry)
    for i in reversed(range(depth)):
        pair = (proof.siblings[i], found) if bit(key, i) else (found, proof.siblings[i])
        found = branch_hash(*pair)
    if not hmac.compare_digest(found, root):
        raise VerificationError("map.root", "A proof about the map does not lead to its root.")
    return proof.end[1] if proof.end is not None and proof.end[0] == key else None


def _end(data: bytes) -> tuple[bytes, Entry] | None:
    if not data:
        return None
    if len(data) != _ENTRY_BYTES:
        raise _malformed()
    count = int.from_bytes(data[HASH_BYTES:-HASH_BYTES], "big")
    try:
        return data[:HASH_BYTES], Entry(count, data[-HASH_BYTES:])
    except InputError as error:
        raise _malformed() from error


def _malformed() -> VerificationError:
    return VerificationError("map.format", "A proof about the map is not in its one form.")
