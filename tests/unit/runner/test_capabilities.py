import asyncio
from itertools import count
from typing import Any

import pytest

from ragwitness.core.errors import TargetResponseError
from ragwitness.core.types import Answer, Capability, Query
from ragwitness.runner.capabilities import (
    CapabilityReport,
    probe_capabilities,
)
from ragwitness.targets.openai import Endpoint, OpenAITarget
from ragwitness.targets.transport import RetryPolicy, TransportOptions
from tests.support.loopback import Step, chat_body, loopback, reply

NO_ECHO = reply({"error": {"message": "no such route"}}, 404)


OK = reply(chat_body("hi"))


def full(alternatives: int) -> bytes:
    tops = [{"token": f"t{i}", "logprob": -1.0 - i} for i in range(alternatives)]
    row = {"token": "hi", "logprob": -0.1, "top_logprobs": tops}
    return reply(chat_body("hi", {"content": [row]}))


def echoed(*values: float | None) -> bytes:
    text = "The quick brown fox jumps over the lazy dog."
    logprobs = {"tokens": [text[:3], text[3:]], "token_logprobs": list(values)}
    return reply({"choices": [{"text": text, "logprobs": logprobs}]})


def probe(*steps: Step) -> CapabilityReport:
    async def main(url: str) -> CapabilityReport:
        options = TransportOptions(retry=RetryPolicy(retries=0))
        async with await OpenAITarget.connect(f"{url}#m", options) as target:
            clock = count()
            return await probe_capabilities(target, timer=lambda: next(clock) * 0.25)

    with loopback(*steps) as server:
        return asyncio.run(main(server.url))


def test_everything_is_there() -> None:
    report = probe(full(20), echoed(None, -1.0))
    assert report.capabilities == {
        Capability.TEXT, Capability.TOP_LOGPROBS, Capability.PROMPT_LOGPROBS,
    }  # fmt: skip
    assert (report.logprobs, report.alternatives) == (True, 20)
    assert (report.echo, report.dropped_logprobs, report.notes) == (True, False, ())
    assert (report.latency, report.requests, report.text) == (0.25, 2, "hi")
    assert report.target.endswith("#m")


def test_dropped_logprobs_are_named() -> None:
    report = probe(reply(chat_body("hi")), NO_ECHO)
    assert report.capabilities == {Capability.TEXT}
    assert report.dropped_logprobs
    assert report.echo is False
    assert any("No log-probabilities came back" in note for note in report.notes)


def test_twenty_refused_five_given() -> None:
    refused = reply({"error": {"message": "top_logprobs must be at most 5"}}, 400)
    report = probe(refused, full(5), NO_ECHO)
    assert (report.alternatives, report.requests) == (5, 3)
    assert any("at most 5" in note for note in report.notes)


def test_logprobs_refused_altogether() -> None:
    refused = reply({"error": {"message": "logprobs are not supported"}}, 400)
    report = probe(refused, refused, reply(chat_body("hi")), NO_ECHO)
    assert report.capabilities == {Capability.TEXT}
    assert (report.alternatives, report.dropped_logprobs) == (0, False)


def test_chosen_token_alone_and_fewer_alternatives_are_noted() -> None:
    assert "no alternatives" in probe(full(0), NO_ECHO).notes[0]
    assert "20 alternatives were asked for, 4 came" in probe(full(4), NO_ECHO).notes[0]


@pytest.mark.parametrize("step", [reply(chat_body("hi")), reply({"choices": [{"text": "x"}]})])
def test_echo_that_is_ignored_is_no_echo(step: Any) -> None:
    assert probe(full(20), step).echo is False


def test_target_that_does_not_answer_raises() -> None:
    with pytest.raises(TargetResponseError):
        probe(reply({}, 500))


def test_empty_answer_is_asked_otherwise_before_anything_is_missing() -> None:
    empty = reply(chat_body("", {"content": []}))
    report = probe(empty, full(20), NO_ECHO)
    assert report.capabilities == {Capability.TEXT, Capability.TOP_LOGPROBS}
    assert (report.text, report.requests, report.alternatives) == ("hi", 3, 20)
    assert (report.silence, any("text" in note for note in report.notes)) == ("", False)
    silent = probe(empty, empty, NO_ECHO)
    assert silent.capabilities == {Capability.TEXT}
    assert "Its answers have no text: it said nothing." in silent.notes
    failing = probe(empty, reply({}, 500), NO_ECHO)
    assert failing.text == ""
    assert any("status 500" in note for note in failing.notes)


def test_target_without_echo_is_not_asked_for_it() -> None:
    class Plain:
        name = "plain"
        capabilities = frozenset({Capability.TEXT})

        async def ask(self, query: Query) -> Answer:
            return Answer("hi", contexts=("a",))

        async def close(self) -> None: ...

    report = asyncio.run(probe_capabilities(Plain()))
    assert report.echo is None
    assert report.capabilities == {Capability.TEXT, Capability.CONTEXTS}
    assert (report.requests, report.dropped_logprobs) == (1, False)
    # It has no place for such a wish, so nothing was left out.
    assert report.notes == ()


def test_what_is_written_after_an_echo_is_left_out() -> None:
    text = "The quick brown fox jumps over the lazy dog."
    logprobs = {"tokens": ["<s>", text[:9], text[9:], "!"], "token_logprobs": [None, -1, -2, -3]}
    body = {"choices": [{"text": text + "!", "logprobs": logprobs}]}
    with loopback(reply(body)) as server:
        target = OpenAITarget(Endpoint(server.url, "m"))
        tokens = asyncio.run(target.echo(text))
    assert [token.token for token in tokens] == [text[:9], text[9:]]
    # None at all means no limit to llama.cpp's server.
    assert server.requests[0][1]["max_tokens"] == 1
    assert probe(full(20), reply(body)).echo is True


@pytest.mark.parametrize(
    ("message", "finish", "why"),
    [
        ({"tool_calls": [{"function": {"name": "search"}}]}, "stop", "called a tool"),
        ({"function_call": {"name": "search"}}, "function_call", "called a tool"),
        ({}, "content_filter", "content filter"),
    ],
)
def test_what_never_says_anything_gives_no_text(message: Any, finish: str, why: str) -> None:
    body = chat_body(content=None, **message)
    body["choices"][0]["finish_reason"] = finish
    report = probe(reply(body), reply(body), NO_ECHO)
    assert why in report.silence
    assert report.capabilities == set()


def test_a_hidden_thought_gets_room_for_its_answer() -> None:
    body = chat_body("")
    body["choices"][0]["finish_reason"] = "length"
    with loopback(reply(body), OK, NO_ECHO) as server:

        async def main() -> CapabilityReport:
            async with await OpenAITarget.connect(f"{server.url}#m") as target:
                return await probe_capabilities(target)

        assert asyncio.run(main()).text == "hi"
    assert [sent["max_tokens"] for _, sent in server.requests] == [8, 1032, 1]


def test_what_was_learned_of_its_dialect_is_told() -> None:
    refused = reply({"error": {"message": "'temperature' does not support 0"}}, 400)
    report = probe(refused, OK, NO_ECHO)
    assert "It refuses the temperature" in report.notes[-1]
