"""The recipe for Inspect, run by Inspect itself against a system on the loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from ragwitness.core.types import Document
from ragwitness.text.sample import load_sample
from tests.support.tenants_rag import tenants_rag

_RECIPE = Path(__file__).parents[2] / "recipes" / "inspect" / "membership.py"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="inspect-ai: see make services"),
]


@pytest.fixture(scope="module")
def system() -> Iterator[str]:
    """A system that holds the first six documents for one key, and not for the other."""
    sample = load_sample()
    with tenants_rag({"holds": sample[:6] + sample[66:96], "not": sample[66:96]}) as url:
        yield url


def _rows(path: Path, documents: list[Document]) -> Path:
    rows = (
        json.dumps({"id": f"{path.stem}-{n}", "text": one.text}) for n, one in enumerate(documents)
    )
    path.write_text("".join(f"{row}\n" for row in rows))
    return path


@pytest.mark.parametrize(("key", "called_in"), [("holds", 6), ("not", 0)])
def test_inspect_scores_each_document_by_its_verdict(
    system: str, key: str, called_in: int, tmp_path: Path
) -> None:
    sample = load_sample()
    arguments = {
        "documents": _rows(tmp_path / "own.jsonl", sample[:6]),
        "known_out": _rows(tmp_path / "outside.jsonl", sample[6:66]),
        "method": "s2mia",
        "yes": "true",
    }
    given = [word for name, value in arguments.items() for word in ("-T", f"{name}={value}")]
    command = [sys.executable, "-m", "inspect_ai", "eval", _RECIPE.name, *given]
    command += ["--model", "openai-api/rag/rag", "--display", "plain"]
    command += ["--log-format", "json", "--log-dir", str(tmp_path / "logs")]
    reach = {"RAG_BASE_URL": system, "RAG_API_KEY": key}
    done = subprocess.run(
        command,
        cwd=_RECIPE.parent,  # Inspect takes no absolute path
        env=os.environ | reach,
        capture_output=True,
        text=True,
    )
    print(done.stdout[-4000:], done.stderr[-2000:])
    (log,) = (tmp_path / "logs").glob("*.json")
    found = json.loads(log.read_text())
    assert found["status"] == "success"
    scores = {one["id"]: one["scores"]["verdict"]["value"] for one in found["samples"]}
    assert list(scores) == [f"own-{n}" for n in range(6)]
    assert list(scores.values()).count("in") == called_in
    (score,) = found["results"]["scores"]
    assert score["metrics"]["in"]["value"] == called_in / 6
    # Inspect's log holds every question, asked by its own model.
    asked = [
        event for one in found["samples"] for event in one["events"] if event["event"] == "model"
    ]
    assert len(asked) >= 66
