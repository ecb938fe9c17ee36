import json
import math
from typing import Any

import pytest

from ragwitness.core.errors import TargetResponseError
from ragwitness.core.types import TokenLogprob
from ragwitness.targets.wire import (
    Events,
    drop_after,
    drop_before,
    error_status,
    read_body,
    read_chat,
    read_completion,
    read_models,
)
from tests.support.loopback import chat_body


def entry(token: str, logprob: float | None = -0.5, data: bytes | None = None, **more: Any) -> Any:
    return {"token": token, "logprob": logprob, "bytes": list(data) if data else None} | more


def test_chat_is_read_whole() -> None:
    tops = [{"token": " b", "logprob": -3.0}, {"token": " a", "logprob": -0.5}]
    answer = read_chat(chat_body(" a", {"content": [entry(" a", top_logprobs=tops)]}))
    assert answer.text == " a"
    assert answer.tokens == (TokenLogprob(" a", -0.5, ((" a", -0.5), (" b", -3.0))),)
    assert (answer.finish_reason, answer.prompt_tokens, answer.completion_tokens) == ("stop", 3, 1)


@pytest.mark.parametrize("logprobs", [None, {}, {"content": None}, {"content": "x"}, []])
def test_missing_logprobs_are_none(logprobs: Any) -> None:
    assert read_chat(chat_body("a", logprobs)).tokens is None


def test_what_is_refused_says_so_and_what_is_answered_does_not() -> None:
    refused = read_chat(chat_body(content=None, refusal="It is against the policy of this house."))
    assert refused.finish_reason == "content_filter"
    assert read_chat(chat_body(content="Yes.", refusal=None)).finish_reason != "content_filter"


def test_refusal_is_an_answer() -> None:
    body = chat_body(content=None, refusal="I cannot.", logprobs={"refusal": [entry("I")]})
    answer = read_chat(body)
    assert answer.text == "I cannot."
    assert answer.tokens is not None
    assert answer.tokens[0].token == "I"
    assert read_chat(chat_body(content=None)).text == ""


def test_content_in_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"type": "image"}]
    assert read_chat(chat_body(content=parts)).text == "ab"


def test_characters_split_between_tokens_are_put_together() -> None:
    whole = "né→😀 x"
    data = [b"n", b"\xc3", b"\xa9", b"\xe2\x86", b"\x92\xf0\x9f", b"\x98\x80", b" x"]
    rows = [entry(d.decode("utf-8", "replace"), data=d) for d in data]
    tokens = read_chat(chat_body(whole, {"content": rows})).tokens
    assert tokens is not None
    assert [t.token for t in tokens] == ["n", "", "é", "", "→", "😀", " x"]


def test_broken_tokens_without_usable_bytes_stay_as_they_are() -> None:
    for data in (None, b"\xff", b"\xc3"):
        rows = [entry("\ufffd", data=data), entry("a", data=b"a")]
        tokens = read_chat(chat_body("?a", {"content": rows})).tokens
        assert [t.token for t in tokens or ()] == ["\ufffd", "a"]
    real = [entry("\ufffd", data="\ufffd".encode())]
    assert (read_chat(chat_body("\ufffd", {"content": real})).tokens or ())[0].token == "\ufffd"


def test_alternatives_use_bytes_where_their_text_is_broken() -> None:
    tops = [entry("\ufffd", -1.0, "é".encode()), entry("\ufffd", -2.0, b"\xc3"), entry("z", None)]
    tokens = read_chat(chat_body("a", {"content": [entry("a", top_logprobs=tops)]})).tokens
    assert tokens is not None
    assert tokens[0].top == (("é", -1.0), ("\ufffd<c3>", -2.0))


def test_unknown_logprob_is_nan_and_minus_infinity_stays() -> None:
    rows = [entry("a", None), entry("b", -math.inf), entry("c", -9999)]
    values = [t.logprob for t in read_chat(chat_body("abc", {"content": rows})).tokens or ()]
    assert math.isnan(values[0])
    assert values[1:] == [-math.inf, -9999.0]


@pytest.mark.parametrize("bad", [1000, 0.5, 10**400, -(10**400), math.nan, math.inf, "-1", True])
def test_numbers_that_are_no_logprob_are_unknown_not_evidence(bad: Any) -> None:
    tops = [entry("x", bad), entry("y", -2.0)]
    body = chat_body("a", {"content": [entry("a", bad, top_logprobs=tops)]})
    [token] = read_chat(body).tokens or ()
    assert math.isnan(token.logprob)
    assert token.top == (("y", -2.0),)
    logprobs = {"tokens": ["a"], "token_logprobs": [bad], "top_logprobs": [{"x": bad, "y": -2.0}]}
    [token] = read_completion({"choices": [{"text": "a", "logprobs": logprobs}]}).tokens or ()
    assert math.isnan(token.logprob)
    assert token.top == (("y", -2.0),)


def test_rounding_above_zero_is_certainty() -> None:
    tokens = read_chat(chat_body("a", {"content": [entry("a", 1e-7)]})).tokens
    assert [token.logprob for token in tokens or ()] == [0.0]


