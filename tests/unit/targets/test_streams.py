"""An answer is whole or it is no answer: how streams, choices and bodies are read."""

import gzip
import json
import socket
import time
import zlib
from typing import Any

import pytest

from ragwitness.core.errors import TargetError
from ragwitness.targets.transport import RetryPolicy
from ragwitness.targets.wire import Events, error_in, join_chunks, join_texts, read_body, read_chat
from tests.support.loopback import Step, chat_body, loopback, reply
from tests.unit.targets.test_failures import ask, failure

pytestmark = pytest.mark.face("streams")


def stream(
    *events: object, end: str = "data: [DONE]\n\n", kind: str = "text/event-stream"
) -> bytes:
    lines = (f"data:{json.dumps(event)}\n\n" for event in events)
    return reply("".join([*lines, end]).encode(), kind=kind)


def piece(content: Any, ends: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {} if content is None else {"content": content}
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": ends} | more]}


def text_of(step: Step, **options: Any) -> str:
    with loopback(step) as server:
        return ask(server.url, **options).text


@pytest.mark.parametrize(
    "events",
    [
        [piece("The brass "), piece("lamp hangs in the ha")],
        [piece("The brass lamp.", ""), {"choices": [], "usage": {"prompt_tokens": 4}}],
        [piece([{"type": "text", "text": "The br"}])],
        [],
    ],
)
def test_a_stream_without_an_end_is_no_answer(events: list[object]) -> None:
    assert "broke off before its end" in failure(stream(*events, end="")).message


def test_a_stream_that_says_either_that_it_ended_or_why_is_whole() -> None:
    assert text_of(stream(piece("The brass lamp."))) == "The brass lamp."
    whole = stream(piece("The brass "), piece("lamp."), piece(None, "length"), end="")
    assert text_of(whole) == "The brass lamp."


def test_a_stream_that_broke_off_is_asked_for_again() -> None:
    with loopback(stream(piece("The br"), end=""), stream(piece("The brass lamp."))) as server:
        answer = ask(server.url, retry=RetryPolicy(retries=1, first=0.01))
    assert answer.text == "The brass lamp."


@pytest.mark.parametrize(
    ("events", "whole"),
    [
        ([{"t": "a"}, {"t": "b"}], True),  # nothing says when it ends
        ([{"t": "a", "done": False}, {"t": "b", "done": False}], False),
        ([{"t": "a", "done": False}, {"done": True}], True),
        ([{"delta": {"t": "a", "stop_reason": None}}], False),
        ([{"t": "a", "done": False}, {"type": "message_stop"}], True),
        ([{"t": "a", "is_end": 0}, {"t": "", "is_end": 1}], True),
    ],
)
def test_a_stream_of_another_protocol_ends_by_its_own_fields(
    events: list[object], whole: bool
) -> None:
    assert Events(events).is_whole(says_so=False) is whole


@pytest.mark.parametrize(
    "body",
    [
        chat_body("Yes", "x") | {"choices": [{"message": {"content": "Yes"}, "error": "lost"}]},
        {"choices": [{"message": {"content": "Yes"}, "finish_reason": "error"}]},
        {"choices": [{"message": {"content": "Yes"}, "finish_reason": "abort"}]},
        {"type": "error", "message": "upstream is gone"},
        chat_body("Yes") | {"errors": [{"message": "upstream is gone"}]},
        {"object": "error", "code": 502, "message": "upstream is gone"},
        chat_body("Yes") | {"status": "failed"},
        {"choices": [{"message": {"content": "Ye", "error": {"message": "upstream is gone"}}}]},
        {"choices": [{"status": "cancelled", "message": {"content": "Ye"}}]},
    ],
)
def test_an_error_in_a_reply_or_its_choice_is_no_answer(body: object) -> None:
    assert isinstance(failure(reply(body)), TargetError)
    with loopback(stream(piece("Ye"), body)) as server, pytest.raises(TargetError):
        ask(server.url)


def test_an_event_that_is_named_an_error_is_one() -> None:
    assert read_body("", b"data: a\n\nevent: error\ndata: no room\n\n") == {"error": "no room"}
    assert error_in({"choices": [{"finish_reason": "stop"}], "error": None}) is None


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["A", "A tin", "A tin box", "A tin box."], "A tin box."),
        (["A tin", "A tin box"], "A tin box"),
        (["A tin box.", "A tin box."], "A tin box."),
        (["A tin ", "box.", "A tin box."], "A tin box."),
        (["", "A", "A tin", "A tin"], "A tin"),
        (["ha", "ha"], "haha"),
        (["1", "10"], "110"),
        (["A tin ", "box."], "A tin box."),
        (["a", "b", "ab"], "abab"),
        (["A ", "A tin", "No", "No, a box", "No, a box."], "No, a box."),  # begun anew
        (["\ud83d", "\ude00"], "\U0001f600"),  # halves of one character
        ([], ""),
    ],
)
def test_a_text_that_grows_with_every_event_is_said_once(pieces: list[str], text: str) -> None:
    assert join_texts(pieces) == text
    chunks = [piece(part) for part in pieces] or [piece("")]
    assert read_chat(join_chunks([*chunks, piece(None, "stop")])).text == text


