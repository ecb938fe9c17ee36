"""A sparse Merkle map, account to (count, last record): who is in, who is not, and how often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from ragwitness.core.errors import InputError
from ragwitness.crypto.canonical import U64_MAX
from ragwitness.crypto.hashing import HASH_BYTES, tagged_hash

# The map: a binary trie over 256-bit keys in which a lone entry stands as high as it can.
#
# From the root, each bit of a key leads one way, to an entry or to nothing, and the hashes tell
# nodes, entries and nothing apart. So a root fixes one answer for every key. The shape hangs on the
# entries alone and not on their order: who replays the log gets the same root.

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
        return EMPTY
    if len(entries) == 1:
        [(key, entry)] = entries.items()
        count = entry.count.to_bytes(8, "big")
        return sha256(_DOMAIN + b"\x00" + key + count + entry.last).digest()
    sides: tuple[dict[bytes, MapEntry], ...] = ({}, {})
    for key, entry in entries.items():
        sides[key[depth >> 3] >> (7 - (depth & 7)) & 1][key] = entry
    left, right = (map_root(side, depth + 1) for side in sides)
    return sha256(_DOMAIN + b"\x01" + left + right).digest()
