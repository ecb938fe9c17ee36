"""Files of lines once they are complete: smaller, read all the same, and never lost."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ragwitness.core import files
from ragwitness.core.errors import RagwitnessError
from ragwitness.core.files import Appender, at_hand, blocks, lines_of, open_lines, pack, packed

LINES = [b'{"n":%d,"text":"%s"}\n' % (n, b"word " * 20) for n in range(20_000)]
WHOLE = b"".join(LINES)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "answers.jsonl"
    found.write_bytes(WHOLE)
    return found


def test_a_packed_file_reads_the_same_and_any_gunzip_opens_it(path: Path) -> None:
    pack(path)
    assert [one.name for one in path.parent.iterdir() if one.name[0] != "."] == [packed(path).name]
    assert packed(path).stat().st_size < len(WHOLE) / 10
    assert gzip.decompress(packed(path).read_bytes()) == WHOLE
    assert list(lines_of(path)) == LINES
    with open_lines(path) as file:
        file.seek(len(LINES[0]))
        assert file.readline() == LINES[1]
    for place, _, data in list(blocks(path)):
        assert next(blocks(path, place))[2] == data


def test_blocks_of_a_plain_file_are_whole_lines(path: Path) -> None:
    found = list(blocks(path))
    assert b"".join(data for _, _, data in found) == WHOLE
    assert all(data.endswith(b"\n") for _, _, data in found)
    assert [WHOLE[place : place + length] for place, length, _ in found] == [d for *_, d in found]


def test_a_small_file_stays(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(LINES[0])
    pack(tmp_path / "small")
    pack(tmp_path / "missing")
    assert at_hand(tmp_path / "small") == tmp_path / "small"


def test_it_is_unpacked_to_be_appended_to(path: Path) -> None:
    pack(path)
    lines = Appender(path, "journal")
    assert lines.append({"n": 1}) == len(WHOLE)
    lines.close()
    assert path.read_bytes() == WHOLE + b'{"n":1}\n'
    assert not packed(path).exists()


def test_a_file_that_is_written_is_left_alone(path: Path) -> None:
    lines = Appender(path, "journal")
    pack(path)
    lines.close()
    assert path.read_bytes() == WHOLE


def test_both_forms_after_a_kill_are_one_file(path: Path) -> None:
    pack(path)
    path.write_bytes(WHOLE)  # killed before the plain one went
    assert list(lines_of(path)) == LINES
    Appender(path, "journal").close()
    assert path.read_bytes() == WHOLE
    assert not packed(path).exists()


def test_what_an_earlier_version_began_anew_is_added(path: Path) -> None:
    pack(path)
    path.write_bytes(b'{"n":"new"}\n')
    Appender(path, "journal").close()
    assert path.read_bytes() == WHOLE + b'{"n":"new"}\n'


@pytest.mark.parametrize("last", ["whole", "cut"])
def test_a_line_cut_short_is_kept_as_it_is(path: Path, last: str) -> None:
    whole = WHOLE if last == "whole" else WHOLE + b'{"n":'
    path.write_bytes(whole)
    pack(path)
    assert b"".join(lines_of(path)) == whole


@pytest.mark.parametrize("harm", [lambda data: data[:-9], lambda data: data[:500] + data[600:]])
def test_a_damaged_file_is_an_error_and_not_fewer_lines(path: Path, harm) -> None:
    pack(path)
    packed(path).write_bytes(harm(packed(path).read_bytes()))
    with pytest.raises(OSError, match="compressed file"):
        list(lines_of(path))
    with pytest.raises(RagwitnessError):
        Appender(path, "journal")
    assert packed(path).exists()


def test_what_does_not_come_back_is_not_packed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = gzip.compress
    monkeypatch.setattr(files.gzip, "compress", lambda data, *a, **k: right(data[1:]))
    with pytest.raises(RagwitnessError, match="does not come back"):
        pack(path)
    assert path.read_bytes() == WHOLE
    assert not packed(path).exists()


@pytest.mark.parametrize("call", ["replace", "unlink"])
def test_killed_at_any_step_leaves_a_file_that_opens(path: Path, call: str) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; from ragwitness.core.files import pack\n"
        f"Path.{call} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "pack(Path(sys.argv[1]))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert list(lines_of(path)) == LINES
    Appender(path, "journal").close()
    assert path.read_bytes() == WHOLE
    assert os.listdir(path.parent)
