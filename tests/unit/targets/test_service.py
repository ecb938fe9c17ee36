"""Any JSON service, as its owner describes it."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from ragwitness.core.errors import (
    CapabilityError,
    InputError,
    RagwitnessError,
    TargetResponseError,
    TargetUnreachableError,
)
from ragwitness.core.types import Answer, Capability, Query
from ragwitness.runner.capabilities import probe_capabilities
from ragwitness.targets.resolve import open_target
from ragwitness.targets.service_config import fill, places
from ragwitness.targets.transport import RetryPolicy, TransportOptions
from tests.support.loopback import Step, loopback, reply

SECRET = "s3nt1nel-value-of-a-key"  # unlike any known form of a key
ONCE = TransportOptions(retry=RetryPolicy(retries=0))
NASTY = 'Say "x" {session} {{prompt}} {env:MY_KEY} \\ \n </s> \ud800 ü'

PLAIN = """
[request]
url = "URL/ask"
headers = { X-Api-Key = "{env:MY_KEY}" }
body = '{"question": "{prompt}", "limit": "{max_tokens}", "seed": "{seed}"}'

[response]
text = "$.answer"
"""

SESSION = """
[[step]]
url = "URL/login"
headers = { X-Api-Key = "{env:MY_KEY}" }
body = '{}'
keep = { token = "$.auth.token" }

[[step]]
method = "PUT"
url = "URL/sessions"
headers = { Authorization = "Bearer {token}" }
keep = { session = "$.id" }

[request]
url = "URL/sessions/{session}/ask"
headers = { Authorization = "Bearer {token}" }
body = '{"text": "{prompt}"}'

