"""The same audit by one process and by Ray: the same bytes; and what may go wrong."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ragwitness.text.sample import load_sample
from tests.support.rough import rough

pytestmark = pytest.mark.slow

Command = Callable[..., tuple[int, str]]

_UNITS = 28


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Options of a small audit, in an empty folder."""
    rows = [json.dumps({"id": d.id, "text": d.text}) for d in load_sample()[:_UNITS]]
    for name, part in (("docs", rows[:6]), ("known", rows[6:])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(part))
    monkeypatch.chdir(tmp_path)
    documents = ["--documents", "docs.jsonl", "--known-out", "known.jsonl"]
    return [*documents, "--method", "rag-mia"]


def _outside(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own."""
    command = [sys.executable, "-m", "ragwitness", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def _verdicts(run: str) -> list[tuple]:
    names = ("id", "verdict", "score", "p_value", "q_value", "queries")
    rows = json.loads(Path(run, "result.json").read_bytes())["documents"]
    return [tuple(row[name] for name in names) for row in rows]


def _same(run: str, other: str) -> None:
    scores = [Path(folder, "scores.jsonl").read_bytes() for folder in (run, other)]
    assert scores[0] == scores[1]
    assert scores[0].count(b"\n") == _UNITS
    assert _verdicts(run) == _verdicts(other)


def test_a_ray_cluster_gives_the_same_bytes(command: Command, files) -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("ray is not installed: pip install 'ragwitness[ray]'")
    with rough() as server:
        target = f"{server.url}#m"
        assert command("audit", "--yes", target, *files, "--run", "one")[0] == 0
        before = len(server.prompts)
        engine = ("--engine", "ray", "--workers", 2, "--run", "many", "--max-queries", 60)
        found = _outside("audit", "--yes", target, *files, *engine)
        assert found.returncode == 0, found.stdout + found.stderr
        assert "Traceback" not in found.stdout + found.stderr
        assert len(server.prompts) == 2 * before
    _same("many", "one")
    spent = json.loads(Path("many", "result.json").read_bytes())["summary"]["spent"]
    assert (spent["queries"], spent["max_queries"]) == (before, 60)


def test_without_ray_the_install_line_is_named(command: Command, files, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with rough() as server:
        code, text = command("audit", "--yes", f"{server.url}#m", *files, "--engine", "ray")
        assert (code, len(server.prompts)) == (2, 0)
    assert "pip install 'ragwitness[ray]'" in text


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--engine", "spark"), "There is no engine 'spark'"),
        (("--workers", 0), "--workers is for a Ray cluster"),
        (("--engine", "ray", "--workers", 0), "At least 1 worker"),
    ],
)
def test_an_engine_that_cannot_be_is_one_line(command: Command, files, more, said) -> None:
    with rough() as server:
        code, text = command("audit", "--yes", f"{server.url}#m", *files, *more)
        assert (code, len(server.prompts)) == (2, 0)
    assert said in text
