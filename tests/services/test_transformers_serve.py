"""``transformers serve``: accepts ``logprobs``, leaves them out, and never samples this model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ragwitness.models.reader.model import PACKAGED_WEIGHTS

pytestmark = pytest.mark.slow

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def target(transformers_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HUGGED_BASE_URL", transformers_server)
    monkeypatch.setenv("COLUMNS", "300")
    return f"openai-api/hugged/{PACKAGED_WEIGHTS}"


def test_doctor_notices_what_is_left_out(command: Command, target: str, tmp_path: Path) -> None:
    out = tmp_path / "doctor.json"
    code, said = command("doctor", target, "--no-pilot", "--json", out, "--timeout", 120)
    assert code == 0, said
    found = json.loads(out.read_text())
    assert found["capabilities"] == ["text"]
    assert (found["dropped_logprobs"], found["alternatives"], found["echo"]) == (True, 0, False)
    assert "No log-probabilities came back" in said
    assert "rag-mia" in found["audits"]
    assert not {"s-rag", "min-k"} & set(found["audits"])


@pytest.mark.parametrize("method", ["s-rag", "min-k"])
def test_an_audit_that_needs_them_ends_before_it_begins(
    command: Command, target: str, files: list[str], tmp_path: Path, method: str
) -> None:
    arguments = ["--method", method, "--run", tmp_path / "run", "--timeout", 120]
    code, said = command("audit", "--yes", target, *files, *arguments)
    assert code == 5
    (cause,) = [line for line in said.splitlines() if "leaves them out without a word" in line]
    assert "top_logprobs" in cause
    assert not (tmp_path / "run" / "result.json").exists()


def test_an_audit_of_text_runs(
    command: Command, target: str, files: list[str], tmp_path: Path
) -> None:
    arguments = ["--method", "rag-mia", "--run", tmp_path / "run", "--timeout", 120]
    code, said = command("audit", "--yes", target, *files, *arguments)
    assert code == 0, said
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert 8 <= result["summary"]["queries"] <= 16  # what was cut is asked again with room
    assert len(result["documents"]) == 4
