"""The log as files that any static server can hand out (C2SP tlog-tiles).

Under one prefix, beside ``checkpoint``: ``tile/<level>/<number>`` holds 256 hashes side by side,
each the root over a full tile below; ``tile/entries/<number>`` the entries, each with its length
before it in two bytes. The last tile of a level may be partial: ``….p/<width>``.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragwitness.core.errors import InputError, VerificationError, require
from ragwitness.core.files import replace_file
from ragwitness.crypto.entries import LENGTH_BYTES, MAX_ENTRY, framed, read_all_entries
from ragwitness.crypto.hashing import HASH_BYTES, leaf_hash, node_hash
from ragwitness.crypto.merkle import LogNodes, MerkleLog

WIDTH = 256
"""Hashes in a full tile."""

_HEIGHT = 8
_CACHED = 1024

Source = Callable[[str, int], bytes]
"""Reads a file under the log's prefix: its first bytes, as many as are asked for. A missing file is
an :class:`OSError`."""


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
        # Groups of three digits, all but the last marked with x.
        digits = f"{self.number:03d}"
        digits = digits.zfill(-(-len(digits) // 3) * 3)
        groups = [f"x{digits[i : i + 3]}" for i in range(0, len(digits), 3)]
        level = "entries" if self.level < 0 else str(self.level)
        partial = "" if self.width == WIDTH else f".p/{self.width}"
        return f"tile/{level}/{'/'.join((*groups[:-1], groups[-1][1:]))}{partial}"


def tiles_of(size: int, since: int = 0) -> Iterator[Tile]:
    """Yield the hash tiles that are new since the log had ``since`` entries.

    Partial tiles are those of ``size``. Entry bundles have the numbers of level 0.
    """
    level = 0
    while hashes := size >> (_HEIGHT * level):
        before = since >> (_HEIGHT * level)
        for number in range(before // WIDTH, hashes // WIDTH):
            yield Tile(level, number)
        if hashes % WIDTH and hashes != before:
            yield Tile(level, hashes // WIDTH, hashes % WIDTH)
        level += 1


def tile_bytes(nodes: LogNodes, tile: Tile) -> bytes:
    """Return a hash tile's content, 32 bytes per hash."""
    height, first = _HEIGHT * tile.level, tile.number * WIDTH
    return b"".join(nodes.node(height, first + i) for i in range(tile.width))


# A prefix of tiles: written beside a growing log, read to prove or to check it.


