import ast
import asyncio
import json
import math
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ragwitness import rag
from ragwitness.core.errors import ModelError
from ragwitness.core.types import Capability, Query, TokenLogprob
from ragwitness.models.base import Generation
from ragwitness.rag.pipeline import PARALLEL
from ragwitness.rag.server import KEY_VARIABLE, create_app
from ragwitness.rag.target import LabTarget
from ragwitness.runner.capabilities import probe_capabilities
from ragwitness.targets.openai import OpenAITarget
from tests.unit.rag.rag_fakes import CORPUS, FakeModel, make_system, served

HALF = "Maria Keller came on 2024-03-01 with a"
ASK = {"messages": [{"role": "user", "content": HALF}]}
SECRETS = ("microwave", "Nordwind", "BM25", "fake@1", "lexical", "score")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(create_app(make_system(), key="")) as base:
        yield base


def post(url: str, path: str, body: object, **options: Any) -> httpx2.Response:
    return httpx2.post(url + path, json=body, timeout=10, trust_env=False, **options)


def chat(url: str, **more: Any) -> httpx2.Response:
    return post(url, "/chat/completions", ASK | more)


def complete(url: str, **more: Any) -> dict[str, Any]:
    reply = post(url, "/completions", {"prompt": HALF} | more)
    assert reply.status_code == 200, reply.text
    body: dict[str, Any] = reply.json()
    return body


def test_chat_follows_the_protocol(url: str) -> None:
    body = chat(url, max_tokens=3, logprobs=True, top_logprobs=2).json()
    [choice] = body["choices"]
    assert body["object"] == "chat.completion"
    assert body["model"] == "rag"
    assert choice["message"] == {
        "role": "assistant",
        "content": " fever of 39.4",
        "refusal": None,
    }
    assert choice["finish_reason"] == "length"
    first = choice["logprobs"]["content"][0]
    assert first["token"] == " fever"
    assert bytes(first["bytes"]) == b" fever"
    assert math.isclose(first["logprob"], math.log(0.95))
    assert [len(t["top_logprobs"]) for t in choice["logprobs"]["content"]] == [2, 2, 2]
    usage = body["usage"]
    assert usage["completion_tokens"] == 3
    assert usage["prompt_tokens"] == len(HALF.split())  # the passages are not counted
    assert usage["total_tokens"] == usage["prompt_tokens"] + 3


def test_logprobs_come_only_when_asked_for(url: str) -> None:
    assert chat(url).json()["choices"][0]["logprobs"] is None
    entry = chat(url, logprobs=True).json()["choices"][0]["logprobs"]["content"][0]
    assert entry["top_logprobs"] == []


def test_last_user_message_is_the_query_and_parts_are_joined(url: str) -> None:
    parts = [{"type": "text", "text": HALF[:9]}, {"type": "text", "text": HALF[9:]}]
    messages = [
        {"role": "system", "content": "Ignored."},
        {"role": "user", "content": "The contract with"},
        {"role": "assistant", "content": "Nordwind"},
        {"role": "user", "content": parts},
    ]
    body = chat(url, messages=messages, max_completion_tokens=1).json()
    assert body["choices"][0]["message"]["content"] == " fever"


def test_stop_strings_end_the_answer(url: str) -> None:
    body = chat(url, stop=["of"]).json()
    assert body["choices"][0]["message"]["content"] == " fever "


def events(reply: httpx2.Response) -> list[Any]:
    assert reply.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in reply.text.split("\n\n") if line]
    assert lines.pop() == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def test_streamed_chat_says_the_same(url: str) -> None:
    options: dict[str, Any] = {"max_tokens": 4, "logprobs": True, "top_logprobs": 3}
    whole = chat(url, **options).json()["choices"][0]
    stream = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = events(chat(url, **options, **stream))
    assert chunks[-1]["usage"]["completion_tokens"] == 4
    choices = [chunk["choices"][0] for chunk in chunks[:-1]]
    assert "".join(c["delta"].get("content", "") for c in choices) == whole["message"]["content"]
    tokens = [t for c in choices if c["logprobs"] for t in c["logprobs"]["content"]]
    assert tokens == whole["logprobs"]["content"]
    assert choices[-1]["finish_reason"] == "length"
    assert len({chunk["id"] for chunk in chunks}) == 1


def test_a_raw_completion_is_not_streamed(url: str) -> None:
    reply = post(url, "/completions", {"prompt": HALF, "stream": True})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "stream")


