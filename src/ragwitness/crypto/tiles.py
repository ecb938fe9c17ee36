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

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.core.files import replace_file
from ragwitness.crypto.hashing import HASH_BYTES, leaf_hash, node_hash
from ragwitness.crypto.merkle import MerkleLog, Nodes

WIDTH = 256
"""Hashes in a full tile."""

LENGTH_BYTES = 2
"""What stands before each entry: its length."""

MAX_ENTRY = (1 << 8 * LENGTH_BYTES) - 1
"""Longest entry, in bytes, that a bundle can hold."""

_HEIGHT = 8


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


# A prefix of tiles: written beside a growing log, read to prove or to check it.

_KEPT = 1024

Source = Callable[[str, int], bytes]
"""Reads a file under the log's prefix: its first bytes, as many as are asked for. A file that is
not there is an :class:`OSError`."""


def write_tiles(
    folder: Path,
    nodes: Nodes,
    since: int = 0,
    entries: Callable[[int, int], Sequence[bytes]] | None = None,
) -> int:
    """Write the tiles, and the bundles of entries, that are new since the log had ``since``.

    A file appears whole or not at all. A partial tile stays until the full one is there, since a
    checkpoint that was handed out may need it, and is then removed: whoever asks for it in vain
    asks for the full one (C2SP tlog-tiles).

    Args:
        folder: The log's prefix.
        nodes: The log's hashes.
        since: How many entries :func:`tiles_reach` says are there.
        entries: Returns those from one index to before another; without it no bundle is written.

    Returns:
        Number of files written.

    Raises:
        InputError: An entry is longer than a bundle allows.
        OSError: The folder cannot be written.
    """
    count, size = 0, nodes.size
    for tile in tiles_of(size, since):
        _write(folder, tile, tile_bytes(nodes, tile))
        count += 1
    # Bundles come last: the last of them says that all is there (tiles_reach).
    if entries is None or since == size:
        return count
    for number in range(since // WIDTH, -(-size // WIDTH)):
        held = entries(number * WIDTH, min(size, (number + 1) * WIDTH))
        _write(folder, Tile(-1, number, len(held)), encode_bundle(held))
        count += 1
    return count


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
    if log.root() != root:
        raise VerificationError("log.root", "The log's tiles do not have the checkpoint's root.")
    return log


class TileFolder:
    """Hashes of a log's complete subtrees out of its tiles, without reading the whole log.

    A tile is trusted no further than a proof made of it: whoever checks the proof against a
    signed root finds a false tile.

    Args:
        prefix: Folder that holds ``tile/``, or what reads files of the log elsewhere.
        size: Entries of the tree, from a checkpoint.
    """

    def __init__(self, prefix: Path | Source, size: int) -> None:
        self._prefix, self.size = prefix, size
        self._tiles: dict[tuple[int, int], list[bytes]] = {}

    def node(self, level: int, index: int) -> bytes:
        """Return the hash over entries [index · 2^level, (index + 1) · 2^level).

        Raises:
            InputError: That subtree is not complete.
            VerificationError: ``log.tile``; the file is missing or has another length.
        """
        if not 0 <= index < self.size >> level:
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
        data, width = _read(self._prefix, Tile(-1, number, len(hashes)))
        entries = decode_bundle(data, width)[: len(hashes)]
        if [leaf_hash(entry) for entry in entries] != hashes:
            raise VerificationError(
                "log.entry", f"An entry in bundle {number} is not the one whose hash is logged."
            )
        return entries

    def _tile(self, level: int, number: int) -> list[bytes]:
        found = self._tiles.get((level, number))
        if found is None:
            width = min(WIDTH, (self.size >> (8 * level)) - number * WIDTH)
            found = _read_hashes(self._prefix, Tile(level, number, width))
            if len(self._tiles) >= _KEPT:
                self._tiles.clear()
            self._tiles[level, number] = found
        return found


def _read_hashes(prefix: Path | Source, tile: Tile) -> list[bytes]:
    data, width = _read(prefix, tile)
    # So many hashes, and nothing behind them.
    if len(data) != width * HASH_BYTES:
        raise VerificationError("log.tile", f"A tile of {width} hashes has {len(data):,} bytes.")
    return [data[HASH_BYTES * i : HASH_BYTES * (i + 1)] for i in range(tile.width)]


def _read(prefix: Path | Source, tile: Tile) -> tuple[bytes, int]:
    """Return a tile's content and its width: the full file where the partial one is gone."""
    each = HASH_BYTES if tile.level >= 0 else LENGTH_BYTES + MAX_ENTRY
    for found in dict.fromkeys((tile, Tile(tile.level, tile.number))):
        most = found.width * each + 1  # one byte more shows that a file is too long
        try:
            if callable(prefix):
                return prefix(found.path, most), found.width
            with (prefix / found.path).open("rb") as file:
                return file.read(most), found.width
        except OSError:
            continue
    raise VerificationError(
        "log.tile",
        f"The log's {tile.path} cannot be read.",
        "Fetch the log's tiles again; its provider has to publish all that a checkpoint needs.",
    )
