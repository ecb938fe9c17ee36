"""A folder of tiles: written beside a growing log, read to prove or to check it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ragwitness.crypto.hashing import leaf_hash, node_hash
from ragwitness.crypto.log.proofs import Nodes
from ragwitness.crypto.log.tiles import (
    WIDTH,
    Tile,
    decode_bundle,
    encode_bundle,
    split_hashes,
    tile_bytes,
    tiles_of,
)
from ragwitness.crypto.log.tree import MerkleLog
from ragwitness.errors import InputError, VerificationError

__all__ = ["TileFolder", "load_log", "write_entries", "write_tiles"]

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
        _write(folder / tile.path, tile_bytes(nodes, tile))
        count += 1
    return count


def write_entries(folder: Path, number: int, entries: Sequence[bytes]) -> None:
    """Write entries ``number`` · 256 and following as one bundle.

    Raises:
        InputError: There are none or more than 256, or one is too long.
        OSError: The folder cannot be written.
    """
    _write(folder / Tile(-1, number, len(entries)).path, encode_bundle(entries))


def load_log(folder: Path, size: int, root: bytes) -> MerkleLog:
    """Return the log of a folder after checking that its leaves have this root.

    Raises:
        VerificationError: ``log.tile`` or ``log.root``.
    """
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


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())  # before the name: a checkpoint may be signed right after
    os.replace(partial, path)
