"""The demo, small: what it shows while it works, and that what it says to try next works."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

pytestmark = pytest.mark.slow

_SMALL = """
import ragwitness.cli.demo as demo
from ragwitness.text import sample
whole = sample.load_sample
sample.load_sample = lambda words=None: whole(words)[:40]
demo._AUDITED, demo._KNOWN_OUT, demo._AHEAD = 4, 10, 6
from ragwitness.cli.main import run
run()
"""


def _demo(folder: Path) -> str:
    command = [sys.executable, "-c", _SMALL, "demo"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def said(folder: Path) -> str:
    return _demo(folder)


@pytest.fixture(scope="module")
def commands(said: str) -> dict[str, str]:
    """The commands at the end, by their verb."""
    lines = said[said.index("Try next") :].splitlines()[1:]
    found = [line for line in lines if line and not line.startswith("#")]
    return {line.split("ragwitness ", 1)[1].split()[0]: line for line in found}


def test_no_verdict_is_said_that_was_not_reached(said: str, folder: Path) -> None:
    result = json.loads((folder / "ragwitness-runs" / "demo" / "result.json").read_bytes())
    assert len(result["documents"]) == 8
    # Neither shadow system nor classifier: the ranks are those of the score itself.
    assert result["summary"]["settings"]["features"] == "none: the score itself is ranked"
    assert not [key for key in result["summary"]["settings"] if key.startswith("shadow")]
    tables = said[: said.index("report: ")]
    assert max(map(len, tables.splitlines())) <= 80


def test_it_names_three_commands(commands: dict[str, str]) -> None:
    assert list(commands) == ["view", "leak", "audit"]


@pytest.mark.parametrize(("verb", "shown"), [("leak", "leak"), ("audit", "membership audit")])
def test_a_command_works_as_printed(
    commands: dict[str, str], folder: Path, verb: str, shown: str
) -> None:
    # With so few documents as here, and not with the demo's own, an audit can hardly decide.
    line = commands[verb] + (" --yes" if verb == "audit" else "")
    done = subprocess.run(
        ["/bin/sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert shown in done.stdout


def test_its_pages_are_shown_as_printed(commands: dict[str, str], folder: Path) -> None:
    with subprocess.Popen(
        ["/bin/sh", "-c", f"exec {commands['view']}"], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            address = next(
                word for line in server.stdout for word in line.split() if word.startswith("http")
            )
            with httpx2.Client(timeout=30) as browser:
                browser.get(address)  # the token is exchanged for a cookie
                assert "s-rag" in browser.get(httpx2.URL(address).join("/")).text
        finally:
            server.terminate()


def test_again_it_asks_nothing(said: str, folder: Path) -> None:
    [answers] = (folder / "ragwitness-runs" / "demo").glob("answers.jsonl*")  # packed or not
    before = answers.read_bytes()
    again = _demo(folder)
    assert answers.read_bytes() == before
    assert again[again.index("Ragwitness:") : again.index("\ncost")] in said
