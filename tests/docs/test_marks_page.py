"""The page on marks: its commands run as they stand, at a service that holds one of two copies."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli import conftest
from tests.support.marked import document
from tests.support.pages import blocks, served

command = conftest.command


@pytest.mark.slow
def test_the_commands_run(command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("letters").mkdir()
    for number in range(2):
        Path(f"letters/report {number}.txt").write_text(document(number).text, encoding="utf-8")
    mark, audit = blocks("docs/marks.md", "sh")[0].strip().splitlines()
    code, said = command(*shlex.split(mark)[1:])
    assert code == 0, said
    copies = sorted(Path("copies").glob("*.txt"))
    assert len(copies) == 2
    copies[1].unlink()  # the system holds one of them
    with served(["lab", "serve", "--corpus", "copies"], tmp_path) as address:
        words = shlex.split(audit.replace("http://127.0.0.1:8000/v1", address))[1:]
        code, said = command(*words, "--run", "run")
    assert code == 0, said
    result = json.loads(Path("run/result.json").read_text(encoding="utf-8"))
    assert [row["decision"] for row in result["documents"]][1] != "out"
