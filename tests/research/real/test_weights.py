"""Weights in parts: joined they are what was cut, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.real.weights import PART_BYTES, join, split


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    (tmp_path / "m.gguf").write_bytes(bytes(range(256)) * 10)
    made = split(tmp_path / "m.gguf", tmp_path / "parts", size=1000)
    assert [one.name for one in made] == [
        "m.gguf.000", "m.gguf.001", "m.gguf.002", "m.gguf.sha256",
    ]  # fmt: skip
    assert max(one.stat().st_size for one in made) == 1000
    return tmp_path / "parts" / "m.gguf"


def test_parts_joined_are_the_file(parts: Path, tmp_path: Path) -> None:
    join(parts, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m.gguf").read_bytes()
    assert PART_BYTES <= 60_000_000


def test_a_missing_part_is_named(parts: Path, tmp_path: Path) -> None:
    parts.with_name("m.gguf.001").unlink()
    with pytest.raises(SystemExit, match=r"1 of 3 parts are missing: m\.gguf\.001"):
        join(parts, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_a_part_that_was_cut_short_on_the_way_is_refused(parts: Path, tmp_path: Path) -> None:
    parts.with_name("m.gguf.001").write_bytes(b"short")
    with pytest.raises(SystemExit, match="another hash"):
        join(parts, tmp_path / "again")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["m.gguf", "parts"]