def _of(index: int, content: str, ends: str | None = None) -> dict[str, Any]:
    return {"index": index, "delta": {"content": content}, "finish_reason": ends}


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([[_of(0, "A ")], [_of(1, "No ")], [_of(0, "tin", "stop")], [_of(1, "box")]], "A tin"),
        ([[_of(1, "No"), _of(0, "A ")], [_of(0, "tin", "stop"), _of(1, "", "length")]], "A tin"),
        ([[_of(2, "A ")], [_of(2, "tin", "stop")]], "A tin"),
        ([[_of(0, "A ")], [_of(1, "No", "stop")]], None),  # another choice has ended
        ([[_of(0, "A tin", "stop")], [_of(1, "N", "error")]], "A tin"),
    ],
)
def test_a_further_choice_is_an_answer_of_its_own(rows: list[Any], text: str | None) -> None:
    events = [{"choices": row} for row in rows]
    if text is None:
        assert "broke off" in failure(stream(*events, end="")).message
    else:
        assert text_of(stream(*events, end="")) == text
    whole = {"choices": [{"index": n, "message": {"content": f"{n}"}} for n in (1, 0)]}
    assert text_of(reply(whole)) == "0"


def test_a_whole_message_behind_its_pieces_is_said_once() -> None:
    last = {"choices": [{"message": {"content": "A tin"}, "finish_reason": "stop"}]}
    assert text_of(stream(piece("A "), piece("tin"), last)) == "A tin"
    parts = [{"choices": [{"message": {"content": part}}]} for part in ("A ", "tin")]
    assert text_of(stream(*parts)) == "A tin"
    texts = [{"choices": [{"text": part}]} for part in ("A ", "tin")]
    assert text_of(stream(*texts)) == "A tin"  # as /completions sends them


@pytest.mark.parametrize(
    ("between", "end"),
    [("\r", "[DONE]"), ("\r\n", "[DONE]"), ("\n", '"[DONE]"'), ("\n\n", "[done]")],
)
def test_events_without_an_empty_line_between_are_read(between: str, end: str) -> None:
    rows = [json.dumps(piece("A ")), json.dumps(piece("tin")), end]
    body = "".join(f"data: {row}{between}" for row in rows)
    assert text_of(reply(body.encode(), kind="text/event-stream")) == "A tin"


def test_words_that_begin_like_json_are_words() -> None:
    body = b'data: 12 men\n\ndata: "so" he said\n\ndata: true story\n\n'
    assert read_body("text/event-stream", body) == ["12 men", '"so" he said', "true story"]


def test_pieces_may_be_texts_or_lists_of_parts() -> None:
    thought = {"type": "reasoning", "text": "hm"}
    parts = ["A ", [thought], [{"type": "text", "text": "tin "}, "bo"], "x"]
    assert read_chat(join_chunks([piece(part) for part in parts])).text == "A tin box"


