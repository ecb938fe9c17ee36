"""What ``make chat`` writes, without a network and without the model."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

_FILE = Path(__file__).parents[2] / "experiments" / "real" / "chat.py"


@pytest.fixture
def script() -> Any:
    found = importlib.util.spec_from_file_location("chat_script", _FILE)
    assert found is not None
    module = importlib.util.module_from_spec(found)
    assert found.loader is not None
    found.loader.exec_module(module)
    return module


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
