"""The reader on several cores: the same bytes as on one, stopped and resumed across."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ragwitness.text.sample import load_sample

pytestmark = pytest.mark.slow

_CLI = [sys.executable, "-m", "ragwitness"]
_KNOWN, _ASKED = 26, 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus, documents half of which it holds, and others known to be outside."""
    at = tmp_path_factory.mktemp("workers")
    short = [(d.id, " ".join(d.text.split()[:30])) for d in load_sample()[::10]]
    rows = [json.dumps({"id": name, "text": text}) + "\n" for name, text in short]
    half = _ASKED // 2
    for name, part in {
        "corpus": rows[:half] + rows[-20:],
        "asked": rows[:_ASKED],
        "known": rows[_ASKED : _ASKED + _KNOWN],
        "whole": rows[:50],
    }.items():
        (at / f"{name}.jsonl").write_text("".join(part))
    return at


def _audit(run: str) -> list[str]:
    files = ["--documents", "asked.jsonl", "--known-out", "known.jsonl"]
    return [
        *_CLI,
        "audit",
        "--yes",
        "lab:corpus.jsonl",
        *files,
        "--method",
        "rag-mia",
        "--run",
        run,
    ]


def _call(command: list[str], folder: Path, workers: object) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | {"RAGWITNESS_WORKERS": str(workers)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def _result(folder: Path, run: str) -> tuple[bytes, object]:
    result = json.loads((folder / run / "result.json").read_bytes())
    for key in ("started", "seconds"):
        result["summary"].pop(key)
    return (folder / run / "scores.jsonl").read_bytes(), result


@pytest.fixture(scope="module")
def one(folder: Path) -> tuple[bytes, object]:
    """What one process finds."""
    _call(_audit("one"), folder, 1)
    return _result(folder, "one")


def test_all_cores_give_the_bytes_of_one(folder: Path, one: tuple[bytes, object]) -> None:
    said = _call(_audit("all"), folder, "all")
    assert _result(folder, "all") == one
    assert (
        f"known to be outside, asked about: all {_KNOWN} documents" in said
    )  # where there is no terminal, in lines


def test_more_workers_than_cores_are_one_line(folder: Path, one: tuple[bytes, object]) -> None:
    said = _call([*_audit("one"), "--workers", "999"], folder, 1)
    assert said.count("999 workers, but the cores that may be used are") == 1


@pytest.mark.parametrize("wrong", ["0", "many"])
def test_no_number_of_workers_is_one_line(folder: Path, wrong: str) -> None:
    done = subprocess.run(
        _audit("none"),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"RAGWITNESS_WORKERS": wrong},
    )
    assert done.returncode == 2
    assert f"At least 1 worker is needed, not '{wrong}'" in done.stderr
    assert not (folder / "none").exists()


def test_ctrl_c_ends_the_processes_and_one_resumes_what_several_began(
    folder: Path, one: tuple[bytes, object]
) -> None:
    with subprocess.Popen(
        _audit("stopped"),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env=os.environ | {"RAGWITNESS_WORKERS": "2"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        finished = folder / "stopped" / "finished.jsonl"
        while process.poll() is None and _rows(finished) < _KNOWN // 2:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)  # to all of them, as a terminal does
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert "resume with the same command and --run stopped" in said
    assert _gone(process.pid)
    before = _rows(finished)
    assert _KNOWN // 2 <= before < _KNOWN + _ASKED
    _call(_audit("stopped"), folder, 1)
    scores, result = _result(folder, "stopped")
    assert scores == one[0]
    assert result["documents"] == one[1]["documents"]  # spent and seconds are those of two starts


def _gone(group: int) -> bool:
    """Whether all processes of a group end within a minute."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def _rows(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_a_parent_that_is_killed_leaves_no_process_behind(folder: Path) -> None:
    with subprocess.Popen(
        _audit("killed"),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ | {"RAGWITNESS_WORKERS": "2"},
    ) as process:
        while process.poll() is None and _rows(folder / "killed" / "finished.jsonl") < _KNOWN // 2:
            time.sleep(0.02)
        process.kill()
        process.wait(60)
    assert _gone(process.pid)


def test_an_evaluation_is_the_same_on_all_cores(folder: Path) -> None:
    found = []
    for workers in (1, "all"):
        run = f"evaluation-{workers}"
        command = [*_CLI, "evaluate", "--corpus", "whole.jsonl", "--run", run, "--limit", "6"]
        command += ["--audits", "rag-mia", "--calibration", "5", "--concurrency", "4"]
        _call(command, folder, workers)
        result = json.loads((folder / run / "result.json").read_bytes())
        result.pop("seconds")
        for audit in result["audits"].values():
            audit["cost"].pop("seconds")
        found.append(result)
    assert found[0] == found[1]