def write_tiles(
    folder: Path, nodes: LogNodes, since: int, entries: Callable[[int, int], Sequence[bytes]]
) -> None:
    """Write the tiles, and the bundles of entries, that are new since the log had ``since``.

    A file appears complete or not at all. A partial tile stays until the full one is written, since
    a published checkpoint may need it. A client that misses a partial tile asks for the full one
    (C2SP tlog-tiles).

    Args:
        folder: The log's prefix.
        nodes: The log's hashes.
        since: Number of entries that :func:`tiles_reach` confirms.
        entries: Returns those from one index to before another.

    Raises:
        InputError: An entry is longer than a bundle allows.
        OSError: The folder cannot be written.
    """
    size = nodes.size
    for tile in tiles_of(size, since):
        _write(folder, tile, tile_bytes(nodes, tile))
    # Bundles come last: the last of them shows that all is written (tiles_reach).
    for number in range(since // WIDTH, -(-size // WIDTH)) if since < size else ():
        bundle = entries(number * WIDTH, min(size, (number + 1) * WIDTH))
        _write(folder, Tile(-1, number, len(bundle)), b"".join(map(framed, bundle)))


def tiles_reach(folder: Path, size: int) -> bool:
    """Whether :func:`write_tiles` has written all of a log of ``size``, its entries too."""
    number, last = divmod(size - 1, WIDTH)
    tiles = (Tile(-1, number, last + 1), Tile(-1, number))
    return size == 0 or any((folder / tile.path).is_file() for tile in tiles)


def _write(folder: Path, tile: Tile, data: bytes) -> None:
    path = folder / tile.path
    replace_file(path, data)
    if tile.width == WIDTH:
        shutil.rmtree(path.with_name(f"{path.name}.p"), ignore_errors=True)


def load_log(prefix: Path | Source, size: int, root: bytes) -> MerkleLog:
    """Return the log under a prefix after checking that its leaves have this root.

    Raises:
        VerificationError: ``log.tile`` or ``log.root``.
    """
    # All leaves, then one root: a false tile anywhere changes it.
    log = MerkleLog()
    for number in range(-(-size // WIDTH)):
        width = min(WIDTH, size - number * WIDTH)
        log.extend_hashes(_read_hashes(prefix, Tile(0, number, width)))
    mismatch = "The log's tiles do not have the checkpoint's root."
    require(log.root() == root, "log.root", mismatch)
    return log


class TileFolder(LogNodes):
    """Hashes of a log's complete subtrees out of its tiles, without reading the whole log.

    No tile is trusted: a proof made of a false one fails against the signed root.

    Args:
        prefix: Folder that holds ``tile/``, or a function that reads files of the log elsewhere.
        size: Entries of the tree, from a checkpoint.
    """

    def __init__(self, prefix: Path | Source, size: int) -> None:
        self._prefix, self._size = prefix, size
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
        if not 0 <= index < self.size >> level:
            raise InputError(f"The log has no complete subtree {index} of height {level} yet.")
        # A node inside a tile is folded from the tile's hashes.
        tile_level, height = divmod(level, _HEIGHT)
        first = index << height
        hashes = self._tile(tile_level, first // WIDTH)
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
        data, width = _read(self._prefix, Tile(-1, number, len(hashes)))
        entries = read_all_entries(data, "log.bundle")
        exact = f"A file of entries does not hold exactly {width}."
        require(len(entries) == width, "log.bundle", exact)
        mismatch = f"An entry in bundle {number} is not the one whose hash is logged."
        same = list(map(leaf_hash, entries[: len(hashes)])) == hashes
        require(same, "log.entry", mismatch)
        return entries[: len(hashes)]

    def all_entries(self, start: int = 0) -> Iterator[bytes]:
        """Yield the entries from the bundle of ``start`` on, each checked against its leaf hash.

        Raises:
            VerificationError: As :meth:`entries`.
        """
        for number in range(start // WIDTH, -(-self.size // WIDTH)):
            yield from self.entries(number)

    def _tile(self, level: int, number: int) -> list[bytes]:
        hashes = self._tiles.get((level, number))
        if hashes is None:
            width = min(WIDTH, (self.size >> (_HEIGHT * level)) - number * WIDTH)
            hashes = _read_hashes(self._prefix, Tile(level, number, width))
            if len(self._tiles) >= _CACHED:
                self._tiles.clear()
            self._tiles[level, number] = hashes
        return hashes


def _read_hashes(prefix: Path | Source, tile: Tile) -> list[bytes]:
    data, width = _read(prefix, tile)
    exact = f"A tile of {width} hashes has {len(data):,} bytes."
    require(len(data) == width * HASH_BYTES, "log.tile", exact)
    return [data[HASH_BYTES * i : HASH_BYTES * (i + 1)] for i in range(tile.width)]


def _read(prefix: Path | Source, tile: Tile) -> tuple[bytes, int]:
    """Return a tile's content and its width: the full file where the partial one is gone."""
    item_bytes = HASH_BYTES if tile.level >= 0 else LENGTH_BYTES + MAX_ENTRY
    for candidate in dict.fromkeys((tile, Tile(tile.level, tile.number))):
        limit = candidate.width * item_bytes + 1  # one byte more shows that a file is too long
        try:
            if callable(prefix):
                return prefix(candidate.path, limit), candidate.width
            with (prefix / candidate.path).open("rb") as file:
                return file.read(limit), candidate.width
        except OSError:
            continue
    raise VerificationError(
        "log.tile",
        f"The log's {tile.path} cannot be read.",
        "Fetch the log's tiles again; its provider has to publish all that a checkpoint needs.",
    )