[response]
text = "$.answers[0].text"
contexts = "$.answers[0].sources[*].passage"
"""


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)


class Described:
    """A description in a file, asked of a server."""

    def __init__(self, folder: Path, text: str, *steps: Step) -> None:
        self.file, self.text, self.steps = folder / "service.toml", text, steps
        self.requests: list[tuple[str, Any]] = []
        self.headers: list[str] = []
        self.name = ""

    def ask(self, *queries: Query, options: TransportOptions = ONCE) -> list[Answer]:
        async def main() -> list[Answer]:
            target = await open_target(f"http/{self.file}", options)
            self.name = target.name
            try:
                return [await target.ask(query) for query in queries or (Query("hi"),)]
            finally:
                await target.close()

        with loopback(*self.steps) as server:
            self.requests, self.headers = server.requests, server.headers
            url = server.url.removesuffix("/v1")
            self.file.write_text(self.text.replace("URL", url), encoding="utf-8")
            return asyncio.run(main())

    def failure(self, kind: type[RagwitnessError] = TargetResponseError) -> RagwitnessError:
        with pytest.raises(kind) as caught:
            self.ask()
        error = caught.value
        assert "\n" not in str(error)
        assert SECRET not in str(error) + repr(error)
        assert error.__cause__ is None
        return error


def test_a_prompt_is_put_into_parsed_json(tmp_path: Path) -> None:
    service = Described(tmp_path, PLAIN, reply({"answer": "yes"}))
    (answer,) = service.ask(Query(NASTY, 7))
    assert answer == Answer("yes")
    assert service.requests == [("/ask", {"question": NASTY, "limit": 7, "seed": None})]
    assert f"x-api-key: {SECRET}" in service.headers[0].lower()
    assert service.headers[0].startswith("POST ")


def test_the_prompt_in_an_address_is_escaped(tmp_path: Path) -> None:
    text = '[request]\nurl = "URL/a/{prompt}?q={prompt}&k={{b}}"\n[response]\ntext = "$"\n'
    service = Described(tmp_path, text, reply(b'"[1, 2]"'))
    (answer,) = service.ask(Query("../x y?&ü"))
    assert answer.text == "[1, 2]"  # a text, not JSON to be read again
    assert service.headers[0].startswith("GET /a/..%2Fx%20y%3F%26%C3%BC?q=..%2Fx%20y%3F%26%C3%BC")
    assert "content-type" not in service.headers[0].lower()


def test_every_query_is_a_session_of_its_own(tmp_path: Path) -> None:
    def answer(text: str) -> bytes:
        found = {"text": text, "sources": [{"passage": "one"}, {"passage": None}]}
        return reply({"answers": [found]})

    login = reply({"auth": {"token": "tok-aaaa"}})
    again = reply({"auth": {"token": "tok-bbbb"}})
    service = Described(
        tmp_path, SESSION, login, reply({"id": 7}), answer("you sent tok-aaaa"),
        again, reply({"id": "x/8"}), answer("two"),
    )  # fmt: skip
    first, second = service.ask(Query("a"), Query("b"))
    assert [path for path, _ in service.requests] == [
        "/login", "/sessions", "/sessions/7/ask", "/login", "/sessions", "/sessions/x%2F8/ask",
    ]  # fmt: skip
    assert "Bearer tok-aaaa" in service.headers[2]
    assert "Bearer tok-bbbb" in service.headers[5]
    assert SECRET not in service.headers[2]  # the key goes where it is named alone
    assert service.headers[1].startswith("PUT ")
    assert first == Answer("you sent [key]", contexts=("one",), channels=(("sources", "one"),))
    assert second.text == "two"


def test_contexts_may_stand_in_lists_and_may_be_none(tmp_path: Path) -> None:
    text = PLAIN + 'contexts = "$.docs"\n'
    body = {"answer": "x", "docs": ["a", 3, "b"]}
    service = Described(tmp_path, text, reply(body), reply({"answer": "x"}))
    assert [a.contexts for a in service.ask(Query("a"), Query("b"))] == [("a", "b"), ()]


_ROWS = [
    {"token": "he", "logprob": -0.1, "top_logprobs": [{"token": "he", "logprob": -0.1}]},
    {"token": "llo", "logprob": -0.2, "top_logprobs": []},
]


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        ('logprobs = "$.x"', _ROWS),
        ('logprobs = "$.x[*]"', _ROWS),
        ('logprobs = "$.x"', {"content": _ROWS}),
        ('logprobs = "$.x"', {"tokens": ["he", "llo"], "token_logprobs": [-0.1, -0.2]}),
    ],
)
def test_logprobs_in_every_shape(tmp_path: Path, paths: str, found: object) -> None:
    service = Described(tmp_path, PLAIN + paths, reply({"answer": "hello", "x": found}))
    (answer,) = service.ask()
    assert answer.tokens is not None
    assert [(t.token, t.logprob) for t in answer.tokens] == [("he", -0.1), ("llo", -0.2)]


def test_one_token_is_not_taken_for_none(tmp_path: Path) -> None:
    text = PLAIN + 'logprobs = "$.x[*]"'
    (answer,) = Described(tmp_path, text, reply({"answer": "he", "x": _ROWS[:1]})).ask()
    assert answer.tokens is not None
    assert answer.tokens[0].top == (("he", -0.1),)


def test_dropped_logprobs_are_none(tmp_path: Path) -> None:
    (answer,) = Described(tmp_path, PLAIN + 'logprobs = "$.x"', reply({"answer": "x"})).ask()
    assert answer.tokens is None


def test_doctor_sees_what_is_there(tmp_path: Path) -> None:
    text = PLAIN + 'contexts = "$.docs"\nlogprobs = "$.x"'
    file = tmp_path / "s.toml"

    async def main() -> frozenset[Capability]:
        target = await open_target(f"http/{file}", ONCE)
        claimed = target.capabilities
        try:
            assert (await probe_capabilities(target)).capabilities == claimed
        finally:
            await target.close()
        return claimed

    with loopback(reply({"answer": "hello", "docs": ["a"], "x": _ROWS})) as server:
        file.write_text(text.replace("URL", server.url))
        assert len(asyncio.run(main())) == 3


def test_the_name_is_the_description_and_holds_no_secret(tmp_path: Path) -> None:
    service = Described(tmp_path, PLAIN, reply({"answer": "x"}))
    names = []
    for key in (SECRET, "another-value"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MY_KEY", key)
            service.ask()
        names.append(re.sub(r":\d+", "", service.name))
        assert key not in service.name
    assert names[0].startswith("http/127.0.0.1/ask#")
    service.text = PLAIN.replace("$.answer", "$['answer']")
    service.ask()
    assert re.sub(r":\d+", "", service.name) != names[0]


def test_a_secret_that_the_service_repeats_reaches_neither_answer_nor_error(tmp_path: Path) -> None:
    (answer,) = Described(tmp_path, PLAIN, reply({"answer": f"key {SECRET}!"})).ask()
    assert answer.text == "key [key]!"
    escaped = json.dumps({"answer": SECRET}).replace("s3nt", "\\u00733nt").encode()
    (answer,) = Described(tmp_path, PLAIN, reply(escaped)).ask()
    assert answer.text == "[key]"
    for step in (
        reply({"error": f"bad key {SECRET}"}, 401),
        reply({"error": f"bad key {SECRET}"}, 422),
        reply({"error": f"bad key {SECRET}"}),
        reply({"error": f"bad key {SECRET}"}, 500),
        reply({SECRET: 1}),
        reply(b"x" * 70 + SECRET.encode()),
        reply({"answer": {SECRET: 1}}),
    ):
        Described(tmp_path, PLAIN, step).failure()


def test_a_kept_token_does_not_reach_an_error(tmp_path: Path) -> None:
    token = "another-sentinel-of-a-session"
    login, made = reply({"auth": {"token": token}}), reply({"id": 1})
    for step in (reply({"error": f"expired: {token}"}, 400), reply({token: 1})):
        error = Described(tmp_path, SESSION, login, made, step).failure()
        assert token not in str(error)


def test_refused_access_names_the_variables(tmp_path: Path) -> None:
    error = Described(tmp_path, PLAIN, reply({}, 403)).failure()
    assert "refuses access (status 403)" in error.message
    assert "MY_KEY" in error.hint


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (reply({"reply": "x"}), "response.text ($['answer']) finds nothing in a reply with reply"),
        (reply({"answer": None}), "finds null"),
        (reply({"answer": 3}), "finds a int, not a text"),
        (reply({}), "a reply with no field"),
        (reply([]), "finds nothing"),
        (reply(b"3"), "finds nothing"),
        (reply({}, 404), "status 404"),
        (reply(b"<html>", kind="text/html"), "answered with HTML (a web page), not JSON."),
        (reply(b"dato: x"), "not JSON (it begins 'dato: x')"),
    ],
)
def test_other_replies_are_named(tmp_path: Path, step: bytes, says: str) -> None:
    error = Described(tmp_path, PLAIN, step).failure()
    assert says in error.message
    assert "service.toml: request" in error.hint
    assert "#" not in error.hint


def test_several_answers_are_no_answer(tmp_path: Path) -> None:
    text = PLAIN.replace("$.answer", "$.answers[*]")
    error = Described(tmp_path, text, reply({"answers": ["a", "b"]})).failure()
    assert "finds 2 values" in error.message


def test_refused_logprobs_and_lost_connections_keep_their_kind(tmp_path: Path) -> None:
    refused = reply({"error": "logprobs not allowed"}, 400)
    Described(tmp_path, PLAIN, refused).failure(CapabilityError)

    def cut(connection: socket.socket) -> None:
        connection.close()

    Described(tmp_path, PLAIN, cut).failure(TargetUnreachableError)


def test_a_busy_service_is_asked_again(tmp_path: Path) -> None:
    busy = reply({}, 503, Retry_After="0")
    service = Described(tmp_path, PLAIN, busy, reply({"answer": "x"}))
    policy = RetryPolicy(retries=2, first=0.01)
    assert service.ask(options=TransportOptions(retry=policy))[0].text == "x"
    assert len(service.requests) == 2


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[request]", "[request", "is not TOML"),
        ("[response]", "[reply]", "response: Field required"),
        ('text = "$.answer"', 'txt = "$.answer"', "response.text: Field required"),
        ('text = "$.answer"', 'text = "$.answer"\nfoo = 1', "response.foo: Extra inputs"),
        ('url = "URL/ask"', 'url = "URL/ask"\nmethod = "BREW"', "request.method"),
        ("$.answer", "answer", "response.text is not a JSONPath"),
        ("$.answer", "", "response.text: String should have at least 1"),
        ("$.answer", "$.a | $.b", "response.text is not a JSONPath"),
        ("{prompt}", "{promt}", "nothing fills {promt}"),
        ("{prompt}", "prompt", "no request holds {prompt}"),
        ('"{prompt}"', "{prompt}", "body is not JSON"),
        ("URL", "ftp://host", "the url cannot be used"),
        ("URL", "http://{prompt}", "the url cannot be used"),
        ("URL", f"http://user:{SECRET}@host", "the url cannot be used"),
        ("URL", "http://host:port", "the url cannot be used"),
        ("/ask", "/ask?key={env:MY_KEY}", "the url names an environment variable"),
        ("MY_KEY", "NO_SUCH_KEY", "NO_SUCH_KEY is not set"),
        ('"{env:MY_KEY}"', '"{prompt}"', "a header cannot carry {prompt}"),
        ('"{env:MY_KEY}"', f'"{SECRET}"', "X-Api-Key holds its value openly"),
        ('"limit"', f'"api_key": "{SECRET}", "limit"', "api_key holds its value openly"),
        ("[response]", 'keep = { a = "$.a" }\n[response]', "nothing follows it"),
    ],
)  # fmt: skip
def test_unusable_descriptions_are_named(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in PLAIN
    service = Described(tmp_path, PLAIN.replace(old, new), reply({"answer": "x"}))
    error = service.failure(InputError)
    assert says in error.message
    assert not service.requests


@pytest.mark.parametrize("name", ["prompt", "a b", "1x"])
def test_kept_values_have_names_of_their_own(tmp_path: Path, name: str) -> None:
    text = SESSION.replace("{ session =", f'{{ "{name}" =')
    assert "cannot be called" in Described(tmp_path, text).failure(InputError).message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for spec in (f"http/{tmp_path}/none.toml", "http/", f"http/{tmp_path}"):
        with pytest.raises(InputError, match="cannot be read"):
            asyncio.run(open_target(spec))


def test_key_that_no_header_can_carry_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "schlüssel-schlüssel")
    error = Described(tmp_path, PLAIN).failure(InputError)
    assert "schlüssel" not in str(error)
    assert "MY_KEY" in error.message


def test_a_kept_value_that_no_header_can_carry_is_an_error(tmp_path: Path) -> None:
    login = reply({"auth": {"token": "a\r\nX-Evil: 1"}})
    assert "no header can carry" in Described(tmp_path, SESSION, login).failure().message


def test_templates() -> None:
    values = {"a": 1, "b": "{a}", "env:C": "c"}
    assert fill({"x": ["{a}", "{b}{a}", None, 2], "{a}": "{{a}} {env:C}"}, values) == {
        "x": [1, "{a}1", None, 2],
        "{a}": "{a} c",
    }
    text = '{"a": 1} {} {1} {{x}} {prompt}'
    assert list(places({"k": [text, "{env:X}"]})) == ["prompt", "env:X"]


STREAM = """
[request]
url = "URL/ask"
headers = { X-Api-Key = "{env:MY_KEY}" }
body = '{"question": "{prompt}"}'

