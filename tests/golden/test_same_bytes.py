"""Runs made afresh give the results that they gave at the commit that ``same_bytes.json`` names.

Recorded by ``python -m tests.golden.test_same_bytes COMMIT`` with its sources in front
(see ``make_stored``). Clocks, versions and the last digits of floating-point numbers are left
out, which differ between machines; scores and verdicts are not.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from unittest import mock

import pytest

from tests.golden import tasks
from tests.golden.tasks import INPUTS, RUNS, TASKS, as_before, done, result_of, rows_of, same

RECORDED = Path(__file__).parent / "same_bytes.json"


def _digest(told: object) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _ran(name: str) -> Path:
    done(*TASKS[name])
    [run] = Path(RUNS).iterdir()
    return run


def an_audit() -> dict[str, str]:
    """Scores to the byte; they come in order and without floating-point work of a model."""
    run = _ran("audit")
    result = result_of(run)
    scores = [{k: row[k] for k in row if k != "unit"} for row in rows_of(run / "scores.jsonl")]
    units = [row["unit"] for row in rows_of(run / "scores.jsonl")]
    summary = {k: v for k, v in result["summary"].items() if k != "spent"}
    return {
        "scores": _digest(same(scores)),
        "units": _digest(units),
        "documents": _digest(same(result["documents"])),
        "summary": _digest(same(as_before(summary))),
    }


def an_audit_that_learns() -> dict[str, str]:
    """Questions, and what the embedded reader says to them; verdicts by a trained classifier."""
    run = _ran("audit-learning")
    asked = sorted(json.dumps(row["asked"]) for row in rows_of(run / "answers.jsonl"))
    texts = sorted([row["key"], row["answer"]["text"]] for row in rows_of(run / "answers.jsonl"))
    verdicts = [[row["id"], row["verdict"]] for row in result_of(run)["documents"]]
    return {"asked": _digest(asked), "texts": _digest(texts), "verdicts": _digest(verdicts)}


def leaks() -> dict[str, str]:
    """Every prompt and every measure."""
    run = _ran("leak")
    result = result_of(run)
    told = {name: same(result[name]) for name in ("attacks", "together", "settings")}
    prompts = [row["prompt"] for row in rows_of(run / "transcripts.jsonl")]
    return {"prompts": _digest(prompts), **{name: _digest(told[name]) for name in told}}


def a_comparison() -> dict[str, str]:
    """Every variant, its leaks and its usefulness."""
    result = result_of(_ran("compare"))
    return {"variants": _digest(same(result["variants"]))}


def a_window() -> dict[str, str]:
    """Every file of a window that opens, answers and closes with bytes drawn from a seed."""
    from tests.support import windows

    drawn = random.Random(7)
    patch = pytest.MonkeyPatch()
    with mock.patch("os.urandom", drawn.randbytes):
        held = windows.window(Path(), patch)
        for account, nonce in (("a", "n1"), ("b", "n1"), ("a", "n2")):
            held.record(windows.ask(held, account=account, nonce=nonce))
        held.publish()
        tasks.close(held)
    patch.undo()
    files = [path for path in sorted(Path("window").rglob("*")) if path.is_file()]
    return {
        path.as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.suffix != ".npz" and path.stat().st_size
    }


CASES: dict[str, Callable[[], dict[str, str]]] = {
    "audit": an_audit,
    "audit-learning": an_audit_that_learns,
    "leak": leaks,
    "compare": a_comparison,
    "window": a_window,
}
_SLOW = {"audit-learning"}


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.long if one in _SLOW else ()) for one in CASES]
)
def test_a_run_made_afresh_gives_what_it_gave(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    tasks.pretend(recorded["ragwitness"], tmp_path, monkeypatch)
    monkeypatch.chdir(shutil.copytree(INPUTS, tmp_path / "here"))
    monkeypatch.setenv("COLUMNS", "80")
    assert CASES[name]() == recorded["cases"][name]


def record() -> None:
    """Write what the sources in front give."""
    from importlib.metadata import version

    found = {}
    os.environ["COLUMNS"] = "80"
    for name, case in CASES.items():
        with (
            tempfile.TemporaryDirectory() as folder,
            chdir(folder),
            pytest.MonkeyPatch.context() as patch,
        ):
            tasks.pretend(version("ragwitness"), Path(folder), patch)
            shutil.copytree(INPUTS, "here")
            with chdir("here"):
                found[name] = case()
    told = {"commit": sys.argv[1], "ragwitness": version("ragwitness"), "cases": found}
    RECORDED.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()
