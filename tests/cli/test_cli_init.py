"""A guided first run: it checks, prices, and writes a file that runs as it stands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ragwitness.text.sample import load_sample

pytestmark = pytest.mark.slow


def _write(path: Path, texts: list[str]) -> Path:
    rows = (json.dumps({"id": f"{path.stem}-{n}", "text": text}) for n, text in enumerate(texts))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    texts = [one.text for one in load_sample()[::9]]
    _write(tmp_path / "corpus.jsonl", texts[:20])
    _write(tmp_path / "mine.jsonl", texts[:3])
    _write(tmp_path / "known.jsonl", texts[30:70])
    return tmp_path


_GIVEN = (
    "--target", "lab:corpus.jsonl", "--documents", "mine.jsonl", "--known-out", "known.jsonl",
)  # fmt: skip


def test_it_writes_a_file_that_runs_as_it_stands(command, files: Path) -> None:
    code, said = command("init", *_GIVEN)
    assert code == 0, said
    assert "ragwitness audit --config run.toml --dry-run" in said
    assert "queries" in said
    written = tomllib.loads((files / "run.toml").read_text(encoding="utf-8"))
    assert written == {
        "target": "lab:corpus.jsonl",
        "documents": "mine.jsonl",
        "known-out": "known.jsonl",
        "method": "auto",
        "alpha": 0.05,
    }
    code, said = command("audit", "--config", "run.toml", "--dry-run")
    assert code == 0, said
    assert "Nothing was sent." in said


def test_no_document_known_to_be_outside_is_needed(command, files: Path) -> None:
    code, said = command("init", *_GIVEN[:4])
    assert code == 0, said
    written = tomllib.loads((files / "run.toml").read_text(encoding="utf-8"))
    assert "known-out" not in written
    assert command("audit", "--config", "run.toml", "--dry-run")[0] == 0


def test_paths_hold_from_the_folder_of_the_file(command, files: Path) -> None:
    (files / "runs").mkdir()
    assert command("init", *_GIVEN, "--out", "runs/first.toml", "--method", "rag-mia")[0] == 0
    written = tomllib.loads((files / "runs" / "first.toml").read_text(encoding="utf-8"))
    assert written["target"] == "lab:../corpus.jsonl"
    assert written["documents"] == "../mine.jsonl"
    assert command("audit", "--config", "runs/first.toml", "--dry-run")[0] == 0


def test_what_it_can_hardly_decide_is_said_with_the_price(command, files: Path) -> None:
    _write(files / "few.jsonl", [d.text for d in load_sample()[10:15]])
    given = [*_GIVEN[:4], "--known-out", "few.jsonl"]
    code, said = command("init", *given)
    assert code == 0, said
    assert " ".join(said.split()).count("known-out documents and 3 documents asked about") == 1
    assert "--config run.toml --yes" in said


def test_documents_of_another_kind_are_named(command, files: Path) -> None:
    _write(files / "numbers.jsonl", [" ".join(str(7 * n + i) for i in range(9)) for n in range(40)])
    _write(files / "mine.jsonl", [d.text for d in load_sample()[::9]][:20])
    code, said = command("init", *_GIVEN[:4], "--known-out", "numbers.jsonl")
    assert code == 0, said
    assert "Not exact" in said or "differ" in said
    assert "--config run.toml --yes" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--documents", "mine.jsonl"), "--target is missing"),
        (("--target", "lab:corpus.jsonl"), "--documents is missing"),
        ((*_GIVEN[:5], "mine.jsonl"), "known"),
        ((*_GIVEN[:3], "nowhere.jsonl", *_GIVEN[4:]), "nowhere.jsonl"),
        ((*_GIVEN, "--method", "armour"), "armour"),
    ],
)
def test_what_cannot_be_audited_is_refused_in_one_line(
    command, files: Path, arguments: tuple[object, ...], said: str
) -> None:
    code, told = command("init", *arguments)
    assert code == 2
    assert said in told
    assert not (files / "run.toml").exists()


def test_a_file_that_is_there_is_not_replaced_unasked(command, files: Path) -> None:
    (files / "run.toml").write_text("# mine\n", encoding="utf-8")
    code, said = command("init", *_GIVEN)
    assert (code, "--replace" in said) == (2, True)
    assert (files / "run.toml").read_text(encoding="utf-8") == "# mine\n"
    assert command("init", *_GIVEN, "--replace")[0] == 0


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize("begins", [False, True])
def test_at_a_terminal_it_asks_five_questions(files: Path, begins: bool) -> None:
    import pty

    own, theirs = pty.openpty()
    line = [sys.executable, "-m", "ragwitness", "init"]
    with subprocess.Popen(line, stdin=theirs, stdout=theirs, stderr=theirs, cwd=files) as asked:
        os.close(theirs)
        os.write(
            own, b"lab:corpus.jsonl\nmine.jsonl\nknown.jsonl\n\n" + (b"y\n" if begins else b"n\n")
        )
        said = b""
        while True:
            try:
                part = os.read(own, 4096)
            except OSError:  # the terminal is gone with the process
                break
            if not part:
                break
            said += part
        assert asked.wait(60) == 0, said.decode()
    os.close(own)
    assert (b"in the database" in said) == begins
    assert b"Which system shall be audited?" in said
    assert tomllib.loads((files / "run.toml").read_text())["known-out"] == "known.jsonl"