def test_echo_gives_teacher_forced_scores_under_the_context(url: str) -> None:
    text = CORPUS[0].text
    choice = complete(url, prompt=text, max_tokens=0, echo=True, logprobs=2)["choices"][0]
    logprobs = choice["logprobs"]
    assert choice["text"] == text == "".join(logprobs["tokens"])
    assert logprobs["token_logprobs"][0] is None
    assert logprobs["top_logprobs"][0] is None
    assert all(len(top) == 2 for top in logprobs["top_logprobs"][1:])
    for token, at in zip(logprobs["tokens"], logprobs["text_offset"], strict=True):
        assert text[at : at + len(token)] == token
    sure = [math.isclose(value, math.log(0.95)) for value in logprobs["token_logprobs"][1:]]
    assert sum(sure) >= len(sure) - 2  # the fake copies after the first of equal words
    outside = complete(url, prompt="Never seen words of nobody", max_tokens=0, echo=True,
                       logprobs=1)["choices"][0]["logprobs"]["token_logprobs"]  # fmt: skip
    assert max(outside[1:]) < math.log(0.05)


def test_echo_with_continuation_and_without_logprobs(url: str) -> None:
    choice = complete(url, max_tokens=2, echo=True, logprobs=0)["choices"][0]
    assert choice["text"] == HALF + " fever of"
    assert choice["logprobs"]["top_logprobs"] is None
    assert len(choice["logprobs"]["token_logprobs"]) == 9
    assert complete(url, max_tokens=0, echo=True, logprobs=1)["usage"]["prompt_tokens"] == 7
    plain = complete(url, max_tokens=2)["choices"][0]
    assert (plain["text"], plain["logprobs"]) == (" fever of", None)
    silent = complete(url, max_tokens=0, echo=True)["choices"][0]
    assert (silent["text"], silent["logprobs"]) == (HALF, None)
    assert complete(url, prompt="", max_tokens=0, echo=True, logprobs=1)["choices"][0]["text"] == ""


BAD = [
    ("/chat/completions", {}, "messages"),
    ("/chat/completions", {"messages": []}, "messages"),
    ("/chat/completions", {"messages": "hello"}, "messages"),
    ("/chat/completions", {"messages": [{"role": "system", "content": "x"}]}, "messages"),
    ("/chat/completions", {"messages": [{"role": "user", "content": "\ud800"}]}, "messages"),
    ("/chat/completions", ASK | {"max_tokens": "9"}, "max_tokens"),
    ("/chat/completions", ASK | {"max_tokens": True}, "max_tokens"),
    ("/chat/completions", ASK | {"max_tokens": 0}, "max_tokens"),
    ("/chat/completions", ASK | {"top_logprobs": 2}, "top_logprobs"),
    ("/chat/completions", ASK | {"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    ("/chat/completions", ASK | {"n": 2}, "n"),
    ("/chat/completions", ASK | {"temperature": -1}, "temperature"),
    ("/chat/completions", ASK | {"stop": 5}, "stop"),
    ("/chat/completions", ASK | {"model": "gpt-9"}, "model"),
    ("/completions", {"prompt": 5}, "prompt"),
    ("/completions", {"prompt": ["a", "b"]}, "prompt"),
    ("/completions", {"prompt": "a", "max_tokens": 0}, "max_tokens"),
    ("/completions", {"prompt": "a", "logprobs": 21}, "logprobs"),
    ("/chat/completions", [], None),
]


@pytest.mark.parametrize(("path", "body", "param"), BAD)
def test_bad_requests_get_the_protocols_error(url: str, path: str, body: Any, param: str) -> None:
    content = json.dumps(body)  # escapes what UTF-8 cannot say
    reply = httpx2.post(url + path, content=content, timeout=10, trust_env=False)
    assert reply.status_code == (404 if param == "model" else 400)
    error = reply.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["param"] == param
    assert "Traceback" not in reply.text


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000])
def test_broken_json_is_a_bad_request(url: str, content: bytes) -> None:
    reply = httpx2.post(url + "/completions", content=content, timeout=10, trust_env=False)
    assert (reply.status_code, reply.json()["error"]["type"]) == (400, "invalid_request_error")


def test_unknown_paths_long_queries_and_huge_bodies(url: str) -> None:
    assert httpx2.get(url + "/nothing", trust_env=False).json()["error"]["message"]
    assert httpx2.get(url + "/completions", trust_env=False).status_code == 405
    reply = chat(url, messages=[{"role": "user", "content": "word " * 999}])
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert post(url, "/completions", {"prompt": "x" * 5_000_000}).status_code == 413


def test_nothing_of_the_inside_is_shown(url: str) -> None:
    replies = [
        chat(url, logprobs=True, top_logprobs=20, max_tokens=2),
        httpx2.get(url + "/models", trust_env=False),
        httpx2.get(url.removesuffix("/v1") + "/health", trust_env=False),
        post(url, "/completions", {"prompt": HALF, "max_tokens": 0, "echo": True, "logprobs": 5}),
    ]
    for reply in replies:
        assert reply.status_code == 200
        assert set(reply.headers) <= {"date", "content-length", "content-type"}
        assert not any(secret in reply.text for secret in SECRETS)


