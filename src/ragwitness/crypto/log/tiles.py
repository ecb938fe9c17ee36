"""The log as files that any static server can hand out (C2SP tlog-tiles).

``tile/<level>/<number>`` holds 256 hashes side by side, each the root over a full tile below;
``tile/entries/<number>`` the entries, each with its length before it in two bytes. The last tile
of a level may be partial: ``….p/<width>``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragwitness.crypto.hashing import HASH_BYTES, leaf_hash, node_hash
from ragwitness.crypto.log.tree import MerkleLog, Nodes
from ragwitness.errors import InputError, VerificationError
from ragwitness.kit.files import replace_file

WIDTH = 256
"""Hashes in a full tile."""

LENGTH_BYTES = 2
"""What stands before each entry: its length."""

MAX_ENTRY = (1 << 8 * LENGTH_BYTES) - 1
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
    return b"".join(len(entry).to_bytes(LENGTH_BYTES, "big") + entry for entry in entries)


def read_entries(data: bytes) -> Iterator[bytes]:
    """Yield the whole entries at the start of ``data``; stop before one that is cut short."""
    at = 0
    while at + LENGTH_BYTES <= len(data):
        end = at + LENGTH_BYTES + int.from_bytes(data[at : at + LENGTH_BYTES], "big")
        if end > len(data):
            return
        yield data[at + LENGTH_BYTES : end]
        at = end


def decode_bundle(data: bytes, width: int) -> list[bytes]:
    """Return the entries of a bundle that must hold ``width`` of them and nothing behind.

    Raises:
        VerificationError: ``log.bundle``.
    """
    entries = list(read_entries(data))
    if len(entries) != width or sum(map(len, entries)) + LENGTH_BYTES * width != len(data):
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


# A folder of tiles: written beside a growing log, read to prove or to check it.

_KEPT = 1024


def write_tiles(folder: Path, nodes: Nodes, since: int = 0) -> int:
    """Write the hash tiles that are new since the log had ``since`` entries.

    A file appears whole or not at all. Partial tiles of earlier sizes stay: a checkpoint that was
    handed out may need them.

    Returns:
        Number of files written.

    Raises:
        OSError: The folder cannot be written.
    """
    count = 0
    for tile in tiles_of(nodes.size, since):
        replace_file(folder / tile.path, tile_bytes(nodes, tile))
        count += 1
    return count


def write_entries(folder: Path, number: int, entries: Sequence[bytes]) -> None:
    """Write entries ``number`` · 256 and following as one bundle.

    Raises:
        InputError: There are none or more than 256, or one is too long.
        OSError: The folder cannot be written.
    """
    replace_file(folder / Tile(-1, number, len(entries)).path, encode_bundle(entries))


def load_log(folder: Path, size: int, root: bytes) -> MerkleLog:
    """Return the log of a folder after checking that its leaves have this root.

    Raises:
        VerificationError: ``log.tile`` or ``log.root``.
    """
    # All leaves, then one root: a false tile anywhere changes it.
    log = MerkleLog()
    for number in range(-(-size // WIDTH)):
        width = min(WIDTH, size - number * WIDTH)
        log.extend_hashes(_read_hashes(folder, Tile(0, number, width)))
    if log.root() != root:
        raise VerificationError(
            "log.root", f"The tiles in {folder} do not have the checkpoint's root."
        )
    return log


class TileFolder:
    """Hashes of a log's complete subtrees out of its tiles, without reading the whole log.

    A tile is trusted no further than a proof made of it: whoever checks the proof against a
    signed root finds a false tile.

    Args:
        folder: Holds ``tile/``.
        size: Entries of the tree, from a checkpoint.
    """

    def __init__(self, folder: Path, size: int) -> None:
        self._folder, self._size = folder, size
        self._tiles: dict[tuple[int, int], list[bytes]] = {}

    @property
    def size(self) -> int:
        """Number of entries."""
        return self._size

    def node(self, level: int, index: int) -> bytes:
        """Return the hash over entries [index · 2^level, (index + 1) · 2^level).

        Raises:
            InputError: That subtree is not complete.
            VerificationError: ``log.tile``; the file is missing or has another length.
        """
        if not 0 <= index < self._size >> level:
            raise InputError(f"The log has no complete subtree {index} of height {level} yet.")
        # A node inside a tile is folded from the tile's hashes.
        height = level % 8
        first = index << height
        hashes = self._tile(level // 8, first // WIDTH)
        row = hashes[first % WIDTH : first % WIDTH + (1 << height)]
        while len(row) > 1:
            row = [node_hash(row[i], row[i + 1]) for i in range(0, len(row), 2)]
        return row[0]

    def entries(self, number: int) -> list[bytes]:
        """Return entries ``number`` · 256 and following, checked against the leaf hashes.

        Raises:
            VerificationError: ``log.tile``, ``log.bundle`` or ``log.entry``.
        """
        hashes = self._tile(0, number)
        data, width = _read(self._folder, Tile(-1, number, len(hashes)))
        entries = decode_bundle(data, width)[: len(hashes)]
        if [leaf_hash(entry) for entry in entries] != hashes:
            raise VerificationError(
                "log.entry", f"An entry in bundle {number} is not the one whose hash is logged."
            )
        return entries

    def _tile(self, level: int, number: int) -> list[bytes]:
        found = self._tiles.get((level, number))
        if found is None:
            width = min(WIDTH, (self._size >> (8 * level)) - number * WIDTH)
            found = _read_hashes(self._folder, Tile(level, number, width))
            if len(self._tiles) >= _KEPT:
                self._tiles.clear()
            self._tiles[level, number] = found
        return found


def _read_hashes(folder: Path, tile: Tile) -> list[bytes]:
    data, width = _read(folder, tile)
    return split_hashes(data, width)[: tile.width]


def _read(folder: Path, tile: Tile) -> tuple[bytes, int]:
    """Return a tile's content and its width: the full file where the partial one is gone."""
    for candidate in (tile, Tile(tile.level, tile.number)):
        try:
            return (folder / candidate.path).read_bytes(), candidate.width
        except OSError:
            continue
    raise VerificationError(
        "log.tile", f"{folder / tile.path} cannot be read.", "Fetch the log's tiles again."
    )
