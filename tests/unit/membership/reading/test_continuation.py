"""Single-answer mode reads the right positions of an answer, and only those."""

import math

import pytest

from ragwitness.membership.reading.probabilities import UNREAD
from ragwitness.membership.srag import ProbeWord, Segmented, read_probes
from ragwitness.text.words import split_words
from ragwitness.types import Interval, TokenLogprob

_TEXT = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu"


def _segmented(*probes: str) -> Segmented:
    words = split_words(_TEXT)
    chosen = [ProbeWord(w, i, 0.01) for i, w in enumerate(words) if w.text in probes]
    return Segmented(_TEXT, tuple(words), 6, tuple(chosen), (3.0, 5.0, 5.0, 5.0, 5.0, 5.0))


def _tokens(text: str, p: float = 0.5, **listed: dict[str, float]) -> list[TokenLogprob]:
    return [
        TokenLogprob(
            f" {word}",
            math.log(p),
            tuple((f" {t}", math.log(v)) for t, v in {word: p, **listed.get(word, {})}.items()),
        )
        for word in text.split()
    ]


def _read(segmented: Segmented, tokens: list[TokenLogprob]) -> list[Interval]:
    return list(read_probes(segmented, tokens).probabilities)


def test_verbatim_continuation_gives_every_word() -> None:
    read = _read(_segmented("theta", "mu"), _tokens("eta theta iota kappa lambda mu", 0.7))
    assert [item.low for item in read] == pytest.approx([0.7, 0.7])


def test_answer_that_repeats_the_whole_paragraph_is_read_too() -> None:
    read = _read(_segmented("theta"), _tokens(_TEXT, 0.6))
    assert read[0].low == pytest.approx(0.6)


def test_first_word_behind_the_prefix_is_read_although_the_answer_departs() -> None:
    tokens = _tokens("other words altogether", other={"eta": 0.3})
    assert _read(_segmented("eta"), tokens)[0].low == pytest.approx(0.3)


def test_words_behind_a_departure_stay_unread() -> None:
    tokens = _tokens("eta something else entirely")
    assert _read(_segmented("kappa", "mu"), tokens) == [UNREAD, UNREAD]


def test_answer_that_returns_to_the_document_is_read_again() -> None:
    tokens = _tokens("eta wrong iota kappa lambda mu", 0.8, wrong={"theta": 0.1})
    theta, mu = _read(_segmented("theta", "mu"), tokens)
    assert (theta.low, mu.low) == (pytest.approx(0.1), pytest.approx(0.8))


def test_words_of_several_tokens_are_found_by_their_place() -> None:
    pieces = [" eta", " the", "ta", " io", "ta"]
    tokens = [TokenLogprob(t, math.log(0.5), ((t, math.log(0.5)),)) for t in pieces]
    read = _read(_segmented("theta", "iota"), tokens)
    assert [item.low for item in read] == pytest.approx([0.25, 0.25])


def test_a_word_in_common_by_chance_is_not_read() -> None:
    tokens = _tokens("then severe mu came and theta of it", 0.9)
    assert _read(_segmented("theta", "iota", "mu"), tokens) == [UNREAD] * 3


def test_empty_answer_reads_nothing() -> None:
    assert _read(_segmented("theta"), []) == [UNREAD]


@pytest.mark.parametrize(
    ("said", "recovered", "run"),
    [
        ("eta theta iota kappa lambda mu", 1.0, 6),
        (_TEXT, 1.0, 6),
        ("eta theta iota and no more", 13 / 28, 3),
        ("eta something iota kappa lambda mu", 23 / 28, 4),
        ("nothing of the kind", 0.0, 0),
        ("mu by chance", 0.0, 0),
        ("", 0.0, 0),
    ],
)
def test_recovered_surprisal_weighs_the_words_said_in_place(said, recovered, run) -> None:
    found = read_probes(_segmented("theta"), _tokens(said))
    assert found.recovered == pytest.approx(recovered)
    assert found.run == run


def test_log_odds_include_the_word_where_the_answer_departs() -> None:
    tokens = _tokens("eta theta other", 0.5, other={"iota": 0.25})
    found = read_probes(_segmented("mu"), tokens)
    expected = (math.log(0.5) + 3.0) + (math.log(0.5) + 5.0) + (math.log(0.25) + 5.0)
    assert found.log_odds == pytest.approx(expected)
    assert found.probabilities == (UNREAD,)
