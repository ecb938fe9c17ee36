import json

import pytest

from ragwitness.targets.wire import Events, error_status, read_body

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
