"""Addresses of targets: schemes, providers by name, keys."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ragwitness.core.errors import InputError, TargetResponseError
from ragwitness.core.types import Answer, Query, Target
from ragwitness.targets.resolve import open_target, target_schemes
from ragwitness.targets.transport import RetryPolicy, TransportOptions
from tests.support.loopback import chat_body, loopback, reply

KEY = "sk-very-secret-0123456789"
OK = reply(chat_body("hello"))
ONCE = TransportOptions(retry=RetryPolicy(retries=0))


def opened(spec: str, options: TransportOptions | None = ONCE) -> Target:
    async def main() -> Target:
        target = await open_target(spec, options)
        await target.close()
        return target

    return asyncio.run(main())


def ask(spec: str, query: Query | None = None) -> Answer:
    async def main() -> Answer:
        target = await open_target(spec, ONCE)
        try:
            return await target.ask(query or Query("q", 5))
        finally:
            await target.close()

    return asyncio.run(main())


@pytest.mark.parametrize("spec", ["", "nonsense", "ftp://host/v1", "C:\\file", "https:/v1", "é/x"])
def test_unknown_forms_are_refused_with_the_known_ones(spec: str) -> None:
    with pytest.raises(InputError) as caught:
        opened(spec)
    for form in target_schemes():
        assert form in caught.value.hint


@pytest.mark.parametrize("spec", [f"htps://user:{KEY}@host/v1", KEY, f"x {KEY}"])
def test_what_may_be_a_secret_is_not_repeated(spec: str) -> None:
    with pytest.raises(InputError) as caught:
        opened(spec)
    assert KEY not in str(caught.value)


def test_openai_goes_to_openai_with_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    target: Any = opened("openai/gpt-4.1")
    assert target.name == "https://api.openai.com/v1#gpt-4.1"
    assert target._client._http.headers["authorization"] == f"Bearer {KEY}"
    assert opened("openai:ft:gpt/x#1").name == "https://api.openai.com/v1#ft:gpt/x#1"
    with pytest.raises(InputError, match="names no model"):
        opened("openai/")


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("?endpoint=responses", "endpoint cannot be 'responses'"),
        ("?api_key=x", "Unknown openai option 'api_key'"),
    ],
)
def test_openai_options_are_checked(option: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        opened(f"openai/m{option}")


def test_a_named_provider_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback(OK) as server:
        monkeypatch.setenv("MY_VLLM_BASE_URL", server.url + "/")
        monkeypatch.setenv("MY_VLLM_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else-0123")
        assert ask("openai-api/my-vllm/org/model").text == "hello"
        assert opened("openai-api/my-vllm/org/model").name == f"{server.url}#org/model"
    assert server.requests[0][1]["model"] == "org/model"
    assert f"Bearer {KEY}" in server.headers[0]
    assert "somebody" not in server.headers[0]


def test_a_named_provider_without_a_key_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback(reply({"data": [{"id": "only"}]}), OK) as server:
        monkeypatch.setenv("LOCAL_BASE_URL", server.url)
        assert ask("openai-api/local").text == "hello"
    assert not any("authorization" in head.lower() for head in server.headers)
    with loopback(reply({}, 401)) as server:
        monkeypatch.setenv("LOCAL_BASE_URL", server.url)
        with pytest.raises(TargetResponseError, match="LOCAL_API_KEY is not set"):
            ask("openai-api/local/m")


@pytest.mark.parametrize("name", ["", "1x", "a b", "a.b", "é"])
def test_impossible_provider_names_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="needs the name of a provider"):
        opened(f"openai-api/{name}/m")


def test_missing_and_unusable_addresses_name_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="NOBODY_BASE_URL is not set"):
        opened("openai-api/nobody/m")
    monkeypatch.setenv("SOME_BASE_URL", f"http://user:{KEY}@host/v1")
    with pytest.raises(InputError, match=r"SOME_BASE_URL: .*password") as caught:
        opened("openai-api/some/m")
    assert KEY not in str(caught.value)


def test_completions_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    logprobs = {"tokens": ["a", "b"], "token_logprobs": [-1, -2], "top_logprobs": [{"a": -1}, None]}
    body = reply({"choices": [{"text": "ab", "logprobs": logprobs, "finish_reason": "stop"}]})
    with loopback(body) as server:
        monkeypatch.setenv("OLD_BASE_URL", server.url)
        spec = "openai-api/old/m?endpoint=completions"
        answer = ask(spec, Query("Once", 7, 0.5, top_logprobs=5, seed=3))
        assert opened(spec).name == f"{server.url}#m?endpoint=completions"
    assert answer.text == "ab"
    assert answer.tokens is not None
    assert answer.tokens[0].top == (("a", -1.0),)
    assert server.requests[0] == (
        "/v1/completions",
        {
            "model": "m",
            "prompt": "Once",
            "max_tokens": 7,
            "temperature": 0.5,
            "logprobs": 5,
            "seed": 3,
        },
    )


@pytest.mark.parametrize("spec", ["lab:x", "hf:m", "gguf:m", "http/x", "python:a:b", "replay/x"])
def test_a_key_is_not_taken_where_none_is_sent(spec: str) -> None:
    with pytest.raises(InputError, match="--key-env and --header do not apply"):
        opened(spec, TransportOptions(key_env="MY_KEY"))


def test_a_key_that_a_target_repeats_does_not_reach_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = {"token": KEY, "logprob": -1.0, "top_logprobs": [{"token": KEY, "logprob": -1.0}]}
    with loopback(reply(chat_body(f"your key is {KEY}", {"content": [row]}))) as server:
        monkeypatch.setenv("BAD_BASE_URL", server.url)
        monkeypatch.setenv("BAD_API_KEY", KEY)
        answer = ask("openai-api/bad/m")
    assert answer.text == "your key is [key]"
    assert KEY not in repr(answer)
