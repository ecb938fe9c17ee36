"""Chat models behind an endpoint or in a GGUF file, and everything that is none."""

from __future__ import annotations

import asyncio
import gc
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragwitness.core.errors import (
    CapabilityError,
    InputError,
    ModelError,
    RagwitnessError,
    TargetError,
)
from ragwitness.core.types import Capability, Document, Message, Query, Role
from ragwitness.models import model_registry as registry
from ragwitness.models.base import ChatPrompt, PromptTooLongError
from ragwitness.models.endpoint import CONTEXT_VARIABLE, THREADS_VARIABLE, GgufModel
from ragwitness.models.model_registry import load_language_model
from ragwitness.rag.lab import lab_target, open_model, rag_config
from tests.support.loopback import Step, chat_body, loopback, reply

ASKED = ChatPrompt((Message(Role.SYSTEM, "Be short."), Message(Role.USER, "Which door?")))
TOKENS = {"content": [{"token": "Door", "logprob": -0.5, "top_logprobs": []}]}
FINE = reply(chat_body("Door", TOKENS))
NO_LIST = reply({"error": {"message": "no list"}}, 404)
CORPUS = [Document(f"d{i}", f"Door {i} opens with the code {i}{i}{i}. " * 8) for i in range(6)]


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (CONTEXT_VARIABLE, THREADS_VARIABLE, "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(registry, "_loaded", {})
    yield
    registry._loaded.clear()


@pytest.fixture(autouse=True, scope="module")
def _collected() -> Iterator[None]:
    yield
    gc.collect()


def listed(**said: Any) -> bytes:
    return reply({"data": [{"id": "other", "n_ctx": 1}, {"id": "m", **said}]})


def test_a_conversation_is_sent_whole_and_read_with_its_probabilities() -> None:
    with loopback(NO_LIST, FINE) as server:
        model = load_language_model(f"{server.url}#m")
        (found,) = model.generate(
            [ASKED], max_tokens=7, temperature=0.5, top_logprobs=3, stop=["\n"], seed=4
        )
    assert server.requests[1] == (
        "/v1/chat/completions",
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be short."},
                {"role": "user", "content": "Which door?"},
            ],
            "max_tokens": 7,
            "temperature": 0.5,
            "logprobs": True,
            "top_logprobs": 3,
            "stop": ["\n"],
            "seed": 4,
        },
    )
    assert model.name == f"{server.url}#m"
    assert (found.text, found.prompt_tokens, found.completion_tokens) == ("Door", 3, 1)
    assert [(token.token, token.logprob) for token in found.tokens] == [("Door", -0.5)]


def test_several_prompts_are_asked_at_once_and_answered_in_order() -> None:
    with loopback(NO_LIST, FINE) as server:
        found = load_language_model(f"{server.url}#m").generate([ASKED] * 5, max_tokens=1)
    assert [one.text for one in found] == ["Door"] * 5
    assert len(server.requests) == 6


def test_what_the_endpoint_does_not_count_is_counted_here() -> None:
    body = chat_body("Door one") | {"usage": None}
    with loopback(NO_LIST, reply(body)) as server:
        (found,) = load_language_model(f"{server.url}#m").generate([ASKED], max_tokens=1)
    assert found.prompt_tokens >= 4
    assert found.completion_tokens >= 2


@pytest.mark.parametrize(
    ("models", "length"),
    [
        (listed(meta={"n_ctx": 8192, "n_ctx_train": 32768}), 8192),  # llama.cpp
        (listed(max_model_len=2048), 2048),  # vLLM
        (listed(context_window=131072), 131072),
        (listed(n_ctx=True, context_length="8k", meta="none"), 4096),  # nothing that can be read
        (listed(), 4096),
        (NO_LIST, 4096),
    ],
)
def test_the_context_is_what_the_endpoint_says(models: bytes, length: int) -> None:
    with loopback(models) as server:
        assert load_language_model(f"{server.url}#m").context_length == length


