"""Recorded answers as a target."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ragwitness.core.errors import InputError, TargetResponseError
from ragwitness.core.types import Answer, Capability, Document, Probe, Query, Score, TokenLogprob
from ragwitness.runner.capabilities import probe_capabilities
from ragwitness.runner.replay import ReplayTarget, question_key
from ragwitness.runner.response_store import ResponseStore, query_key
from ragwitness.runner.worker import Worker
from ragwitness.targets.resolve import open_target

_TOKENS = (TokenLogprob("yes", -0.5, (("yes", -0.5), ("no", -1.0))),)


def opened(spec: str) -> ReplayTarget:
    target = asyncio.run(open_target(spec))
    assert isinstance(target, ReplayTarget)
    return target


def rows(folder: Path, *lines: object) -> Path:
    path = folder / "answers.jsonl"
    path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines))
    return path


def ask(target: ReplayTarget, prompt: str, **settings: int) -> Answer:
    return asyncio.run(target.ask(Query(prompt, **settings)))


_LOGPROBS = [{"token": "yes", "logprob": -0.5, "top_logprobs": [{"token": "no", "logprob": -1}]}]


def test_rows_of_prompts_and_answers(tmp_path: Path) -> None:
    path = rows(
        tmp_path,
        {"prompt": "a", "answer": "yes", "contexts": ["p"], "logprobs": _LOGPROBS},
        "",
        {"prompt": "b", "answer": ""},
        {"prompt": "b", "answer": ""},
    )
    target = opened(f"replay/{path}")
    first = ask(target, "a", max_tokens=3)
    assert (first.text, first.contexts) == ("yes", ("p",))
    assert first.tokens is not None
    assert ask(target, "b") == Answer("")  # recorded as empty
    for number in (1, 2):
        with pytest.raises(TargetResponseError, match=rf"number {number} without one\): 'c") as e:
            ask(target, "c" + "x" * 200)
        assert len(e.value.message) < 250
    assert target.missing == 2
    assert target.name.startswith("replay/answers.jsonl#")
    assert str(tmp_path) not in target.name
    rows(tmp_path, {"prompt": "a", "answer": "no"})
    assert opened(f"replay/{path}").name != target.name


def test_nothing_is_asked_to_see_what_was_recorded(tmp_path: Path) -> None:
    full = {"prompt": "a", "answer": "yes", "contexts": ["p"], "logprobs": _LOGPROBS}
    target = opened(f"replay/{rows(tmp_path, full)}")
    report = asyncio.run(probe_capabilities(target))
    assert report.capabilities == {
        Capability.TEXT, Capability.TOP_LOGPROBS, Capability.CONTEXTS,
    }  # fmt: skip
    assert (report.requests, report.alternatives, target.missing) == (0, 1, 0)
    target = opened(f"replay/{rows(tmp_path, {'prompt': 'a', 'answer': 'yes'})}")
    assert asyncio.run(probe_capabilities(target)).capabilities == {Capability.TEXT}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "holds no recorded answer"),
        ("{", ":1 is no recorded answer"),
        ("3", ":1 is no recorded answer"),
        ('{"answer": "x"}', ":1 is no recorded answer"),
        ('{"prompt": 3, "answer": "x"}', "the prompt is no text"),
        ('{"prompt": "a"}', "no answer that can be read"),
        ('{"prompt": "a", "error": "x"}', "with an error"),
        ('{"prompt": "a", "answer": "x"}\n{"prompt": "a", "answer": "y"}', "answers otherwise"),
        (b"\xff\xfe", "is no recorded answer"),
    ],
)
def test_unusable_rows_are_named(tmp_path: Path, line: str | bytes, says: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(line if isinstance(line, bytes) else line.encode())
    with pytest.raises(InputError, match=says):
        opened(f"replay/{path}")


def test_missing_recordings_are_named(tmp_path: Path) -> None:
    for spec in ("replay/", f"replay/{tmp_path}/none.jsonl"):
        with pytest.raises(InputError, match="There is no recording"):
            opened(spec)
    with pytest.raises(InputError, match=r"answers\.jsonl cannot be read"):
        opened(f"replay/{tmp_path}")
    (tmp_path / "answers.jsonl").touch()
    with pytest.raises(InputError, match="does not say which target"):
        opened(f"replay/{tmp_path}")
    with pytest.raises(InputError, match="holds no answers"):
        opened(f"replay/{tmp_path}?target=x")
    path = rows(tmp_path, {"prompt": "a", "answer": "x"})
    with pytest.raises(InputError, match="serves run folders alone"):
        opened(f"replay/{path}?target=x")


class Asks:
    """An audit of two questions, the second of which rests on the first answer."""

    name = "asks"
    requires = frozenset({Capability.TOP_LOGPROBS})

    def probe(self, document: Document) -> Probe:
        (first,) = yield [Query(document.text, 5, top_logprobs=2)]
        if first.error:
            return Score(None, reason=first.error)
        (second,) = yield [Query(first.text, 5, top_logprobs=2)]
        return Score(float(len(second.text)), reason=second.error)


class Echo:
    name = "echo"
    capabilities = frozenset({Capability.TOP_LOGPROBS})

    async def ask(self, query: Query) -> Answer:
        return Answer(query.prompt + "!", tokens=_TOKENS)

    async def close(self) -> None: ...


def test_a_run_is_replayed_from_its_own_journal(tmp_path: Path) -> None:
    documents = [Document("1", "one"), Document("2", "three")]

    async def scores(target: object, responses: ResponseStore | None) -> list[float | None]:
        worker = Worker(target, responses)  # type: ignore[arg-type]
        return [o.score.value for o in await worker.run(Asks(), documents, "documents")]

    with ResponseStore(tmp_path / "answers.jsonl") as responses:
        responses.put(query_key("shadow", Query("x")), Answer("y"))
        live = asyncio.run(scores(Echo(), responses))
    result = tmp_path / "result.json"
    for unusable in ("", "[]", '{"summary": 3}', '{"target": 3}'):
        result.write_text(unusable)
        with pytest.raises(InputError, match="does not say which target"):
            opened(f"replay/{tmp_path}")
    result.write_text('{"target": "echo"}')
    asyncio.run(opened(f"replay/{tmp_path}").close())
    result.write_text('{"documents": [], "summary": {"target": "echo"}}')
    before = (tmp_path / "answers.jsonl").read_bytes()
    target = opened(f"replay/{tmp_path}")
    assert asyncio.run(scores(target, None)) == live == [5.0, 7.0]
    assert target.missing == 0
    report = asyncio.run(probe_capabilities(target))
    assert Capability.TOP_LOGPROBS in report.capabilities
    assert report.alternatives == 2
    with pytest.raises(TargetResponseError, match="holds no answer"):
        ask(target, "one", max_tokens=6)  # another limit is another question
    documents.append(Document("3", "new"))
    assert asyncio.run(scores(target, None)) == [5.0, 7.0, None]
    asyncio.run(target.close())
    assert (tmp_path / "answers.jsonl").read_bytes() == before
    target = opened(f"replay/{tmp_path}?target=echo")
    assert ask(target, "one", max_tokens=5, top_logprobs=2).text == "one!"
    asyncio.run(target.close())


def _batch(name: str, status: int = 200, text: str = "yes") -> dict[str, object]:
    body = {"choices": [{"message": {"content": text}, "logprobs": {"content": _LOGPROBS}}]}
    return {"custom_id": name, "response": {"status_code": status, "body": body}, "error": None}


def test_a_batch_answers_a_question_however_many_alternatives_are_wanted(tmp_path: Path) -> None:
    query = Query("a", max_tokens=3, temperature=1.0, seed=1)
    path = rows(tmp_path, _batch(f"s1-{question_key(query)}"), _batch("s1-other", text="no"))
    target = opened(f"replay/{path}")
    assert asyncio.run(target.ask(replace(query, top_logprobs=5))).text == "yes"
    for other in (replace(query, seed=2), replace(query, max_tokens=4), replace(query, prompt="b")):
        with pytest.raises(TargetResponseError, match="holds no answer"):
            asyncio.run(target.ask(other))
    target.refuse_other("s1")
    with pytest.raises(InputError, match="another audit"):
        target.refuse_other("s2")
    opened(f"replay/{rows(tmp_path, {'prompt': 'a', 'answer': 'x'})}").refuse_other("s2")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"custom_id": "s-k", "response": null, "error": {"code": "expired"}}', "no recorded"),
        (json.dumps(_batch("s-k", 500)), "no recorded"),
        ('{"custom_id": 3, "response": {"status_code": 200}}', ":1 is no recorded answer"),
        ('{"custom_id": "s-k", "response": {"status_code": 200}}', ":1 is no recorded answer"),
        ('{"custom_id": "s-k", "response": {"status_code": 200, "body": {}}}', "no choices"),
        ('["custom_id"]', ":1 is no recorded answer"),
        (json.dumps(_batch("s-k")) + "\n" + json.dumps(_batch("s-k", text="no")), "otherwise"),
    ],
)
def test_unusable_batch_rows_are_named(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        opened(f"replay/{rows(tmp_path, line)}")


def test_a_request_that_failed_may_be_answered_by_a_later_row(tmp_path: Path) -> None:
    name = f"s-{question_key(Query('a'))}"
    path = rows(tmp_path, _batch(name, 429), _batch(name))
    assert ask(opened(f"replay/{path}"), "a").text == "yes"
