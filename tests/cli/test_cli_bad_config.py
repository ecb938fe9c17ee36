"""What cannot be used is named in one line with the next step, and nothing paid for is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ragwitness.text.sample import load_sample
from tests.support.loopback import loopback, reply
from tests.support.rough import rough

_SECRET = "sk-s3ntinelvalue1"
_KNOWN = 'target = "http://127.0.0.1:9/v1"\n'


@pytest.mark.parametrize(
    ("content", "says", "hint"),
    [
        ('known_outt = "x"', "unknown key 'known_outt'", "Did you mean 'known-out'?"),
        ("max_token = 5", "unknown key 'max_token'", "Did you mean 'max-tokens'?"),
        ("colour = 1", "unknown key 'colour'", "Known: target, documents,"),
        ("config = 1", "unknown key 'config'", "Known:"),
        ('"a\\u001b[2Jb" = 1', r"unknown key 'a\x1b[2Jb'", "Known:"),
        ('known-out = "x"\nknown_out = "y"', "'known-out' is there twice", "Leave one"),
        ('k = "four"', 'k = "four" cannot be used: a whole number is wanted', "docs/config.md"),
        ("k = true", "k = true cannot be used: a whole number", "docs/config.md"),
        ('alpha = "0.05"', "a number is wanted", "docs/config.md"),
        ("documents = 3", "documents = 3 cannot be used: a text in quotes", "docs/config.md"),
        ("documents = 2026-01-01", "a text in quotes is wanted", "docs/config.md"),
        ("run = [1]", "run = [1] cannot be used: a path in quotes", "docs/config.md"),
        ('paragraphs = "yes"', "true or false is wanted", "docs/config.md"),
        ('fail-on = "in"', "a list of texts in quotes is wanted", "docs/config.md"),
        ("set = 1", "a table [set] is wanted", "docs/config.md"),
        ("[set]\nmode = [1]", "set.mode = [1] cannot be used", "docs/config.md"),
        ("a = 1\nb = = 2", "is no TOML: Invalid value (at line 2", "docs/config.md"),
        (b'a = "b"\n# \xff', "is not UTF-8 (at line 2)", "Save it as UTF-8"),
        (f'api_key = "{_SECRET}"', "'api_key' looks like a key", 'key-env = "MY_KEY"'),
        (f'Authorization = "Bearer {_SECRET}"', "looks like a key", 'key-env = "MY_KEY"'),
        (f'key-env = ["{_SECRET}"]', "key-env cannot be used", "docs/config.md"),
        (f'{_KNOWN}documents = "x"\nkey-env = "{_SECRET}"', "the NAME of an environment", "MY_KEY"),
    ],
)  # fmt: skip
def test_an_unusable_file_is_named_with_its_key(command, tmp_path, content, says, hint) -> None:
    file = tmp_path / "run.toml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    code, text = command("audit", "--config", file)
    assert code == 2
    assert says in text
    assert hint in text
    assert _SECRET not in text
    assert text.count("\n") == 2


def test_a_value_that_its_option_refuses_is_named(command, tmp_path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('corpus = "x"\ncalibration = "many"\n')
    code, text = command("evaluate", "--config", file)
    assert code == 2
    assert f'{file}: calibration = "many" cannot be used' in text
    # The same on the command line is not the file's fault.
    file.write_text('corpus = "x"\ncalibration = 5\n')
    code, text = command("evaluate", "--config", file, "--calibration", "none")
    assert code == 2
    assert "run.toml" not in text


@pytest.mark.parametrize("verb", [("audit",), ("lab", "serve"), ("report",)])
def test_a_file_that_is_not_there_is_named(command, tmp_path, verb) -> None:
    for name, why in (("none.toml", "No such file"), (".", "Is a directory")):
        code, text = command(*verb, "--config", tmp_path / name)
        assert code == 2
        assert str(tmp_path / name) in text
        assert why in text


def test_help_is_shown_beside_a_file_that_cannot_be_used(command, tmp_path) -> None:
    code, text = command("audit", "--config", tmp_path / "none.toml", "--help")
    assert code == 0
    assert "--config" in text


def test_a_key_in_place_of_its_variable_is_not_repeated(command, tmp_path) -> None:
    (tmp_path / "d.txt").write_text(load_sample()[0].text)
    file = tmp_path / "run.toml"
    file.write_text(f'{_KNOWN}documents = "d.txt"\nrun = "run"\nkey-env = "{_SECRET}"\n')
    code, text = command("audit", "--config", file)
    assert code == 2
    assert "NAME of an environment variable" in text
    assert _SECRET not in text


@pytest.mark.slow
def test_broken_rows_and_repeated_ids_are_named_by_line_and_left_out(command, tmp_path) -> None:
    first, second = (json.dumps({"id": d.id, "text": d.text}) for d in load_sample()[:2])
    (tmp_path / "d.jsonl").write_text(f"{first}\n{{broken\n{second}\n{first}\n")
    code, text = command("audit", "http://127.0.0.1:9/v1", "--documents", tmp_path / "d.jsonl",
                         "--run", tmp_path / "run", "--retries", 0)  # fmt: skip
    assert code == 1
    assert "d.jsonl:2: " in text
    assert f"d.jsonl:4: repeats the id '{load_sample()[0].id}' of" in text
    assert "127.0.0.1:9" in text  # the others would have been asked about


def test_a_wrong_key_is_one_line_with_the_next_step(command, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MY_KEY", _SECRET)
    (tmp_path / "d.txt").write_text(load_sample()[0].text)
    wrong = reply({"error": {"message": f"Incorrect API key provided: {_SECRET}"}}, 401)
    with loopback(wrong) as server:
        code, text = command("audit", "--yes", f"{server.url}#m", "--documents", tmp_path / "d.txt",
                             "--run", tmp_path / "run", "--key-env", "MY_KEY")  # fmt: skip
    assert code == 1
    assert "401" in text
    assert "next: " in text
    assert "MY_KEY" in text
    assert _SECRET not in text
    # Asked with fewer wishes, in case one of them was refused; no request is repeated.
    assert len(server.requests) <= 3


def _limited(size: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command where no file may grow beyond some bytes: what a full disk does."""
    code = (
        "from ragwitness.cli.main import run; from tests.support.full_disk import full_disk\n"
        f"with full_disk({size}): run()"
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def _scores(run: Path) -> list[tuple[object, ...]]:
    rows = json.loads((run / "result.json").read_bytes())["documents"]
    return [
        (row["id"], row["score"], row["verdict"], row["p_value"], row["reason"]) for row in rows
    ]


@pytest.mark.slow
def test_a_full_disk_and_a_line_cut_short_lose_no_other_answer(command, tmp_path) -> None:
    for name, part in (("d", load_sample()[:3]), ("k", load_sample()[3:12])):
        (tmp_path / f"{name}.txt").write_text("\n\n".join(d.text for d in part))
    run = tmp_path / "run"
    with rough() as server:
        files = ("--documents", tmp_path / "d.txt", "--known-out", tmp_path / "k.txt")
        method = ("--paragraphs", "--method", "rag-mia", "--run", run)
        line = ("audit", "--yes", f"{server.url}#m", *files, *method)
        full = _limited(1500, *line)
        assert full.returncode == 1
        assert "Cannot write" in full.stderr
        assert full.stderr.count("\n") <= 2
        assert "next: " in full.stderr
        assert "Traceback" not in full.stderr
        before = len(server.prompts)
        code, text = command(*line)
        assert code == 0, text
        again = set(server.prompts[:before]) & set(server.prompts[before:])
        assert 1 < before < 13
        assert len(again) <= 4  # those under way when the disk was full
        scores = _scores(run)
        journal = run / "answers.jsonl"
        journal.write_bytes(journal.read_bytes()[:-20])
        before = len(server.prompts)
        code, text = command(*line)
        assert code == 0, text
        assert len(server.prompts) <= before + 1  # that one at most
        assert _scores(run) == scores
