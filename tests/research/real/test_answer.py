"""Bulk answers of a model in transformers: alike in any batch, resumed, and read by replay."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from experiments.real import answer
from experiments.real.weights import load
from ragwitness.targets.wire import read_chat
from tests.unit.models.models_fakes import write_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model of random weights."""
    return write_folder(tmp_path_factory.mktemp("models") / "tiny")


def _questions(path: Path, count: int = 5, **more: Any) -> Path:
    bodies = [
        {
            "messages": [{"role": "user", "content": "the doctor gave " * (n + 1)}],
            "max_tokens": 3 + n,
            "top_logprobs": 2,
            **more,
        }
        for n in range(count)
    ]
    rows = [{"custom_id": f"q{n}", "body": body} for n, body in enumerate(bodies)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["answer.py", *map(str, arguments)])
    answer.main()


def _rows(path: Path) -> dict[str, Any]:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len({row["custom_id"] for row in rows}) == len(rows)
    return {row["custom_id"]: row["response"] for row in rows}


def test_a_batch_answers_as_single_requests_do(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    tmp_path: Path,
) -> None:
    asked = _questions(tmp_path / "q.jsonl")
    # Sums of bfloat16 differ by the shape of a batch; in float32 that decides nothing.
    monkeypatch.setattr(answer, "load", lambda *given: (load(*given)[0].float(), load(*given)[1]))
    _run(monkeypatch, folder, asked, tmp_path / "one.jsonl", "--batch", 1)
    _run(monkeypatch, folder, asked, tmp_path / "five.jsonl", "--batch", 5)
    single, batch = _rows(tmp_path / "one.jsonl"), _rows(tmp_path / "five.jsonl")
    assert set(single) == set(batch) == {f"q{n}" for n in range(5)}
    for name, response in single.items():
        one, other = read_chat(response["body"]), read_chat(batch[name]["body"])
        assert (one.text, one.finish_reason) == (other.text, other.finish_reason)
        assert one.tokens is not None
        assert other.tokens is not None
        assert "".join(token.token for token in one.tokens) == one.text
        # Greedy: the token chosen is the most probable one, with its own log-probability.
        for token, twin in zip(one.tokens, other.tokens, strict=True):
            assert len(token.top) == 2
            assert token.logprob == token.top[0][1]
            assert token.logprob == pytest.approx(twin.logprob, abs=1e-3)
        assert one.completion_tokens is not None
        assert one.completion_tokens <= 3 + int(name[1:])


def test_the_same_command_goes_on_behind_a_crash(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    tmp_path: Path,
) -> None:
    asked, out = _questions(tmp_path / "q.jsonl"), tmp_path / "a.jsonl"
    _run(monkeypatch, folder, asked, out, "--batch", 2, "--limit", 2)
    first = out.read_text()
    out.write_text(first + '{"custom_id": "q4", "resp')
    _run(monkeypatch, folder, asked, out, "--batch", 2, "--seconds", 0)
    assert out.read_text() == first
    _run(monkeypatch, folder, asked, out, "--batch", 2, "--top", 1)
    assert out.read_text().startswith(first)
    assert set(_rows(out)) == {f"q{n}" for n in range(5)}


def test_what_a_model_cannot_read_is_a_failed_request(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    tmp_path: Path,
) -> None:
    asked, out = _questions(tmp_path / "q.jsonl", count=1, max_tokens=10**6), tmp_path / "a.jsonl"
    _run(monkeypatch, folder, asked, out)
    assert _rows(out)["q0"]["status_code"] == 400
    assert "longer than 1024 tokens" in _rows(out)["q0"]["body"]["error"]["message"]


def test_samples_differ_and_are_drawn_again_alike(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    tmp_path: Path,
) -> None:
    asked = _questions(tmp_path / "q.jsonl", count=4, temperature=1.0, seed=7, max_tokens=8)
    texts = []
    for name in ("a.jsonl", "b.jsonl"):
        _run(monkeypatch, folder, asked, tmp_path / name, "--batch", 4)
        rows = _rows(tmp_path / name)
        texts.append(
            [rows[key]["body"]["choices"][0]["message"]["content"] for key in sorted(rows)]
        )
    assert texts[0] == texts[1]
    assert len(set(texts[0])) > 1


def test_batches_hold_what_is_alike_and_all_kinds_come_early() -> None:
    made = [
        answer.Request(f"r{n}", "", n % 7, 10 * (n % 2), float(n % 3 == 0), 0, 0)
        for n in range(100)
    ]
    cut = list(answer.batches(made, 2))
    assert sorted(one.name for batch in cut for one in batch) == sorted(one.name for one in made)
    assert all(len({one.temperature for one in batch}) == 1 for batch in cut)
    early = [one.name for batch in cut[:17] for one in batch]
    assert {int(name[1:]) for name in early} <= set(range(32))