def test_usage_of_a_stream_is_read_in_every_spelling() -> None:
    for usage in ({"prompt_tokens": 12.0, "completion_tokens": "3"}, {"input_tokens": 12}):
        with loopback(stream(piece("x", "stop"), {"choices": [], "usage": usage})) as server:
            assert ask(server.url).prompt_tokens == 12


@pytest.mark.parametrize(
    "kind", ["text/event-stream", "text/plain; charset=utf-8", "application/json", ""]
)
@pytest.mark.parametrize(
    "begin", ["", ": waking up\n\n", "id: 7\n", "retry:5\r\n", "\ufeff", "\n\n"]
)
def test_a_stream_is_one_whatever_it_is_called_and_begins_with(begin: str, kind: str) -> None:
    body = f"{begin}data:" + json.dumps(piece("Für", "stop")) + "\n\n:on\n\ndata:[DONE]"
    assert text_of(reply(body.encode(), kind=kind)) == "Für"


def test_lines_of_json_are_a_stream_whatever_they_are_called() -> None:
    rows = [{"t": "a"}, {"t": "b\n\x1e"}]
    for between in ("\n", "", "\r\n\r\n", "\n\x1e"):
        body = between.join(json.dumps(row, indent=1) for row in rows).encode()
        for kind in ("text/plain", "application/json", "application/x-ndjson", ""):
            assert read_body(kind, body) == rows
    assert read_body("text/plain", b'{"t": "a"}\n[DONE]\n').ended
    with pytest.raises(ValueError, match="Unterminated"):
        read_body("text/plain", b'{"t": "a"}\n{"t": "b')


@pytest.mark.parametrize(
    "end", [b"data:[DONE]\n\n", b"data:  [DONE]\r\n\r\n", b"\rdata: [DONE]\r\r"]
)
def test_a_connection_that_stays_open_behind_the_end_does_not_matter(end: bytes) -> None:
    left: list[bytes] = []

    def step(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 X\r\nContent-Type: text/plain\r\n\r\n")
        connection.sendall(f"data:{json.dumps(piece('hello'))}\n\n".encode() + end)
        left.append(connection.recv(1))  # nothing, once the client has left

    with loopback(step) as server:
        assert ask(server.url).text == "hello"
        while not left:
            time.sleep(0.01)
    assert left == [b""]


def test_a_body_in_another_encoding_is_read_where_that_is_named() -> None:
    body = f"data: {json.dumps(piece('Für', 'stop'), ensure_ascii=False)}\n\n"
    assert (
        text_of(reply(body.encode("latin-1"), kind="text/event-stream; charset=latin-1")) == "Für"
    )
    assert text_of(reply(json.dumps(chat_body("Für")).encode("utf-16"))) == "Für"


def _packed() -> list[tuple[str, bytes]]:
    import brotli

    data = json.dumps(chat_body("A tin box.")).encode()
    return [
        ("gzip", gzip.compress(data)),
        ("deflate", zlib.compress(data)),
        ("br", brotli.compress(data)),
        ("", gzip.compress(data)),
        ("x-gzip", gzip.compress(data)),
        ("gzip", gzip.compress(gzip.compress(data))),
    ]


@pytest.mark.parametrize(("coding", "body"), _packed())
def test_a_compressed_body_is_read_whether_or_not_it_says_so(coding: str, body: bytes) -> None:
    named = {"Content_Encoding": coding} if coding else {}
    assert text_of(reply(body, **named)) == "A tin box."


def test_a_compression_that_cannot_be_read_is_named() -> None:
    error = failure(reply(b"\x01\x02\x03", Content_Encoding="lzip"))
    assert "Content-Encoding (lzip)" in error.message
    assert "uncompressed" in failure(reply(chat_body(), Content_Encoding="gzip")).hint


def test_a_small_compressed_body_does_not_fill_the_memory() -> None:
    error = failure(reply(gzip.compress(bytes(2**22))), largest_body=2**20)
    assert "more than 1 MB" in error.message
