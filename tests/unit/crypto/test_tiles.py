"""Tiles: the specification's examples, a folder that proves, and files that were changed."""

import random
import shutil

import pytest

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.entries import framed, read_all_entries
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.tiles import (
    Tile,
    TileFolder,
    load_log,
    tile_bytes,
    tiles_of,
    tiles_reach,
    write_tiles,
)


@pytest.fixture(scope="module")
def log():
    found = MerkleLog()
    found.extend(f"entry {i}".encode() for i in range(70_000))
    return found


def test_paths_are_those_of_the_specification():
    assert Tile(0, 1234067).path == "tile/0/x001/x234/067"
    assert Tile(0, 0, 17).path == "tile/0/000.p/17"
    assert Tile(-1, 5).path == "tile/entries/005"
    assert Tile(3, 1000).path == "tile/3/x001/000"


def test_the_tiles_of_70000_entries_are_those_of_the_specification(log):
    tiles = list(tiles_of(70_000))
    assert sum(t.level == 0 and t.width == 256 for t in tiles) == 273
    assert [t.width for t in tiles if t.width < 256] == [112, 17, 1]
    assert [t for t in tiles if t.level == 1] == [Tile(1, 0), Tile(1, 1, 17)]
    assert list(tiles_of(256)) == [Tile(0, 0), Tile(1, 0, 1)]
    assert list(tiles_of(0)) == []
    assert len(tile_bytes(log, Tile(1, 1, 17))) == 17 * 32


def test_what_is_new_since_an_earlier_size():
    for before, now in ((0, 1), (255, 256), (256, 257), (300, 300), (511, 70_000)):
        old, new = set(tiles_of(before)), set(tiles_of(now))
        assert set(tiles_of(now, before)) == {t for t in new if t not in old}


@pytest.mark.slow
def test_a_folder_of_tiles_proves_what_the_log_proves(log, tmp_path):
    write_tiles(tmp_path, log, 0, lambda start, stop: [b""] * (stop - start))
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) == len(list(tiles_of(70_000))) + 274
    folder = TileFolder(tmp_path, 70_000)
    assert folder.root() == log.root()
    rng = random.Random(4)
    for _ in range(20):
        index, first = rng.randrange(70_000), rng.randint(1, 70_000)
        assert folder.inclusion(index) == log.inclusion(index)
        assert folder.consistency(first) == log.consistency(first)
    with pytest.raises(InputError):
        folder.node(0, 70_000)


def test_a_log_is_loaded_again_and_grows_on(tmp_path):
    log, entries = MerkleLog(), [f"entry {i}".encode() for i in range(700)]
    log.extend(entries[:300])
    write_tiles(tmp_path, log, 0, _bundles(entries))
    log.extend(entries[300:])
    write_tiles(tmp_path, log, 300, _bundles(entries))
    for size in (300, 700):  # an earlier size: its partial tile is gone, the full one is there
        again = load_log(tmp_path, size, log.root(size))
        assert again.size == size
        assert TileFolder(tmp_path, size).root() == log.root(size)
    again.extend([b"more"])
    log.extend([b"more"])
    assert again.root() == log.root()


def _bundles(entries):
    return lambda start, stop: entries[start:stop]


def test_every_published_size_is_read_and_a_partial_tile_goes_when_the_full_one_is_there(tmp_path):
    log, entries, sizes = MerkleLog(), [f"entry {i}".encode() for i in range(530)], []
    for size in (1, 7, 255, 256, 257, 300, 511, 530):
        log.extend(entries[log.size : size])
        write_tiles(tmp_path, log, sizes[-1] if sizes else 0, _bundles(entries))
        sizes.append(size)
        assert tiles_reach(tmp_path, size)
        for earlier in sizes:  # every checkpoint that was published is served for good
            folder = TileFolder(tmp_path, earlier)
            assert folder.root() == log.root(earlier)
            held = [one for n in range(-(-earlier // 256)) for one in folder.entries(n)]
            assert held == entries[:earlier]
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {
        *("tile/0/000", "tile/0/001", "tile/0/002.p/18"),
        *("tile/entries/000", "tile/entries/001", "tile/entries/002.p/18"),
        *("tile/1/000.p/1", "tile/1/000.p/2"),  # its full tile is far away
    }


def test_tiles_that_a_crash_left_without_entries_are_written_again(tmp_path):
    log, entries = MerkleLog(), [f"entry {i}".encode() for i in range(300)]
    log.extend(entries)
    assert tiles_reach(tmp_path, 0)
    write_tiles(tmp_path, log, 0, _bundles(entries))
    shutil.rmtree(tmp_path / "tile" / "entries")  # killed before the bundles
    assert not tiles_reach(tmp_path, 300)
    write_tiles(tmp_path, log, 0, _bundles(entries))
    assert tiles_reach(tmp_path, 300)
    assert tiles_reach(tmp_path, 256)
    assert TileFolder(tmp_path, 300).entries(1) == entries[256:]


def test_a_changed_file_is_found(tmp_path):
    log = MerkleLog()
    entries = [f"entry {i}".encode() for i in range(300)]
    log.extend(entries)
    write_tiles(tmp_path, log, 0, _bundles(entries))
    root = log.root()
    cases = [
        ("tile/0/000", lambda data: bytes([data[0] ^ 1]) + data[1:], "log.root"),
        ("tile/0/000", lambda data: data[:-1], "log.tile"),
        ("tile/0/001.p/44", lambda data: data + bytes(32), "log.tile"),
        ("tile/0/001.p/44", lambda data: data[:-32], "log.tile"),  # of another width
        ("tile/0/000", lambda data: data * 1000, "log.tile"),  # and not read to its end
    ]
    for name, change, check in cases:
        path = tmp_path / name
        good = path.read_bytes()
        path.write_bytes(change(good))
        with pytest.raises(VerificationError) as found:
            load_log(tmp_path, 300, root)
        assert found.value.check == check
        path.write_bytes(good)
    (tmp_path / "tile/0/000").unlink()
    with pytest.raises(VerificationError) as found:
        load_log(tmp_path, 300, root)
    assert found.value.check == "log.tile"
    bundle = tmp_path / "tile/entries/001.p/44"
    bundle.write_bytes(bundle.read_bytes().replace(b"entry 299", b"entry 999"))
    with pytest.raises(VerificationError) as found:
        TileFolder(tmp_path, 300).entries(1)
    assert found.value.check == "log.entry"


def test_bundles_hold_exactly_their_entries(tmp_path):
    entries = [b"", b"a" * 65_535, b"bc"]
    data = b"".join(map(framed, entries))
    assert data[:4] == b"\x00\x00\xff\xff"
    assert read_all_entries(data, "log.bundle") == entries
    log = MerkleLog(entries)
    write_tiles(tmp_path, log, 0, _bundles(entries))
    path = tmp_path / "tile/entries/000.p/3"
    short = b"".join(map(framed, entries[:2]))
    for wrong in (short, data + b"\x00\x00", data + b"\x00", data[:-1], b"\x00", b""):
        path.write_bytes(wrong)
        with pytest.raises(VerificationError) as found:
            TileFolder(tmp_path, 3).entries(0)
        assert found.value.check == "log.bundle"
    with pytest.raises(InputError):
        framed(b"a" * 65_536)
