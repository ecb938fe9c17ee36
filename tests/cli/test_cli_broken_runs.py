"""Full disks, closed folders, two at work and broken files: one line, a next step, nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ragwitness.core.run_files import ANSWERS, RESULT
from ragwitness.report.result_registry import open_result
from ragwitness.web.pages import run_page
from ragwitness.web.runs import find_runs
from tests.golden import answering, tasks
from tests.golden.tasks import INPUTS, STORED, TASKS
from tests.support.full_disk import full_disk
from tests.support.markup import check

pytestmark = pytest.mark.slow

_KINDS = {
    open_result(folder)[0].name: folder
    for folder in sorted({path.parent for path in (STORED / "runs").rglob(RESULT)}, reverse=True)
}
"""A stored run of each kind that has a result."""
_ASKING = ("audit", "leak", "synthesize", "compare", "evaluate", "canary")


@pytest.fixture(scope="module")
def _plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan that no look was taken of: plans of earlier versions are refused."""
    plan = tmp_path_factory.mktemp("canaries") / "plan"
    few = ("--candidates", 20, "--probes", 2)
    tasks.done("canary", "draw", INPUTS / "examples.jsonl", "-o", plan, *few)
    tasks.done("canary", "plant", plan)
    return plan


@pytest.fixture(autouse=True)
def _inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _plan: Path) -> None:
    shutil.copytree(INPUTS, tmp_path, dirs_exist_ok=True)
    shutil.copytree(_plan, tmp_path / "plan")
    monkeypatch.chdir(tmp_path)


def _told(text: str) -> None:
    """One line says what happened, the next what to do."""
    lines = text.splitlines()
    (place,) = [i for i, line in enumerate(lines) if line.startswith("error: ")]
    assert [line[:8] for line in lines[place + 1 :]] == ["  next: "]


def _files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("name", _ASKING)
def test_a_full_disk_ends_a_run_in_one_line_and_the_same_command_resumes(name: str) -> None:
    given = _files(Path())
    with full_disk(900):
        code, text = tasks.call(*TASKS[name])
    assert code == 1, text
    assert "Cannot write" in text
    _told(text)
    assert {path: data for path, data in _files(Path()).items() if path in given} == given
    tasks.done(*TASKS[name])


@pytest.mark.parametrize("kind", _KINDS)
def test_a_full_disk_or_device_keeps_the_result_that_is_reported(kind: str) -> None:
    run = Path(shutil.copytree(_KINDS[kind], "kept"))
    before = _files(run)
    with full_disk(0):
        code, text = tasks.call("report", run)
    assert code == 1
    _told(text)
    assert _files(run) == before
    for form in ("json", "junit"):
        code, text = tasks.call("report", run, f"--{form}", "/dev/full")
        assert code == 1
        assert "/dev/full" in text
        _told(text)
    assert (run / RESULT).read_bytes() == before[RESULT]


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="needs a folder closed even to root")
@pytest.mark.parametrize("name", _ASKING)
def test_a_closed_folder_is_named_before_anything_is_sent(name: str) -> None:
    asked = len(answering.PROMPTS)
    code, text = tasks.call(*TASKS[name], "--run", "/sys/kernel/ragwitness-run")
    assert code == 2, text
    assert "/sys/kernel/ragwitness-run" in text
    _told(text)
    assert len(answering.PROMPTS) == asked


def test_the_second_of_two_processes_in_one_folder_is_refused_and_nothing_is_lost() -> None:
    line = [*map(str, TASKS["audit"]), "--run", "run"]
    code = "from ragwitness.cli.main import run; run()"
    root = str(Path(__file__).parents[2])  # the target is a module of the tests
    environment = os.environ | {answering.SLOWLY: "0.6", "PYTHONPATH": root}
    with subprocess.Popen(
        [sys.executable, "-c", code, *line], env=environment, stdout=subprocess.PIPE
    ) as first:
        end = time.monotonic() + 60
        while not Path("run", ANSWERS).exists() and time.monotonic() < end:
            time.sleep(0.02)
        refused, text = tasks.call(*line)
        first.communicate(timeout=120)
    assert refused == 2, text
    assert "Another process is at work in run" in text
    _told(text)
    assert first.returncode == 0
    whole, stored = (
        [{key: row[key] for key in ("id", "verdict", "p_value", "score")} for row in rows]
        for rows in (
            tasks.same(tasks.result_of(run))["documents"] for run in (Path("run"), _KINDS["audit"])
        )
    )
    assert whole == stored


def _broken(data: bytes, how: str) -> bytes:
    whole = json.loads(data)
    forms = {
        "cut": data[: len(data) // 2],
        "empty": b"",
        "of a version to come": json.dumps({**whole, "version": 99}).encode(),
        "of an unknown kind": json.dumps({**whole, "kind": "poem"}).encode(),
        "a list": b"[]",
    }
    return forms[how]


_HOW = ["cut", "empty", "of a version to come", "of an unknown kind", "a list"]


@pytest.mark.parametrize("how", _HOW)
@pytest.mark.parametrize("kind", _KINDS)
def test_a_broken_result_is_refused_by_report_and_named_by_its_page(kind: str, how: str) -> None:
    result = open_result(_KINDS[kind])[1]
    stored = json.dumps(open_result(_KINDS[kind])[0].stored(result)).encode()
    Path("kept").mkdir()
    Path("kept", RESULT).write_bytes(_broken(stored, how))
    before = _files(Path("kept"))
    code, text = tasks.call("report", "kept", "--json", "new.json")
    assert code == 2
    assert RESULT in text
    _told(text)
    (run,) = find_runs([Path("kept")])
    assert run.problem
    check(run_page(run))
    assert _files(Path("kept")) == before
    assert not Path("new.json").exists()


@pytest.mark.parametrize("file", [ANSWERS, "finished.jsonl", "spent.jsonl"])
@pytest.mark.parametrize("how", ["cut", "empty", "other"])
def test_an_audit_resumes_over_broken_files_or_names_them(file: str, how: str) -> None:
    tasks.done(*TASKS["audit"], "--run", "run")
    path = Path("run", file)
    if not path.exists():
        pytest.skip("this task writes no such file")
    before = tasks.same(tasks.result_of(Path("run")))
    data = path.read_bytes()
    changed = {"cut": data[:-9], "empty": b"", "other": b'{"another": "form"}\n' + data}[how]
    path.write_bytes(changed)
    asked = len(answering.PROMPTS)
    code, text = tasks.call(*TASKS["audit"], "--run", "run")
    if code:
        assert code == 2
        assert file in text
        _told(text)
        assert path.read_bytes() == changed
        assert len(answering.PROMPTS) == asked
    else:
        assert tasks.same(tasks.result_of(Path("run")))["documents"] == before["documents"]
