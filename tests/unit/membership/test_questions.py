"""Questions that are written before any answer, and those that follow from answers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Audit, Capability, Document, Probe, Query, Score
from ragwitness.membership.method_registry import build_audit, configure
from ragwitness.membership.plan import AuditPlan
from ragwitness.membership.prepared import PreparedAudit
from ragwitness.membership.questions import open_questions, write_questions
from ragwitness.models.model_registry import load_language_model
from ragwitness.runner.replay import ReplayTarget, question_key, read_recording
from ragwitness.text.sample import load_sample

_DOCUMENT = Document("d", "a text")


class AllAtOnce:
    """Asks two questions at once."""

    name = "at-once"
    requires = frozenset({Capability.TEXT})

    def probe(self, document: Document) -> Probe:
        answers = yield [Query(f"1 {document.text}"), Query(f"2 {document.text}")]
        return Score(float(len(answers)))


class InTurns:
    """Asks its second question whatever is answered to the first."""

    name = "in-turns"
    requires = frozenset({Capability.TEXT})

    def probe(self, document: Document) -> Probe:
        yield [Query("first")]
        yield [Query("second")]
        return Score(1.0)


class Listed(InTurns):
    """The same, and says what it may ask."""

    def questions(self, document: Document) -> list[Query]:
        return [Query("first"), Query("second")]


class Silent:
    """Has no question."""

    name = "silent"
    requires = frozenset({Capability.TEXT})

    def probe(self, document: Document) -> Probe:
        return Score(None, reason="nothing to ask")
        yield []


def _answered(folder: Path, *prompts: str) -> ReplayTarget:
    """Answers to these prompts, as a batch service returns them."""
    reply = {"status_code": 200, "body": {"choices": [{"message": {"content": "yes"}}]}}
    names = [f"s-{question_key(Query(prompt))}" for prompt in prompts]
    lines = [json.dumps({"custom_id": name, "response": reply}) for name in names]
    (folder / "answers.jsonl").write_text("\n".join(lines))
    return read_recording(folder / "answers.jsonl")


def _prompts(audit: Audit, known: ReplayTarget | None = None) -> list[str]:
    return [one.prompt for one in open_questions(audit, _DOCUMENT, known)]


def test_what_is_asked_at_once_or_listed_takes_one_round() -> None:
    assert _prompts(AllAtOnce()) == ["1 a text", "2 a text"]
    assert _prompts(Listed()) == ["first", "second"]
    assert _prompts(Silent()) == []


def test_what_is_asked_after_an_answer_takes_a_further_round(tmp_path: Path) -> None:
    assert _prompts(InTurns()) == ["first"]
    assert _prompts(InTurns(), _answered(tmp_path, "first")) == ["second"]
    assert _prompts(InTurns(), _answered(tmp_path, "second")) == ["first"]
    assert _prompts(InTurns(), _answered(tmp_path, "first", "second")) == []


def test_only_what_is_missing_is_asked_again(tmp_path: Path) -> None:
    assert _prompts(AllAtOnce(), _answered(tmp_path, "2 a text")) == ["1 a text"]
    assert _prompts(Listed(), _answered(tmp_path, "first")) == ["second"]


@pytest.mark.parametrize("name", ["mba", "rag-mia", "s2mia", "min-k"])
def test_our_methods_say_beforehand_what_they_ask(name: str) -> None:
    audit = build_audit(name, load_language_model("reader"))
    document = load_sample()[0]
    assert open_questions(audit, document, None) == next(audit.probe(document))


def test_an_endpoint_is_neither_opened_nor_asked(tmp_path: Path) -> None:
    documents = tuple(load_sample()[:3])
    plan = AuditPlan((*documents[:1], Document("short", "two words")), known_out=documents[1:])
    order = PreparedAudit("http://nobody.invalid/v1#m1", plan, "rag-mia", configure("rag-mia"))
    assert asyncio.run(write_questions(tmp_path / "q", order)) == (3, 3, 1)
    rows = [json.loads(line) for line in (tmp_path / "q").read_text().splitlines()]
    assert {row["body"]["model"] for row in rows} == {"m1"}
    assert all([m["role"] for m in row["body"]["messages"]] == ["user"] for row in rows)
    assert len({row["custom_id"] for row in rows}) == 3
    assert all(len(row["custom_id"]) < 64 for row in rows)  # the limit of some services


def test_no_question_at_all_is_named(tmp_path: Path) -> None:
    plan = AuditPlan((Document("a", "one two"),), known_out=(Document("b", "three four"),))
    order = PreparedAudit("http://nobody.invalid/v1#m1", plan, "rag-mia", configure("rag-mia"))
    with pytest.raises(InputError, match="No document has a question"):
        asyncio.run(write_questions(tmp_path / "q", order))
    assert not (tmp_path / "q").exists()


def test_a_question_too_long_for_a_lab_model_is_left_out(tmp_path: Path) -> None:
    documents = load_sample()[:4]
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"id": "x", "text": documents[3].text}))
    endless = Document("long", "many words " * 4000)
    plan = AuditPlan((documents[0], endless), known_out=tuple(documents[1:3]))
    config = configure("rag-mia:paper", {"max_chars": 10**6})
    order = PreparedAudit(f"lab:{tmp_path}/corpus.jsonl", plan, "rag-mia:paper", config)
    assert asyncio.run(write_questions(tmp_path / "q", order)) == (3, 3, 1)
    models = {json.loads(one)["body"]["model"] for one in (tmp_path / "q").read_text().splitlines()}
    assert models == {"model"}