def test_the_context_may_be_said_by_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTEXT_VARIABLE, "777")
    with loopback(listed(max_model_len=2048)) as server:
        assert load_language_model(f"{server.url}#m").context_length == 777
    assert not server.requests  # nothing had to be asked
    monkeypatch.setenv(CONTEXT_VARIABLE, "8k")
    with loopback(FINE) as server, pytest.raises(InputError, match="8k"):
        load_language_model(f"{server.url}#m")


def test_a_key_is_named_as_for_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback(NO_LIST, FINE) as server:
        monkeypatch.setenv("MY_VLLM_BASE_URL", server.url)
        monkeypatch.setenv("MY_VLLM_API_KEY", "key-of-vllm")
        load_language_model("openai-api/my-vllm/m").generate([ASKED], max_tokens=1)
        load_language_model(f"{server.url}#m").generate([ASKED], max_tokens=1)
    keys = ["bearer key-of-vllm" in head.lower() for head in server.headers]
    assert keys == [True, True, False, False]


@pytest.mark.parametrize(
    "said",
    [
        "request (6031 tokens) exceeds the available context size (4096 tokens)",  # llama.cpp
        "This model's maximum context length is 4096 tokens.",  # OpenAI, vLLM
        "prompt is too long: 210000 tokens > 200000 maximum",
        "`inputs` tokens + `max_new_tokens` must be <= 4096.",
    ],
)
def test_a_refusal_for_length_is_too_long(said: str) -> None:
    refusal = reply({"error": {"message": said}}, 400)
    with loopback(NO_LIST, FINE, refusal) as server:
        address = f"{server.url}#m"
        target = lab_target(CORPUS, rag_config(generator=address, k=1), "none")
        with pytest.raises(PromptTooLongError, match=r"\d"):
            load_language_model(address).generate([ASKED], max_tokens=1)
        # Of a system of ours it is the same error as of a model that counts by itself.
        with pytest.raises(TargetError, match=r"\d") as caught:
            asyncio.run(target.ask(Query("Which door?")))
    assert "Shorten the query" in caught.value.hint


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (reply({"error": {"message": "Not Found"}}, 404), "404"),
        (reply({"error": {"message": "The model is a base model: no chat template"}}, 400), "base"),
        (reply({"choices": [{"text": "completed"}]}), "no message"),
        (reply(b"<html>Welcome</html>", kind="text/html"), "HTML"),
        (reply(b"<html>Nothing here</html>", 404, kind="text/html"), "HTML"),
        (reply(b"hello"), "not JSON"),
    ],
    ids=["404", "completion-only", "completion", "web page", "web page 404", "no JSON"],
)
def test_an_endpoint_that_is_no_chat_model_is_named_before_anything_is_asked(
    step: Step, said: str
) -> None:
    with loopback(NO_LIST, step) as server, pytest.raises(TargetError, match=said) as caught:
        lab_target(CORPUS, rag_config(generator=f"{server.url}#m"), "none")
    assert server.url in caught.value.message or "The target" in caught.value.message
    assert "must answer chats: URL#MODEL" in caught.value.hint
    assert len(server.requests) == 2
    assert "door" not in str(server.requests).lower()  # no word of the corpus


def test_it_does_not_score_and_says_what_does() -> None:
    with loopback(NO_LIST, FINE) as server:
        model = load_language_model(f"{server.url}#m")
        with pytest.raises(CapabilityError, match="cannot score") as caught:
            model.score(["a text"])
        assert f"{server.url}#m" in caught.value.message
        assert "--proxy reader" in caught.value.hint
        for prompt in (ChatPrompt((), "a text"), ChatPrompt(ASKED.messages, "Door")):
            with pytest.raises(CapabilityError, match="does not go on"):
                model.generate([prompt], max_tokens=1)
    assert len(server.requests) == 1


