"""The journal gives back what it was given, whatever happened in between."""

import math

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, Query, TokenLogprob
from ragwitness.runner.response_store import ResponseStore, query_key

_ANSWER = Answer(
    "a knee",
    (TokenLogprob(" knee", math.log(0.3), ((" knee", math.log(0.3)), (" hip", -2.123456789))),),
    "stop",
    7,
    2,
)


def test_stored_answer_equals_the_one_first_returned(tmp_path) -> None:
    path = tmp_path / "run" / "answers.jsonl"
    with ResponseStore(path) as responses:
        first = responses.put("k", _ANSWER)
    with ResponseStore(path) as again:
        assert again.get("k") == first
    assert first.tokens[0].top[1] == (" hip", -2.123457)


def test_a_line_cut_short_loses_only_itself(tmp_path) -> None:
    path = tmp_path / "answers.jsonl"
    with ResponseStore(path) as responses:
        responses.put("one", _ANSWER)
        responses.put("two", _ANSWER)
    path.write_bytes(path.read_bytes()[:-20])
    with ResponseStore(path) as again:
        assert again.get("one") is not None
        assert again.get("two") is None
        again.put("three", _ANSWER)
    with ResponseStore(path) as last:
        assert len(last) == 2


def test_key_depends_on_everything_that_changes_the_answer() -> None:
    keys = {
        query_key("a", Query("p")),
        query_key("b", Query("p")),
        query_key("a", Query("q")),
        query_key("a", Query("p", max_tokens=1)),
        query_key("a", Query("p", top_logprobs=5)),
    }
    assert len(keys) == 5


def test_unwritable_folder_is_named(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="response store"):
        ResponseStore(tmp_path / "file" / "answers.jsonl")


def test_a_second_process_is_kept_out(tmp_path) -> None:
    with (
        ResponseStore(tmp_path / "answers.jsonl"),
        pytest.raises(InputError, match="Another process"),
    ):
        ResponseStore(tmp_path / "answers.jsonl")
