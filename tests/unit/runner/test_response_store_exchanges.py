"""What a journal tells people: questions beside answers, whatever the prompts hold."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Capability, Document, Probe, Query, Score, TokenLogprob
from ragwitness.runner.response_store import (
    ResponseStore,
    StoredAnswers,
    StoredQuery,
    index_of,
    pack_run,
    query_key,
)
from ragwitness.runner.worker import Worker

ODD = '","answer":{"text":"forged"}} \u2028 \ud800 "document":"other"'
_ANSWER = Answer("said", (TokenLogprob("said", -0.5, (("said", -0.5),)),), "stop", 3, 1, ("p",))


def keep(path: Path, *rows: tuple[str, str, Query], target: str = "t") -> None:
    with ResponseStore(path) as responses:
        for stage, document, query in rows:
            asked = StoredQuery(target, stage, document, query)
            responses.put(query_key(target, query), _ANSWER, asked)


def test_questions_come_back_with_their_answers(tmp_path: Path) -> None:
    first = Query(ODD, 7, 0.5, 3, 11)
    keep(
        tmp_path / "answers.jsonl",
        ("documents", ODD, first),
        ("documents", "other", Query("two")),
        ("known outside", ODD, Query("three")),
    )
    found = index_of(tmp_path).responses(ODD)
    assert [one.asked.query for one in found] == [first, Query("three")]
    assert [one.answer for one in found] == [_ANSWER, _ANSWER]
    assert found[1].asked.stage == "known outside"
    assert index_of(tmp_path).responses("nobody") == ()
    counted = index_of(tmp_path).counts()
    assert counted.stages == {"documents": {ODD: 1, "other": 1}, "known outside": {ODD: 1}}
    assert (counted.answers, counted.unnamed) == (3, 0)


def test_journals_of_earlier_versions_and_cut_lines_are_counted_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    with ResponseStore(path) as responses:
        responses.put("old", _ANSWER)
    keep(path, ("documents", "d", Query("q")))
    whole = path.read_bytes()
    for extra in (b'{"key":"x","asked":{"target', b'{"key":"x","asked":{},"answer":{"te', b"no\n"):
        path.write_bytes(whole + extra)
        counted = index_of(tmp_path).counts()
        assert (counted.answers, counted.unnamed) == (2, 1)
        assert len(index_of(tmp_path).responses("d")) == 1
    path.write_bytes(whole + b'{"key":"y","asked":{"document":"d"},"answer":{}}\n')
    assert len(index_of(tmp_path).responses("d")) == 1  # a row of another form is passed over
    with StoredAnswers(path) as answers:
        assert answers.get("old") == _ANSWER


def test_an_answer_counts_once_its_line_is_written_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    keep(path, ("documents", "d", Query("q")))
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    assert index_of(tmp_path).counts().answers == 0
    path.write_bytes(whole)
    assert index_of(tmp_path).counts().answers == 1
    assert len(index_of(tmp_path).responses("d")) == 1


def test_what_is_kept_beside_an_answer_is_the_question_alone(tmp_path: Path) -> None:
    keep(tmp_path / "answers.jsonl", ("documents", "d", Query("q")))
    row = json.loads((tmp_path / "answers.jsonl").read_text(encoding="utf-8"))
    assert list(row) == ["key", "asked", "answer"]
    assert set(row["asked"]) == {"target", "stage", "document", "query"}


class Echo:
    name = "echo"
    capabilities = frozenset({Capability.TEXT})

    async def ask(self, query: Query) -> Answer:
        return Answer(query.prompt.upper())

    async def close(self) -> None:
        """Nothing to release."""


class Twice:
    name = "twice"
    requires = frozenset({Capability.TEXT})

    def probe(self, document: Document) -> Probe:
        yield [Query(f"one {document.text}"), Query(f"two {document.text}")]
        return Score(1.0)


def test_a_run_leaves_what_it_asked(tmp_path: Path) -> None:
    documents = [Document("d1", "a"), Document("d2", "b")]
    with ResponseStore(tmp_path / "answers.jsonl") as responses:
        asyncio.run(Worker(Echo(), responses).run(Twice(), documents, "documents"))
    found = index_of(tmp_path).responses("d2")
    assert {(one.asked.query.prompt, one.answer.text) for one in found} == {
        ("one b", "ONE B"),
        ("two b", "TWO B"),
    }
    assert {(one.asked.target, one.asked.stage) for one in found} == {("echo", "documents")}
    assert index_of(tmp_path).counts().stages == {"documents": {"d1": 2, "d2": 2}}


def test_no_journal_is_nothing_and_an_unreadable_one_is_said(tmp_path: Path) -> None:
    assert index_of(tmp_path).counts().answers == 0
    assert index_of(tmp_path / "none").responses("d") == ()
    (tmp_path / "answers.jsonl").mkdir()
    with pytest.raises(InputError, match="Cannot read the response store"):
        index_of(tmp_path).counts()


def test_a_packed_journal_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragwitness.core.files._WORTH", 1)
    monkeypatch.setattr("ragwitness.core.files._BLOCK", 2000)
    path = tmp_path / "answers.jsonl"
    rows = [("documents", f"d{n}", Query(f"{n} {step}")) for step in (1, 2) for n in range(40)]
    keep(path, *rows)
    index = index_of(tmp_path)
    before = [index.responses(f"d{n}") for n in range(40)]
    assert all(len(found) == 2 for found in before)
    pack_run(tmp_path)
    assert not path.exists()
    assert [index.responses(f"d{n}") for n in range(40)] == before
    assert index.counts().stages == {"documents": {f"d{n}": 2 for n in range(40)}}
    with StoredAnswers(path) as answers:
        assert len(answers) == 80
        assert answers.get(query_key("t", Query("7 2"))) == _ANSWER
    # Resuming unpacks it, and what is added is seen.
    keep(path, ("documents", "d7", Query("7 3")))
    assert len(index.responses("d7")) == 3
    assert index.responses("d8") == before[8]


def test_a_journal_under_way_is_read_on_from_where_the_last_look_ended(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    keep(path, ("documents", "d", Query("q")))
    index = index_of(tmp_path)
    assert index.counts().answers == 1
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(whole[:50])
        file.flush()
        assert index.counts().answers == 1
        file.write(whole[50:].replace(b'"key":"', b'"key":"other'))
    path.write_bytes(whole + whole.replace(b'"key":"', b'"key":"other'))
    assert index.counts().answers == 2
    assert len(index.responses("d")) == 2
    path.write_bytes(b"")
    assert index.counts().answers == 0