def test_legacy_completion_is_read_whole() -> None:
    logprobs = {
        "tokens": ["a", " b"],
        "token_logprobs": [None, -0.1],
        "top_logprobs": [None, {" c": -3.0, " b": -0.1}],
        "text_offset": [0, 1],
    }
    body = {"choices": [{"text": "a b", "logprobs": logprobs, "finish_reason": "length"}]}
    answer = read_completion(body)
    assert answer.tokens is not None
    assert math.isnan(answer.tokens[0].logprob)
    assert answer.tokens[1] == TokenLogprob(" b", -0.1, ((" b", -0.1), (" c", -3.0)))
    assert (answer.text, answer.finish_reason, answer.prompt_tokens) == ("a b", "length", None)
    assert read_completion({"choices": [{"text": "", "logprobs": None}]}).tokens is None
    # Some servers send the chat's shape here too.
    entry = {"token": "a", "logprob": -1.0, "top_logprobs": [{"token": "b", "logprob": -2.0}]}
    body = {"choices": [{"text": "a", "logprobs": {"content": [entry]}}]}
    assert read_completion(body).tokens == (TokenLogprob("a", -1.0, (("b", -2.0),)),)


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "x",
        {},
        {"choices": None},
        {"choices": ["x"]},
        {"choices": [{}]},
        {"choices": [{"message": "x"}]},
        {"choices": [{"message": {"content": 5}}]},
        chat_body("a", {"content": [{"logprob": 1}]}),
        chat_body("a", {"content": ["x"]}),
    ],
)
def test_other_shapes_are_named(body: Any) -> None:
    with pytest.raises(TargetResponseError, match="another shape"):
        read_chat(body)


def test_other_shapes_of_completions_and_models_are_named() -> None:
    for body in ({"choices": [{"text": None}]}, {"choices": [{"text": "a", "logprobs": {
        "tokens": ["a"], "token_logprobs": []}}]}):  # fmt: skip
        with pytest.raises(TargetResponseError, match="another shape"):
            read_completion(body)
    with pytest.raises(TargetResponseError, match="list of models"):
        read_models({"data": None})
    assert read_models({"data": [{"id": "a"}, {"id": 3}, "x"]}) == ["a"]


def test_echo_is_told_from_an_answer_and_start_tokens_are_left_out() -> None:
    def tokens(*words: str) -> tuple[TokenLogprob, ...]:
        return tuple(TokenLogprob(word, -1.0) for word in words)

    assert drop_before(tokens("<s>", "a", " b"), "a b") == tokens("a", " b")
    assert drop_before(tokens("a", " \ufffd"), "a é") == tokens("a", " \ufffd")
    assert drop_before(tokens("Hello", "!"), "a b") == ()
    assert drop_before(tokens("a"), "a b c d") == ()
    assert drop_before((), "a b") == ()
    assert drop_after(tokens("a", " b", " c"), "a b") == tokens("a", " b")
    assert drop_after(tokens("a", " b"), "a b") == tokens("a", " b")
    assert drop_after((), "a b") == ()
    pieces = tokens("a", " \ufffd", "\ufffd", "\ufffd", " b")  # one character in three tokens
    assert drop_after(pieces, "a 🔭 b") == pieces
    assert drop_after((*pieces, tokens(" c")[0]), "a 🔭 b") == pieces


@pytest.mark.parametrize("said", [-1, -(10**9), 10**12, True, 3.5, "many", None, [7]])
def test_what_is_no_count_of_tokens_is_unknown(said: object) -> None:
    usage = {"prompt_tokens": said, "completion_tokens": 0}
    answer = read_completion({"choices": [{"text": "a"}], "usage": usage})
    assert (answer.prompt_tokens, answer.completion_tokens) == (None, 0)


# Bodies of replies.

WORDS = {"text": "für"}


def test_json_is_read_in_utf_8_whatever_its_header_says() -> None:
    utf8 = json.dumps(WORDS, ensure_ascii=False).encode()
    for kind in ("application/json", "", "application/json; charset=latin-1"):
        assert read_body(kind, utf8) == WORDS
    assert read_body("application/json", b"\xef\xbb\xbf" + utf8) == WORDS


def test_json_in_another_encoding_is_read_where_that_is_named() -> None:
    latin = json.dumps(WORDS, ensure_ascii=False).encode("latin-1")
    assert read_body('application/json; charset="ISO-8859-1"', latin) == WORDS
    for kind in ("application/json", "application/json; charset=klingon"):
        with pytest.raises(UnicodeDecodeError):
            read_body(kind, latin)


@pytest.mark.parametrize(
    ("kind", "body", "events"),
    [
        ("text/event-stream", b'data: {"a": 1}\n\ndata: [DONE]\n\n', [{"a": 1}]),
        ("text/event-stream", b": hi\r\n\r\nid: 1\r\ndata: a\r\ndata: b\r\n\r\n", ["a\nb"]),
        ("text/event-stream", b"data: the end is cut\n", ["the end is cut"]),
        ("text/plain", b"event: x\ndata: 1\n\n", [1]),
        ("application/x-ndjson", b'{"a": 1}\n\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
    ],
)
def test_a_stream_is_read_into_its_events(kind: str, body: bytes, events: list[object]) -> None:
    found = read_body(kind, body)
    assert isinstance(found, Events)
    assert found == events


def test_an_error_within_a_stream_is_that_error() -> None:
    body = b'data: {"a": 1}\n\ndata: {"error": {"code": 500}}\n\n'
    assert read_body("text/event-stream", body) == {"error": {"code": 500}}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"code": 429}, 429),
        ({"code": "503"}, 503),
        ({"status": "RESOURCE_EXHAUSTED"}, 429),
        ({"type": "invalid_request_error"}, 400),
        ("Rate limit reached", 429),
        ({"message": "The model said 418 words."}, None),
        ({"code": 7}, None),
        (["x"], None),
        (None, None),
    ],
)
def test_the_status_that_an_error_means(error: object, status: int | None) -> None:
    assert error_status({"error": error}) == status


def test_what_is_no_error_has_no_status() -> None:
    assert error_status([]) is None
    assert error_status({"code": 500}) is None