@pytest.mark.parametrize("kind", [RuntimeError, ModelError])
def test_failing_model_shows_nothing_to_who_asks(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = FakeModel()

    def fail(*args: object, **options: object) -> None:
        raise kind("no weights at /secret/path")

    system = make_system(model)
    monkeypatch.setattr(model, "generate", fail)
    with served(create_app(system, key="")) as url:
        reply = chat(url)
    assert reply.status_code == 500
    assert reply.json()["error"]["type"] == "server_error"
    assert "secret" not in reply.text
    [record] = caplog.records
    assert "secret" in record.getMessage()
    assert bool(record.exc_info) == (kind is RuntimeError)


def test_key_from_the_environment_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "lab-key")
    with served(create_app(make_system())) as url:
        assert chat(url).status_code == 401
        for given, status in (("lab-key", 200), ("other", 401)):
            headers = {"Authorization": f"Bearer {given}"}
            reply = post(url, "/chat/completions", ASK, headers=headers)
            assert reply.status_code == status
            assert "lab-key" not in reply.text
        health = httpx2.get(url.removesuffix("/v1") + "/health", trust_env=False)
        assert health.status_code == 200


@pytest.mark.slow
def test_server_answers_while_the_model_works(monkeypatch: pytest.MonkeyPatch) -> None:
    model = FakeModel()
    at_work, done, generate = threading.Event(), threading.Event(), model.generate

    def held(*args: object, **options: object) -> object:
        at_work.set()
        done.wait(30)
        return generate(*args, **options)

    monkeypatch.setattr(model, "generate", held)
    with served(create_app(make_system(model), key="")) as url:
        threads = [threading.Thread(target=chat, args=(url,)) for _ in range(2 * PARALLEL)]
        for thread in threads:
            thread.start()
        assert at_work.wait(30)
        assert httpx2.get(url + "/models", trust_env=False).status_code == 200
        done.set()
        for thread in threads:
            thread.join()
    assert 1 <= model.most_running <= PARALLEL


def test_answers_over_http_equal_those_in_process(url: str) -> None:
    queries = [Query(d.text[: len(d.text) // 2], 6, top_logprobs=20) for d in CORPUS]
    near = LabTarget(make_system())

    async def main() -> None:
        async with await OpenAITarget.connect(url) as far:
            for query in queries:
                assert await far.ask(query) == await near.ask(query)
            there, here = await far.echo(CORPUS[1].text), await near.echo(CORPUS[1].text)
            assert there[1:] == here[1:]
            assert there[0].token == here[0].token
            assert math.isnan(there[0].logprob)
            assert math.isnan(here[0].logprob)

    asyncio.run(main())


def test_probe_sees_the_lab_as_it_is(url: str) -> None:
    async def main() -> None:
        async with await OpenAITarget.connect(url) as target:
            report = await probe_capabilities(target)
        assert report.target == f"{url}#rag"
        # The fake has nothing to say to "Say hello."; it is asked otherwise.
        assert report.capabilities == {
            Capability.TEXT, Capability.TOP_LOGPROBS, Capability.PROMPT_LOGPROBS,
        }  # fmt: skip
        assert report.echo is True

    asyncio.run(main())


def test_split_characters_reach_the_auditor_whole() -> None:
    model = FakeModel()
    tokens = [("", -0.5), ("é", -0.1), ("\ufffd", -0.2), (" x", -0.3)]
    top = (("\ufffd", -0.1), (" y", -3.0))
    said = tuple(TokenLogprob(token, logprob, top) for token, logprob in tokens)
    model.generate = lambda *args, **options: [  # type: ignore[method-assign]
        Generation("é\ufffd x", said, "stop", 3, 4)
    ]

    async def main(url: str) -> None:
        async with await OpenAITarget.connect(url) as target:
            answer = await target.ask(Query(HALF, 4, top_logprobs=2))
        assert answer.tokens == said
        assert "".join(token.token for token in answer.tokens or ()) == answer.text

    with served(create_app(make_system(model), key="")) as url:
        asyncio.run(main(url))
        body = chat(url, max_tokens=4, logprobs=True, top_logprobs=2).json()
    content = body["choices"][0]["logprobs"]["content"]
    assert b"".join(bytes(row["bytes"]) for row in content) == "é\ufffd x".encode()
    assert [other["bytes"] for other in content[0]["top_logprobs"]] == [None, [32, 121]]


def test_only_declared_packages_are_imported() -> None:
    declared = {"httpx2", "numpy", "pydantic", "bm25s", "starlette", "uvicorn", "ragwitness"}
    for path in Path(rag.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found = {name.partition(".")[0] for name in names} - sys.stdlib_module_names
            assert found <= declared, path


def test_a_model_elsewhere_is_asked_as_much_at_a_time_as_it_wants() -> None:
    # More than asyncio's own threads, of which there are four more than cores.
    together = threading.Barrier(32)

    class Waiting(FakeModel):
        callers = 32

        def generate(self, *given: Any, **more: Any) -> list[Generation]:
            if self.calls:  # the first is the system's own, when it is made
                together.wait(20)
            return super().generate(*given, **more)

    async def main() -> None:
        target = LabTarget(make_system(Waiting()))
        await asyncio.gather(*(target.ask(Query(HALF, i + 1)) for i in range(32)))

    asyncio.run(main())
