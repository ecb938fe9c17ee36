"""The corpus of real answers: questions whose true reading is known, and what is packed of them."""

from __future__ import annotations

import json
import lzma
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from experiments.real.collect import (
    LANGUAGES,
    PROMPTS,
    documents_of,
    main,
    questions,
    truth_of,
)
from ragwitness.core.types import Document, Query, TokenLogprob
from ragwitness.membership.method_registry import AUDITS
from ragwitness.models.model_registry import load_language_model
from ragwitness.runner.response_store import decode_answer

_METHODS = ("s-rag", "rag-mia", "min-k", "passages")


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return list(questions(_METHODS, 2, 2, 40, load_language_model("reader")))


@pytest.mark.parametrize("language", LANGUAGES)
def test_documents_are_short_different_and_the_same_at_every_call(language: str) -> None:
    documents = documents_of(language, 60)
    assert documents == documents_of(language, 60)
    assert len({one.text for one in documents}) == len({one.id for one in documents}) == 60
    assert max(len(one.text) for one in documents) <= 400
    assert not any("{" in one.text for one in documents)


def test_every_cell_is_asked_with_the_passage_and_without(rows: list[dict[str, Any]]) -> None:
    cells = Counter(
        (one["method"], one["template"], one["language"], one["shown"])
        for one in (row["about"] for row in rows)
        if one["method"] in ("min-k", "rag-mia")
    )
    assert len(cells) == 2 * len(PROMPTS) * len(LANGUAGES) * 2
    assert set(cells.values()) == {2}
    assert len({row["custom_id"] for row in rows}) == len(rows)
    for row in rows:
        about, said = row["about"], "".join(one["content"] for one in row["body"]["messages"])
        # RAG-MIA quotes the whole document in its question, so its text is there in any case.
        times = said.count(about["text"]) - about["query"]["prompt"].count(about["text"])
        assert times == about["shown"], row["custom_id"]
        assert about["query"]["prompt"] in said
        assert row["body"]["max_tokens"] <= 40


def test_what_two_methods_send_alike_is_asked_once(rows: list[dict[str, Any]]) -> None:
    methods = {row["about"]["method"] for row in rows}
    assert methods == {"s-rag", "rag-mia", "min-k"}  # passages reads no answer
    sent = [json.dumps([row["body"], row["about"]["template"]]) for row in rows]
    assert len(set(sent)) == len(sent)


def test_all_registered_methods_are_asked_by_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []

    def none(methods: list[str], *_: object) -> list[object]:
        asked.extend(methods)
        return []

    monkeypatch.setattr("experiments.real.collect.questions", none)
    monkeypatch.setattr(sys, "argv", ["collect.py", "questions", str(tmp_path / "q.jsonl")])
    main()
    assert asked == list(AUDITS)


_TEXT = "The old mill by the river lost its wheel in May. The old mill by the lake did not burn."


@pytest.mark.parametrize(
    ("prompt", "truth"),
    [
        ("Go on: The old mill by the river lost", {"next": "its wheel in May. The old mill by"}),
        # What the question quotes at length counts, not what it has in common with the rest.
        ("Is it “wheel in May. The old mill by the”?", {"next": "lake did not burn."}),
        (f"Is “{_TEXT}” there?", {"next": ""}),
        ("Fill in:\nlost its [Mask_1] in [Mask_2]. The old", {"masks": ["wheel", "May"]}),
        ("What is the weather?", {}),
    ],
)
def test_the_true_reading_follows_from_the_question(prompt: str, truth: dict[str, Any]) -> None:
    found = truth_of(Query(prompt), Document("d", _TEXT))
    assert {name: found[name][: len(value)] for name, value in truth.items()} == truth
    assert set(found) == set(truth)


def _answer(name: str, status: int = 200) -> str:
    listed = {"token": "Yes", "logprob": -0.12345, "top_logprobs": [{"token": "No", "logprob": -2}]}
    choice = {"message": {"content": "Yes"}, "logprobs": {"content": [listed]}}
    body = {"choices": [choice], "usage": {"prompt_tokens": 9}}
    return json.dumps({"custom_id": name, "response": {"status_code": status, "body": body}})


def _pack(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[dict[str, Any]]:
    out = folder / "out" / "answers.jsonl.xz"
    paths = [out, folder / "q.jsonl", folder / "small.jsonl", folder / "large.jsonl"]
    monkeypatch.setattr(sys, "argv", ["collect.py", "pack", *map(str, paths)])
    main()
    return [json.loads(line) for line in lzma.decompress(out.read_bytes()).splitlines()]


def test_answers_are_packed_beside_their_questions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = [{"custom_id": name, "about": {"method": "m", "document": name}} for name in "ab"]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    (tmp_path / "small.jsonl").write_text(f"{_answer('b')}\n{_answer('a')}\n")
    (tmp_path / "large.jsonl").write_text(f"{_answer('a', 500)}\n{_answer('b')}\n")
    rows = _pack(monkeypatch, tmp_path)
    found = [(row["document"], row["model"]) for row in rows]
    assert found == [("a", "small"), ("b", "small"), ("b", "large")]
    answer = decode_answer(rows[0]["answer"])
    assert answer.tokens == (TokenLogprob("Yes", -0.123, (("No", -2),)),)
    assert (answer.text, answer.prompt_tokens) == ("Yes", 9)
    (tmp_path / "large.jsonl").write_text(_answer("c"))
    with pytest.raises(SystemExit, match="c is no question"):
        _pack(monkeypatch, tmp_path)
