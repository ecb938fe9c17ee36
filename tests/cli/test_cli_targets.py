"""Targets of every kind on the command line; a key reaches no file and no screen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ragwitness.text.sample import load_sample
from tests.support.loopback import loopback, reply

pytestmark = pytest.mark.slow

SECRET = "s3nt1nel-value-of-a-key"

_SERVICE = """
[request]
url = "URL/ask"
headers = { X-Api-Key = "{env:MY_KEY}" }
body = '{"question": "{prompt}"}'
[response]
text = "$.answer"
contexts = "$.sources"
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    rows = [{"id": d.id, "text": d.text} for d in load_sample()[:40]]
    for name, part in (("documents", rows[:4]), ("known", rows[4:26])):
        text = "".join(json.dumps(row) + "\n" for row in part)
        (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return tmp_path


def call(folder: Path, *arguments: object, **environment: str) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "ragwitness", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "MY_KEY": SECRET, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def audit(folder: Path, target: str, run: str, *more: object) -> Any:
    known = ("--documents", "documents.jsonl", "--known-out", "known.jsonl")
    return call(
        folder,
        "audit",
        "--yes",
        target,
        *known,
        "--method",
        "rag-mia",
        "--run",
        run,
        "--retries",
        0,
        *more,
    )


def leaks(folder: Path, *outputs: str) -> list[str]:
    found = [str(p) for p in folder.rglob("*") if p.is_file() and SECRET.encode() in p.read_bytes()]
    return found + [text for text in outputs if SECRET in text]


def test_a_key_reaches_no_journal_no_report_and_no_screen(files: Path) -> None:
    good = reply({"answer": f"Yes, {SECRET}.", "sources": [SECRET]})
    bad = reply({"error": f"wrong key {SECRET}"}, 400)
    (files / "service.toml").write_text(_SERVICE)
    # One question of the probe, 22 known documents, and documents that fail but for one.
    with loopback(*[good] * 24, bad) as server:
        (files / "service.toml").write_text(_SERVICE.replace("URL", server.url))
        done = audit(files, "http/service.toml", "run", "--json", "out.json")
        assert done.returncode == 0, done.stderr
        assert any(f"x-api-key: {SECRET}" in head.lower() for head in server.headers)
    kept = (files / "run" / "answers.jsonl").read_bytes()
    assert b"Yes, [key]" in kept
    assert b"wrong key [key]" in kept + b"".join(p.read_bytes() for p in files.rglob("*.jsonl"))
    assert leaks(files, done.stdout, done.stderr) == []
    with loopback(bad) as server:
        (files / "service.toml").write_text(_SERVICE.replace("URL", server.url))
        done = audit(files, "http/service.toml", "run2")
    assert done.returncode == 1
    assert leaks(files, done.stdout, done.stderr) == []


def test_a_run_is_repeated_without_the_system(files: Path) -> None:
    code = "def ask(q):\n    return 'Yes' if len(q) % 2 else 'No'\n"
    (files / "user_rag.py").write_text(code)
    done = audit(files, "python:user_rag:ask", "run", "--json", "live.json")
    assert done.returncode == 0, done.stderr
    (files / "user_rag.py").unlink()
    done = audit(files, "replay/run", "again", "--json", "again.json")
    assert done.returncode == 0, done.stderr
    live, again = (json.loads((files / f"{n}.json").read_text()) for n in ("live", "again"))
    assert again["documents"] == live["documents"]
    assert again["summary"]["target"].startswith("replay/run#")


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("gopher/x", "Known forms:"),
        ("http/none.toml", "none.toml cannot be read"),
        ("python:no_such_module:x", "no_such_module"),
        ("replay/none", "There is no recording"),
        ("openai-api/nobody/m", "NOBODY_BASE_URL"),
        ("hf/gpt2?corpus=x", "takes no options"),
    ],
)
def test_unusable_targets_end_in_one_line(files: Path, target: str, says: str) -> None:
    done = audit(files, target, "run")
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", ["audit", "doctor"])
def test_help_names_every_scheme(verb: str, tmp_path: Path) -> None:
    text = " ".join(call(tmp_path, verb, "--help").stdout.split())
    for scheme in (
        "http/",
        "python:",
        "replay/",
        "openai-api/",
        "hf:",
        "gguf:",
        "lab:",
        "targets.md",
    ):
        assert scheme in text
