"""Files are whole or as they were, and what is wrong with one is said in one line."""

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ragwitness.core import files
from ragwitness.core.errors import InputError, RagwitnessError
from ragwitness.core.files import (
    Appender,
    append_synced,
    at_work,
    only_writer,
    read_file,
    read_object,
    read_rows,
    replace_file,
    write_rows,
)
from ragwitness.core.run_files import names_of


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.json"
    replace_file(path, "one")
    replace_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def test_half_a_surrogate_pair_becomes_an_escape(tmp_path: Path) -> None:
    replace_file(tmp_path / "a", 'a "\ud800"')
    assert json.loads((tmp_path / "a").read_text()[2:]) == "\ud800"


def test_a_mode_lasts_and_a_secret_is_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "a"
    replace_file(path, "x")
    path.chmod(0o640)
    replace_file(path, "y")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    replace_file(path, "z", secret=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    replace_file(tmp_path / "link", "x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "x"


def test_a_device_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    replace_file("/dev/null", "x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    code = "from ragwitness.core.files import replace_file; replace_file('/dev/stdout', 'seen')"
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "seen"


def test_a_new_file_replaces_none(tmp_path: Path) -> None:
    replace_file(tmp_path / "key", "x", secret=True, new=True)
    with pytest.raises(FileExistsError):
        replace_file(tmp_path / "key", "y", new=True)
    assert (tmp_path / "key").read_text() == "x"


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, RagwitnessError), (errno.EACCES, InputError)]
)
def test_a_disk_that_fails_at_any_step_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int, kind: type
) -> None:
    path = tmp_path / "a"
    replace_file(path, "before")

    def fails(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), fails)
    with pytest.raises(kind, match="Cannot write") as caught:
        replace_file(path, "after")
    assert type(caught.value) is kind
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Cannot write"):
        replace_file(tmp_path, "x")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="Cannot write"):
        replace_file(tmp_path / "file" / "below", "x")


def test_lines_are_whole_after_a_crash_and_after_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"n": 1}\n{"n": 2')
    lines = Appender(path, "journal")
    place = lines.append({"n": 3})
    assert path.read_bytes()[place:] == b'{"n":3}\n'
    held, real = path.read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:3]))
    with pytest.raises(RagwitnessError, match="Cannot write the journal"):
        lines.append({"n": 4})
    monkeypatch.undo()
    assert path.read_bytes() == held
    lines.append({"n": 5})
    lines.close()
    assert path.read_bytes() == held + b'{"n":5}\n'


def test_one_process_appends_and_an_ended_one_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    assert not at_work(path)
    code = (
        "import sys; from pathlib import Path; from ragwitness.core.files import Appender;"
        f"a = Appender(Path({str(path)!r}), 'journal'); print('up', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "up\n"
        assert at_work(path)
        with pytest.raises(InputError, match="Another process is at work"):
            Appender(path, "journal")
        other.kill()
    assert not at_work(path)
    Appender(path, "journal").close()


def test_bytes_are_appended_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    append_synced(path, b"one")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RagwitnessError, match="No space left") as caught:
        append_synced(path, b"two", "Ask again.")
    assert caught.value.hint == "Ask again."
    assert path.read_bytes() == b"one"


def test_one_thread_at_a_time_holds_a_lock(tmp_path: Path) -> None:
    inside, most = [0], [0]

    def work() -> None:
        for _ in range(5):
            with only_writer(tmp_path / "lock"):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file"),
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b'{"a": [1, 2', "ends in the middle"),
        (b'{"a": "b', "ends in the middle"),
        (b"{'a': 1}", "is not JSON"),
        (b"[1]", "does not hold a JSON object"),
        (b'{"a": "\xff"}', "is not UTF-8"),
        (b"[" * 100_000, "is not JSON that can be read"),
        (b'{"a": ' + b"9" * 5000 + b"}", "is not JSON that can be read"),
        (b'{"a": 1}' + b" " * 100_000, "more than 100,000 bytes"),
    ],
)
def test_an_object_that_cannot_be_read_is_named_in_one_line(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "a.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=said) as caught:
        read_object(path, "Make it again.", most=100_000)
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint == "Make it again."


def test_a_folder_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_file(tmp_path)


def test_a_secret_that_others_can_open_is_refused(tmp_path: Path) -> None:
    replace_file(tmp_path / "a", "{}")
    (tmp_path / "a").chmod(0o644)
    with pytest.raises(InputError, match="is secret") as caught:
        read_object(tmp_path / "a", secret=True)
    assert "chmod 600" in caught.value.hint


def test_rows_are_read_as_written_and_a_torn_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"text": "a\u2028b"}, {"text": "c"}]
    write_rows(path, rows)
    assert read_rows(path) == rows
    path.write_text(path.read_text() + '{"text": "d')
    with pytest.raises(InputError, match="line 3, ends in the middle"):
        read_rows(path)
    path.write_text("[]\n")
    with pytest.raises(InputError, match="line 1, does not hold a JSON object"):
        read_rows(path)


def test_a_run_owns_its_files_and_no_others() -> None:
    assert "made.jsonl" in names_of()
    assert "made.jsonl" not in names_of("audit")
    assert "result.json" in names_of("leak")
    assert "mine.json" not in names_of()


def test_no_other_module_writes_files_by_hand() -> None:
    """The opponent: a second atomic writer, a second lock, a second appender."""
    by_hand = ("os.replace(", "os.fsync", "fcntl", "mkstemp", "NamedTemporaryFile", ".write_text(")
    source = Path(files.__file__).parents[1]
    for path in source.rglob("*.py"):
        if path != Path(files.__file__):
            text = path.read_text(encoding="utf-8").replace("formatter.write_text(", "")  # help
            found = [word for word in by_hand if word in text]
            assert not found, f"{path.relative_to(source)}: {found}"
