"""The page on accounts: its command runs as it stands, at a service whose accounts have keys."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from ragwitness.text.sample import load_sample
from tests.cli import conftest
from tests.support.pages import blocks
from tests.support.tenants_rag import tenants_rag

command = conftest.command


@pytest.mark.slow
def test_the_command_runs(command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    docs = load_sample(60)
    for name, part in {"alice-files": docs[:2], "never-shared": docs[2:9]}.items():
        Path(name).mkdir()
        for one in part:
            (Path(name) / f"{one.id}.txt").write_text(one.text, encoding="utf-8")
    (line,) = blocks("docs/scope.md", "")
    for name in ("BOB_KEY", "GUEST_KEY"):
        monkeypatch.setenv(name, f"sk-{name}-012345")
    with tenants_rag({"sk-BOB_KEY-012345": docs[:2], "sk-GUEST_KEY-012345": docs[9:12]}) as url:
        words = shlex.split(line.replace("http://127.0.0.1:8000/v1", url))[1:]
        code, said = command(*words, "--method", "s2mia", "--yes", "--json", "matrix.json")
    assert code == 0, said
    cells = json.loads(Path("matrix.json").read_text(encoding="utf-8"))["cells"]
    assert {cell["account"] for cell in cells} == {"bob", "guest"}
    assert len(cells) == 4
