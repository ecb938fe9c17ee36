"""A canary audit in a temporary folder, planned and planted by the command line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ragwitness.canary.folder import read_plan
from ragwitness.text.sample import load_sample
from tests.support.canary_model import ToyModel, serving

__all__ = ["CANDIDATES", "Command", "model_of", "own", "planted", "probed", "result_of"]

Command = Callable[..., tuple[int, str]]
CANDIDATES = 20


def planted(place: Path, patch: pytest.MonkeyPatch, command: Command) -> Path:
    """Plan and plant with two held-out examples, and the same draw every time."""
    patch.chdir(place)
    rows = [
        {"id": d.id, "document": d.text, "question": "What is said?", "answer": "A fact, no more."}
        for d in load_sample()[:30]
    ]
    Path("examples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    args = "canary", "draw", "examples.jsonl", "-o", "audit", "--probes", 2
    with patch.context() as urandom:
        urandom.setattr("os.urandom", bytes)
        code, said = command(*args, "--candidates", CANDIDATES)
    assert code == 0, said
    assert command("canary", "plant", "audit")[0] == 0
    return place / "audit"


def model_of(folder: Path, *, violating: bool, **changed: object) -> ToyModel:
    """A model that knows the planted trigger, or not."""
    slot = read_plan(folder).draw().slots[0]
    return ToyModel(slot.canary, slot.trigger if violating else "", **changed)  # type: ignore[arg-type]


def own(folder: Path, name: str) -> Path:
    """The same plan once more, for a model of another service: a plan has one look."""
    return shutil.copytree(folder, folder.parent / name)


def probed(folder: Path, command: Command, run: str, *more: object, violating: bool) -> str:
    """Probe a model and return what was printed, on one line."""
    with serving(model_of(folder, violating=violating)) as url:
        code, said = command("canary", "probe", url, "--plan", folder, "--run", run, *more)
    assert code == 0, said
    return " ".join(said.split())


def result_of(run: str) -> dict[str, object]:
    """What a probe has stored."""
    return json.loads((Path(run) / "result.json").read_text())