[response]
text = "$.delta.text"
contexts = "$.sources[*].passage"
"""


def events(*rows: object) -> bytes:
    lines = [f"event: piece\ndata: {json.dumps(row)}\n\n" for row in rows]
    return reply("".join(lines).encode(), kind="text/event-stream")


def test_a_stream_is_joined_by_its_paths(tmp_path: Path) -> None:
    rows = (
        {"sources": [{"passage": "one"}, {"passage": "two"}]},
        {"delta": {"text": "It "}},
        {"delta": {"text": "rains."}},
        {"usage": 3},
    )
    (answer,) = Described(tmp_path, STREAM, events(*rows)).ask()
    shown = (("sources", "one"), ("sources", "two"))
    assert answer == Answer("It rains.", contexts=("one", "two"), channels=shown)
    lines = "\n".join(map(json.dumps, rows)).encode()
    (answer,) = Described(tmp_path, STREAM, reply(lines, kind="application/x-ndjson")).ask()
    assert answer.text == "It rains."
    plain = STREAM.replace("$.delta.text", "$").replace('contexts = "$.sources[*].passage"', "")
    words = reply(b"data: It\n\ndata:  rains.\n\n", kind="text/event-stream")
    (answer,) = Described(tmp_path, plain, words).ask()
    assert answer.text == "It rains."


def test_a_stream_without_the_text_is_named(tmp_path: Path) -> None:
    error = Described(tmp_path, STREAM, events({"token": "x"})).failure()
    assert "finds nothing in its stream" in error.message
    failed = Described(tmp_path, STREAM, events({"error": "out of memory"})).failure()
    assert "answered with an error: out of memory" in failed.message


def test_a_secret_that_is_spread_over_a_stream_reaches_no_answer(tmp_path: Path) -> None:
    rows = ({"delta": {"text": part}} for part in (SECRET[:5], SECRET[5:]))
    (answer,) = Described(tmp_path, STREAM, events(*rows)).ask()
    assert answer.text == "[key]"


def test_a_text_in_parts_is_joined(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    (answer,) = Described(tmp_path, PLAIN, reply({"answer": parts})).ask()
    assert answer.text == "ab"


def test_headers_of_the_command_line_do_not_go_to_a_described_service(tmp_path: Path) -> None:
    service = Described(tmp_path, PLAIN, reply({"answer": "x"}))
    with pytest.raises(InputError, match="--header do not apply"):
        service.ask(options=TransportOptions(headers=("a=MY_KEY",)))
