"""The page on evidence packs: its commands run as they stand, and every check is named."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from ragwitness.cli.main import run
from ragwitness.evidence.code import task_named
from ragwitness.evidence.verifier import COMMITMENTS, PAGE
from ragwitness.text.sample import load_sample

_PAGE = (Path(__file__).parents[2] / "docs" / "evidence.md").read_text(encoding="utf-8")


def _corpus() -> None:
    rows = [{"text": document.text} for document in load_sample()[:70]]
    parts = {"held": rows[:6], "mine": rows[4:7], "outside": rows[7:]}
    for name, part in parts.items():
        lines = (json.dumps({"id": f"{name}-{n}", **row}) + "\n" for n, row in enumerate(part))
        Path(f"{name}.jsonl").write_text("".join(lines))


@pytest.mark.long
def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _corpus()
    blocks = re.findall(r"^```sh\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 2
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    for line in lines:
        if "watch.json" in line:  # the watcher's own, as the page shows it
            key = json.loads(Path("my-run/seal.json").read_text())["key"]
            [shown] = re.findall(r"`(\{.*?\})`", _PAGE)
            Path("watch.json").write_text(shown.replace("KEY", key))
        if "'KEY'" in line:
            line = line.replace("KEY", json.loads(Path("my-run/seal.json").read_text())["key"])
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as stop:
            run()
        assert not stop.value.code, line
    monkeypatch.setattr(sys, "argv", ["ragwitness", "verify", "hidden.zip"])
    with pytest.raises(SystemExit) as stop:
        run()
    assert stop.value.code == 4
    assert Path("my-runs/checkpoint").exists()


def test_every_check_stands_on_the_page() -> None:
    for step in (
        *COMMITMENTS,
        *(step for one in ("audit", "leak", "canary") for step in task_named(one).steps),
        PAGE,
    ):
        assert f"`{step.name}`" in _PAGE, step.name


def test_what_is_not_proved_stands_on_the_page() -> None:
    for words in ("answers came from that system", "run was discarded", "older than the answers"):
        assert words in _PAGE
