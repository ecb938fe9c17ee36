"""A run whose journals are packed goes on like any other: resumed, shown, replayed, merged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ragwitness.text.sample import load_sample
from tests.support.rough import rough

Command = Callable[..., tuple[int, str]]

PLAIN = {"answers.jsonl", "finished.jsonl", "spent.jsonl"}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Options of a small audit in an empty folder, where every journal is worth packing."""
    monkeypatch.setattr("ragwitness.core.files._WORTH", 1)
    monkeypatch.chdir(tmp_path)
    rows = [json.dumps({"id": d.id, "text": d.text[:200]}) for d in load_sample()[:12]]
    for name, part in (("docs", rows[:4]), ("known", rows[4:])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(part))
    documents = ["--documents", "docs.jsonl", "--known-out", "known.jsonl"]
    return [*documents, "--method", "rag-mia"]


def _names(folder: str) -> set[str]:
    return {path.name for path in Path(folder).iterdir() if path.name[0] != "."}


def _scores(run: str) -> list[object]:
    return [row["score"] for row in json.loads(Path(run, "result.json").read_bytes())["documents"]]


@pytest.mark.slow
def test_a_packed_run_is_resumed_shown_and_replayed(command: Command, files) -> None:
    with rough() as server:
        audit = ("audit", "--yes", f"{server.url}#m", *files, "--run", "run")
        code, text = command(*audit)
        assert code == 0, text
        assert not _names("run") & PLAIN
        assert {f"{name}.gz" for name in PLAIN} <= _names("run")
        asked, first = len(server.prompts), _scores("run")
        # The same command asks nothing, and packs again.
        code, text = command(*audit)
        assert code == 0, text
        assert len(server.prompts) == asked
        assert _scores("run") == first
        assert not _names("run") & PLAIN
        code, text = command(*audit, "--dry-run")
        assert code == 0, text
        assert "answers kept" in text
        assert f"{asked:,} queries" in text
        # A document more is asked about, and nothing else.
        extra = json.dumps({"id": "new", "text": load_sample()[20].text[:200]})
        with open("docs.jsonl", "a") as documents:
            documents.write("\n" + extra)
        code, text = command(*audit)
        assert code == 0, text
        assert len(server.prompts) == asked + 1
    code, text = command("report", "run", "--jsonl", "rows.jsonl")
    assert code == 0, text
    code, text = command("audit", "--yes", "replay/run", *files, "--run", "again")
    assert code == 0, text
    assert _scores("again") == _scores("run")