def test_a_system_on_it_claims_no_scores_of_prompts() -> None:
    with loopback(NO_LIST, FINE) as server:
        target = lab_target(CORPUS, rag_config(generator=f"{server.url}#m", k=1), "none")
        assert target.capabilities == {Capability.TEXT, Capability.TOP_LOGPROBS}
        with pytest.raises(CapabilityError):
            asyncio.run(target.echo("a text"))
        answer = asyncio.run(target.ask(Query("Which door?", top_logprobs=2)))
    assert answer.tokens is not None
    assert answer.tokens[0].logprob == -0.5


def test_log_probabilities_that_do_not_come_are_none() -> None:
    with loopback(NO_LIST, reply(chat_body("Door"))) as server:
        target = lab_target(CORPUS, rag_config(generator=f"{server.url}#m", k=1), "none")
        answer = asyncio.run(target.ask(Query("Which door?", top_logprobs=2)))
    assert (answer.text, answer.tokens) == ("Door", None)


def test_a_context_too_small_for_the_passages_is_named_before_anything_is_asked() -> None:
    with loopback(listed(max_model_len=512), FINE) as server:
        address = f"{server.url}#m"
        with pytest.raises(InputError, match="reads 512 tokens, but 4 passages") as caught:
            lab_target(CORPUS, rag_config(generator=address), "none")
        assert "fewer passages" in caught.value.hint
        lab_target(CORPUS, rag_config(generator=address, k=1), "none")
        lab_target(CORPUS, rag_config(generator=address, retrieve=False), "none")
    assert "door" not in str(server.requests).lower()


def test_a_role_may_be_played_by_any_model() -> None:
    with loopback(FINE) as server:
        assert asyncio.run(_said(f"{server.url}#m")) == "Door"
    reader = asyncio.run(open_model("reader"))
    assert reader.name.startswith("lab:")
    with pytest.raises(ModelError, match="no file"):
        asyncio.run(open_model("gguf:/nothing.gguf"))
    with pytest.raises(InputError, match="There is no target"):
        asyncio.run(open_model("nothing"))


async def _said(address: str) -> str:
    target: Any = await open_model(address)
    try:
        return str((await target.ask(Query("Which door?"))).text)
    finally:
        await target.close()


def test_nobody_there() -> None:
    with loopback(FINE) as server:
        pass
    with pytest.raises(InputError):
        load_language_model("http://user:secret@host/v1#m")
    assert server.requests == []


# GGUF files that cannot be used; what a whole one answers is in tests/real.


def gguf(architecture: str) -> bytes:
    """Return a file of the format without tensors."""
    key = b"general.architecture"
    value = architecture.encode()
    pair = struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, len(value)) + value
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + pair


@pytest.mark.parametrize(
    "data",
    [gguf("perceptron"), gguf("llama")[:40], b"PK\x03\x04 a zip archive", b""],
    ids=["unknown architecture", "cut short", "no GGUF", "empty"],
)
def test_a_file_that_cannot_be_loaded(
    data: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("xllamacpp")
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    with pytest.raises(ModelError) as caught:
        load_language_model(f"gguf:{path}")
    assert str(path) in caught.value.message
    assert "sha256" in caught.value.hint
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_a_file_that_is_not_there_and_a_library_that_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelError, match="no file") as caught:
        load_language_model(f"gguf:{tmp_path / 'none.gguf'}")
    assert "make chat" in caught.value.hint
    (tmp_path / "a.gguf").write_bytes(gguf("llama"))
    monkeypatch.setitem(__import__("sys").modules, "xllamacpp", None)
    with pytest.raises(RagwitnessError, match="not installed") as lacking:
        GgufModel(str(tmp_path / "a.gguf"))
    assert "ragwitness[chat]" in lacking.value.hint


def test_threads_that_are_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xllamacpp")
    monkeypatch.setenv(THREADS_VARIABLE, "0")
    (tmp_path / "a.gguf").write_bytes(gguf("llama"))
    with pytest.raises(InputError, match=THREADS_VARIABLE):
        load_language_model(f"gguf:{tmp_path / 'a.gguf'}")
