"""The words of an answer are read at the right places of a document, and only there."""

import math

import pytest

from ragwitness.core.types import Interval, TokenLogprob
from ragwitness.membership.response_parsing.probabilities import (
    UNREAD,
    probability_at,
    token_at,
)
from ragwitness.membership.response_parsing.replies import align, said_at
from ragwitness.text.words import split_words

_TEXT = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu"


def _tokens(text: str, p: float = 0.5, **listed: dict[str, float]) -> list[TokenLogprob]:
    return [
        TokenLogprob(
            f" {word}",
            math.log(p),
            tuple((f" {t}", math.log(v)) for t, v in {word: p, **listed.get(word, {})}.items()),
        )
        for word in text.split()
    ]


def _read(tokens: list[TokenLogprob], *wanted: str) -> list[Interval]:
    """The probability of each word of the second half that is wanted, where the answer has it."""
    words = split_words(_TEXT)
    said = split_words("".join(token.token for token in tokens))
    places = align(words, 6, [word.text for word in said])
    read = {
        words[index].text: probability_at(
            tokens[token_at(tokens, said[place].start) :], words[index].text
        )
        for index, place in places.items()
    }
    return [read.get(word, UNREAD) for word in wanted]


def test_verbatim_continuation_gives_every_word() -> None:
    read = _read(_tokens("eta theta iota kappa lambda mu", 0.7), "theta", "mu")
    assert [item.low for item in read] == pytest.approx([0.7, 0.7])


def test_answer_that_repeats_the_whole_paragraph_is_read_too() -> None:
    read = _read(_tokens(_TEXT, 0.6), "theta")
    assert read[0].low == pytest.approx(0.6)


def test_first_word_behind_the_prefix_is_read_although_the_answer_departs() -> None:
    tokens = _tokens("other words altogether", other={"eta": 0.3})
    assert _read(tokens, "eta")[0].low == pytest.approx(0.3)


def test_words_behind_a_departure_stay_unread() -> None:
    tokens = _tokens("eta something else entirely")
    assert _read(tokens, "kappa", "mu") == [UNREAD, UNREAD]


def test_answer_that_returns_to_the_document_is_read_again() -> None:
    tokens = _tokens("eta wrong iota kappa lambda mu", 0.8, wrong={"theta": 0.1})
    theta, mu = _read(tokens, "theta", "mu")
    assert (theta.low, mu.low) == (pytest.approx(0.1), pytest.approx(0.8))


def test_words_of_several_tokens_are_found_by_their_place() -> None:
    pieces = [" eta", " the", "ta", " io", "ta"]
    tokens = [TokenLogprob(t, math.log(0.5), ((t, math.log(0.5)),)) for t in pieces]
    read = _read(tokens, "theta", "iota")
    assert [item.low for item in read] == pytest.approx([0.25, 0.25])


def test_a_word_in_common_by_chance_is_not_read() -> None:
    tokens = _tokens("then severe mu came and theta of it", 0.9)
    assert _read(tokens, "theta", "iota", "mu") == [UNREAD] * 3


def test_empty_answer_reads_nothing() -> None:
    assert _read([], "theta") == [UNREAD]


def test_a_word_behind_the_first_sentence_of_an_answer_is_not_the_next_word() -> None:
    words = split_words("The patient took ibuprofen. Later ibuprofen helped")
    assert said_at(words, "ibuprofen", "What was it that he took of the") == [0, 3]
    assert said_at(words, "helped", "What was it that he took of the") == [0]
