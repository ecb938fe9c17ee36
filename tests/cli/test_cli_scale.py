"""The same audit by one process, several, shards and Ray: the same bytes; and what may go wrong."""

import importlib.util
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ragwitness.text.sample import load_sample
from tests.support.rough import Rough, rough

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


def _prepared(command: Command, server: Rough, files: list[object], *more: object) -> None:
    code, text = command(
        "audit", "--yes", f"{server.url}#m", *files, "--run", "run", "--prepare", *more
    )
    assert code == 0, text


def test_one_process_and_four_and_shards_give_the_same_bytes(command: Command, files) -> None:
    with rough() as server:
        target = f"{server.url}#m"
        code, text = command("audit", "--yes", target, *files, "--run", "one")
        assert code == 0, text
        before = len(server.prompts)

        _prepared(command, server, files)
        assert len(server.prompts) == before  # preparing sends nothing
        for number in (2, 4, 1, 3):
            code, text = command("work", "run", "--shard", f"{number}/4")
            assert code == 0, text
            assert f"shard {number}/4: 7 units" in text
        # Four shards, one look at what the target can do.
        assert len(server.prompts) == 2 * before
        code, text = command("merge", "run", "--json", "out.json", "--fail-on", "inconclusive:99")
        assert code in (0, 4), text
        _same("run", "one")
        assert json.loads(Path("out.json").read_bytes())["summary"]["spent"]["queries"] == before
        assert "kept from an earlier start" not in Path("out.json").read_text()

        # The spelling of before: all cores in this process, whatever number is asked for.
        engine = ("--engine", "processes", "--workers", 4, "--run", "four")
        found = _outside("audit", "--yes", target, *files, *engine)
        assert found.returncode == 0, found.stdout + found.stderr
        assert len(server.prompts) == 3 * before
        _same("four", "one")


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


def test_a_killed_shard_resumes_and_asks_nothing_again(command: Command, files) -> None:
    with rough(seconds=0.05) as server:
        _prepared(command, server, files, "--concurrency", 1)
        arguments = [sys.executable, "-m", "ragwitness", "work", "run", "--shard", "1/2"]
        with subprocess.Popen(arguments, stdout=subprocess.DEVNULL) as process:
            while len(server.prompts) < 6 and process.poll() is None:
                time.sleep(0.01)
            process.kill()
        code, text = command("merge", "run")
        assert code == 2
        assert "units are not finished, in shards 1/2" in text
        assert "next: Finish them, beginning with: ragwitness run work run --shard 1/2" in text
        for number in (1, 2):
            assert command("work", "run", "--shard", f"{number}/2")[0] == 0
        # At most the answer that was on its way is asked for twice.
        assert len(server.prompts) - len(set(server.prompts)) <= 1
        code, text = command("merge", "run")
        assert code == 0, text
        assert command("audit", "--yes", f"{server.url}#m", *files, "--run", "one")[0] == 0
    _same("run", "one")


def _interruptible() -> None:
    """Hear Ctrl-C even where this test runs in the background, which does not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupted_shard_ends_with_130_and_the_command_that_resumes(
    command: Command, files
) -> None:
    with rough(seconds=0.1) as server:
        _prepared(command, server, files, "--concurrency", 1)
        arguments = [sys.executable, "-m", "ragwitness", "work", "run", "--shard", "1/2"]
        with subprocess.Popen(
            arguments, stdout=subprocess.PIPE, text=True, preexec_fn=_interruptible
        ) as process:
            while len(server.prompts) < 4 and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "resume: ragwitness run work run --shard 1/2" in said


def test_shards_never_pass_a_cap_together(command: Command, files) -> None:
    with rough() as server:
        _prepared(command, server, files, "--max-queries", 18)
        for number in (1, 2, 3, 4):
            assert command("work", "run", "--shard", f"{number}/4")[0] == 0
        assert len(server.prompts) == 18
        code, text = command("merge", "run", "--json", "out.json")
        assert code == 0, text
        spent = json.loads(Path("out.json").read_bytes())["summary"]["spent"]
        assert (spent["queries"], spent["stopped_by"]) == (18, "query")
        _prepared(command, server, files, "--max-queries", 2)
        code, text = command("work", "run", "--shard", "4/4")
        assert code == 1
        assert "Nothing is left of the query cap for shard 4/4" in text
        assert len(server.prompts) == 18


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("work", "nowhere"), "nothing was prepared there"),
        (("merge", "nowhere"), "nothing was prepared there"),
        (("work", "run", "--shard", "5/4"), "There is no shard 5/4"),
        (("work", "run", "--shard", "half"), "'half' is no shard"),
        (("merge", "run"), "No shard has begun"),
    ],
)
def test_what_cannot_be_done_is_one_line(command: Command, files, arguments, said) -> None:
    with rough() as server:
        _prepared(command, server, files)
        code, text = command(*arguments)
        assert (code, len(server.prompts)) == (2, 0)
    assert said in text
    assert "next: " in text


def test_a_changed_manifest_is_refused_by_work_and_merge(command: Command, files) -> None:
    with rough() as server:
        _prepared(command, server, files)
        path = Path("run", "manifest.json")
        path.write_text(path.read_text().replace('"template": 2', '"template": 1'))
        for verb in ("work", "merge"):
            code, text = command(verb, "run")
            assert code == 2
            assert "was changed after it was written" in text
        assert not server.prompts


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--engine", "spark"), "There is no engine 'spark'"),
        (("--engine", "processes", "--workers", 0), "At least 1 worker"),
    ],
)
def test_an_engine_that_cannot_be_is_one_line(command: Command, files, more, said) -> None:
    with rough() as server:
        code, text = command("audit", "--yes", f"{server.url}#m", *files, *more)
        assert (code, len(server.prompts)) == (2, 0)
    assert said in text
