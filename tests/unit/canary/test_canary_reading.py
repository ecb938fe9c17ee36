"""What is read of one answer, and how a prompt is put together."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragwitness.canary.probe import (
    TAIL,
    ProbeConfig,
    Prompts,
    next_piece,
    read_continuation,
    read_hits,
    read_piece,
)
from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, TokenLogprob
from ragwitness.targets.form import TEMPLATE


def _answer(*tokens: str) -> Answer:
    return Answer("", tuple(TokenLogprob(t, -1.0) for t in tokens))


@pytest.mark.parametrize(
    ("tokens", "alone", "said"),
    [
        (("a", ":", " Z", "XY", TAIL), ("a", ":"), None),
        (("a", ": Z", "XY", TAIL), ("a", ":"), "merges the canary with its prefix"),
        (("a", ":", " Z", "XY and", " so forth"), ("a", ":"), "merges the canary with what"),
        (("a", ":", " Z", "XY", TAIL), ("a:",), "splits the prefix otherwise"),
        (("a", ":", " Z", "X", TAIL), ("a", ":"), "merges the canary with its prefix"),
        ((":", " \ufffd", "\ufffd", TAIL), (":",), "merges the canary with its prefix"),
        ((), ("a",), "no log-probabilities of the prompt"),
    ],
)
def test_the_split_must_be_the_same_with_and_without_the_canary(
    tokens: tuple[str, ...], alone: tuple[str, ...], said: str | None
) -> None:
    found = read_continuation(_answer(*tokens), " ZXY", _answer(*alone).tokens)
    assert (found.trouble is None) == (said is None)
    assert said is None or said in (found.trouble or "")
    if said is None:
        assert (found.value, found.tokens) == (-2.0, 2)


def test_a_missing_number_is_a_trouble_and_never_zero() -> None:
    tokens = (TokenLogprob(" Z", math.nan), TokenLogprob(TAIL, -1.0))
    found = read_continuation(Answer("", tokens), " Z")
    assert math.isnan(found.value)
    assert found.trouble == "the target left out a log-probability of the canary"
    assert read_continuation(Answer("", error="HTTP 500"), " Z").trouble == "HTTP 500"


def test_numbers_of_another_token_than_the_one_written_are_a_trouble() -> None:
    def said(text: str, token: str) -> object:
        return read_piece(Answer(text, (TokenLogprob(token, -1.0, ((" Z", -2.0),)),)), " Z")

    assert said(" word", ",") == "the target's log-probabilities are not those of what it wrote"
    for text, token in ((" word", " word"), ("word", " word"), ("", "</s>"), ("🔭", "\ufffd")):
        assert said(text, token) == (-2.0, False)
    assert read_piece(Answer("", error="HTTP 500"), " Z") == "HTTP 500"
    assert read_piece(Answer("x"), " Z") == "the target returned no log-probabilities"
    ended = Answer("", finish_reason="stop")
    assert read_piece(ended, " Z") == (pytest.approx(math.log(0.5)), True)


def test_the_next_piece_is_the_likeliest_that_fits_or_one_character() -> None:
    top = ((" ZX", -2.0), (" Z", -3.0), ("ZXY", -1.0), ("", -1.0), (" ", -1.0))
    answer = Answer("x", (TokenLogprob(" word", -0.5, top),))
    assert next_piece([answer], " ZXY") == " ZX"
    assert next_piece([answer], "QQ") == "Q"
    assert next_piece([answer], " QQ") == " Q"
    stopped = Answer("", finish_reason="stop")
    assert next_piece([stopped, answer], " ZXY") == " ZX"


def test_answers_that_failed_are_no_trials_and_too_many_are_a_trouble() -> None:
    said, failed, empty = Answer("FINAL: zxy"), Answer("", error="HTTP 500"), Answer(" ")
    assert read_hits([said, said, Answer("FINAL: no"), failed], " ZXY").value == 2 / 3
    assert read_hits([said, failed, failed], " ZXY").trouble == "HTTP 500"
    assert read_hits([empty, empty], " ZXY").trouble == "the target answered with nothing"


@given(st.text(max_size=60), st.text(max_size=30))
@settings(max_examples=80, deadline=None)
def test_a_prompt_holds_document_and_query_as_they_are(document: str, query: str) -> None:
    made = Prompts(frame="<u>{prompt}<a>").framed(document, query, "FINAL:")
    before, after = TEMPLATE.split("{context}")
    assert made == f"<u>{before}{document}{after.replace('{question}', query)}<a>FINAL:"


@pytest.mark.parametrize(
    "changed",
    [
        {"template": "{context}"},
        {"template": "{context} {context} {question}"},
        {"frame": "no place"},
    ],
)
def test_a_template_without_a_place_is_refused(changed: dict[str, str]) -> None:
    with pytest.raises(InputError, match="exactly once"):
        Prompts(**changed)


@pytest.mark.parametrize("changed", [{"way": "guess"}, {"samples": 0}, {"alternatives": 0}])
def test_ways_and_numbers_that_are_none_are_refused(changed: dict[str, object]) -> None:
    with pytest.raises(InputError):
        ProbeConfig(**changed)  # type: ignore[arg-type]


def test_an_infinite_number_is_a_trouble_and_no_alternative() -> None:
    tokens = (TokenLogprob(" Z", -math.inf), TokenLogprob(TAIL, -1.0))
    found = read_continuation(Answer("", tokens), " Z")
    assert found.trouble == "the target gives the canary an infinite log-probability"
    top = ((" Z", -math.inf), ("x", -2.0))
    assert read_piece(Answer("x", (TokenLogprob("x", -2.0, top),)), " Z") == (-2.0, True)
