"""The log as files that any static server can hand out (C2SP tlog-tiles).

``tile/<level>/<number>`` holds 256 hashes side by side, each the root over a full tile below;
``tile/entries/<number>`` the entries, each with its length before it in two bytes. The last tile
of a level may be partial: ``….p/<width>``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragwitness.crypto.hashing import HASH_BYTES
from ragwitness.crypto.log.proofs import Nodes
from ragwitness.errors import InputError, VerificationError

__all__ = [
    "MAX_ENTRY",
    "WIDTH",
    "Tile",
    "decode_bundle",
    "encode_bundle",
    "split_hashes",
    "tile_bytes",
    "tiles_of",
]

WIDTH = 256
"""Hashes in a full tile."""

MAX_ENTRY = (1 << 16) - 1
"""Longest entry, in bytes, that a bundle can hold."""

_HEIGHT = 8
_LONGEST_PATH = 80
_PATH = re.compile(
    r"tile/(entries|0|[1-9]|[1-5][0-9]|6[0-3])/((?:x[0-9]{3}/)*[0-9]{3})"
    r"(?:\.p/([1-9][0-9]{0,2}))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Tile:
    """One file.

    Attributes:
        level: 0 for leaf hashes, then one more for every 256 times fewer; -1 for entries.
        number: From 0, left to right.
        width: 1 to 256 hashes or entries.
    """

    level: int
    number: int
    width: int = WIDTH

    @property
    def path(self) -> str:
        """Relative to the log's prefix, e.g. ``tile/0/x001/x234/067.p/17``."""
        groups = [f"{self.number % 1000:03d}"]
        rest = self.number // 1000
        while rest:
            groups.insert(0, f"x{rest % 1000:03d}")
            rest //= 1000
        level = "entries" if self.level < 0 else str(self.level)
        partial = "" if self.width == WIDTH else f".p/{self.width}"
        return f"tile/{level}/{'/'.join(groups)}{partial}"

    @classmethod
    def parse(cls, path: str) -> Tile:
        """Return the tile of a path; a path that :attr:`path` does not write is refused.

        Raises:
            InputError: Not the one path of a tile.
        """
        found = _PATH.fullmatch(path) if len(path) <= _LONGEST_PATH else None
        if found:
            level = -1 if found[1] == "entries" else int(found[1])
            number = int(found[2].replace("x", "").replace("/", ""))
            tile = cls(level, number, int(found[3] or WIDTH))
            if tile.path == path and tile.width <= WIDTH:
                return tile
        raise InputError(f"{path[:80]!r} is no path of a tile.", "See https://c2sp.org/tlog-tiles.")


def tiles_of(size: int, since: int = 0) -> Iterator[Tile]:
    """Return the hash tiles that a log of ``size`` has and one of ``since`` had not.

    Partial tiles are those of ``size``. Entry bundles have the places of level 0.
    """
    for level in range(64):
        hashes, before = size >> (_HEIGHT * level), since >> (_HEIGHT * level)
        if not hashes:
            return
        for number in range(before // WIDTH, hashes // WIDTH):
            yield Tile(level, number)
        if hashes % WIDTH and hashes != before:
            yield Tile(level, hashes // WIDTH, hashes % WIDTH)


def tile_bytes(nodes: Nodes, tile: Tile) -> bytes:
    """Return a hash tile's content, 32 bytes per hash.

    Raises:
        InputError: The log does not reach that far, or the tile is one of entries.
    """
    if tile.level < 0:
        raise InputError("A log of hashes does not hold its entries.", "Use encode_bundle().")
    first = tile.number * WIDTH
    height = _HEIGHT * tile.level
    return b"".join(nodes.node(height, first + i) for i in range(tile.width))


def encode_bundle(entries: Sequence[bytes]) -> bytes:
    """Return the entry bundle of 1 to 256 entries.

    Raises:
        InputError: There are none or too many, or one is longer than 65,535 bytes.
    """
    if not 1 <= len(entries) <= WIDTH:
        raise InputError(f"A bundle holds 1 to {WIDTH} entries, not {len(entries)}.")
    if any(len(entry) > MAX_ENTRY for entry in entries):
        raise InputError(f"An entry of the log has at most {MAX_ENTRY:,} bytes.")
    return b"".join(len(entry).to_bytes(2, "big") + entry for entry in entries)


def decode_bundle(data: bytes, width: int) -> list[bytes]:
    """Return the entries of a bundle that must hold ``width`` of them and nothing behind.

    Raises:
        VerificationError: ``log.bundle``.
    """
    entries: list[bytes] = []
    at = 0
    while at < len(data) and len(entries) < width:
        end = at + 2 + int.from_bytes(data[at : at + 2], "big")
        if at + 2 > len(data) or end > len(data):
            break
        entries.append(data[at + 2 : end])
        at = end
    if len(entries) != width or at != len(data):
        raise VerificationError("log.bundle", f"A file of entries does not hold exactly {width}.")
    return entries


def split_hashes(data: bytes, width: int) -> list[bytes]:
    """Return the hashes of a tile that must hold ``width`` of them and nothing behind.

    Raises:
        VerificationError: ``log.tile``.
    """
    if len(data) != width * HASH_BYTES:
        raise VerificationError("log.tile", f"A tile of {width} hashes has {len(data):,} bytes.")
    return [data[i : i + HASH_BYTES] for i in range(0, len(data), HASH_BYTES)]
