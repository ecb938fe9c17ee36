"""An endpoint that fails in nine ways at random: every document ends scored or with its reason."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ragwitness.targets.transport import RetryPolicy
from ragwitness.text.sample import load_sample
from tests.support.copier import Copier
from tests.support.rough import FAULTS, TURNED_AWAY, Rough, rough

pytestmark = pytest.mark.slow

_DOCUMENTS, _KNOWN, _CAP = 60, 40, 150


@pytest.fixture
def audit(command, monkeypatch, tmp_path: Path):
    rows = [json.dumps({"id": d.id, "text": d.text}) for d in load_sample()[: _DOCUMENTS + _KNOWN]]
    (tmp_path / "d.jsonl").write_text("\n".join(rows[:_DOCUMENTS]))
    (tmp_path / "k.jsonl").write_text("\n".join(rows[_DOCUMENTS:]))
    # The auditor's own model takes no part in a score here, only time.
    monkeypatch.setattr(
        "ragwitness.models.model_registry.load_language_model", lambda name: Copier()
    )
    # As on the command line, with waits of milliseconds.
    monkeypatch.setattr(
        "ragwitness.targets.transport.RetryPolicy", partial(RetryPolicy, first=0.005, longest=0.02)
    )

    def call(server: Rough, run: str, *more: object) -> tuple[int, str, dict[str, Any]]:
        files = ("--documents", tmp_path / "d.jsonl", "--known-out", tmp_path / "k.jsonl")
        settings = ("--method", "rag-mia", "--timeout", 1, "--retries", 2, "--run", tmp_path / run)
        code, text = command("audit", "--yes", f"{server.url}#m", *files, *settings, *more)
        found = tmp_path / run / "result.json"
        return code, text, json.loads(found.read_bytes()) if found.exists() else {}

    return call


def _scores(result: dict[str, Any]) -> list[tuple[object, ...]]:
    names = ("id", "verdict", "score", "p_value", "q_value")
    return [tuple(row[name] for name in names) for row in result["documents"]]


def test_every_document_ends_scored_or_with_its_reason_within_the_cap(audit) -> None:
    with rough(seed=4) as server:
        code, text, _ = audit(server, "run", "--max-queries", 3)  # what it can do is seen in calm
        assert code == 0, text
        server.share = 0.45
        code, text, found = audit(server, "run", "--max-queries", _CAP)
        assert code == 0, text
        assert set(server.fates) == {"fine", *FAULTS}
        worked_on = sum(fate not in TURNED_AWAY for fate in server.fates)
        assert worked_on <= found["summary"]["spent"]["queries"] <= _CAP
        rows = found["documents"]
        assert [row["id"] for row in rows] == [d.id for d in load_sample()[:_DOCUMENTS]]
        lost = Counter(row["reason"] for row in rows if row["score"] is None)
        assert 0 < lost.total() == found["summary"]["counts"]["unscorable"] < _DOCUMENTS
        assert all(lost)  # each has its reason
        assert all(row["verdict"] == "inconclusive" for row in rows if row["score"] is None)

        server.share = 0.0
        kept = {p for p, fate in zip(server.prompts, server.fates, strict=True) if fate == "fine"}
        before = len(server.prompts)
        code, text, mended = audit(server, "run")
        assert code == 0, text
        assert not kept & set(server.prompts[before:])  # nothing is paid for twice
        assert all(row["score"] is not None for row in mended["documents"])
        code, text, calm = audit(server, "calm")
        assert code == 0, text
        assert _scores(mended) == _scores(calm)


@pytest.mark.parametrize(("fault", "code"), [("429", 1), ("html", 1), ("closed", 1), ("bare", 5)])
def test_a_target_that_only_fails_ends_in_one_line(audit, fault: str, code: int) -> None:
    with rough() as server:
        remember = server.fate_of
        server.fate_of = lambda prompt: (remember(prompt), fault)[1]  # type: ignore[method-assign]
        more = ("--method", "s-rag") if fault == "bare" else ()
        ended, text, found = audit(server, "run", "--max-queries", 40, *more)
    assert ended == code, text
    assert not found
    assert text.count("error: ") == text.count("next: ") == 1
    assert 0 < len(server.prompts) <= 40
