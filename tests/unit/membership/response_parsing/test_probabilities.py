"""Reading a word's probability from listed and unlisted tokens."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwitness.core.types import Interval, TokenLogprob
from ragwitness.membership.response_parsing.probabilities import (
    UNREAD,
    unseen_bound,
    word_probability,
)


def token(chosen: str, p: float, **others: float) -> TokenLogprob:
    top = sorted({chosen: p, **others}.items(), key=lambda item: -item[1])
    return TokenLogprob(chosen, math.log(p), tuple((t, math.log(v)) for t, v in top))


def exactly(p: float) -> Interval:
    return Interval(pytest.approx(p), pytest.approx(p))


def test_one_token_word_is_a_point() -> None:
    assert word_probability([token(" knee", 0.7, **{" hip": 0.2})], "knee") == exactly(0.7)


def test_word_among_the_alternatives_is_a_point() -> None:
    assert word_probability([token(" hip", 0.7, **{" knee": 0.2})], "knee,") == exactly(0.2)


def test_case_variants_add_up() -> None:
    assert word_probability([token("Knee", 0.5, **{" knee": 0.3})], "knee") == exactly(0.8)


def test_pieces_multiply_along_the_chosen_path() -> None:
    tokens = [token(" met", 0.8), token("form", 0.5), token("in.", 0.25)]
    assert word_probability(tokens, "metformin") == exactly(0.1)


def test_last_piece_may_be_an_alternative() -> None:
    tokens = [token(" met", 0.8), token("hyl", 0.6, formin=0.3)]
    assert word_probability(tokens, "metformin") == exactly(0.24)


def test_a_begun_alternative_is_an_upper_bound() -> None:
    found = word_probability([token(" the", 0.6, **{" met": 0.2, " a": 0.1})], "metformin")
    assert (found.low, found.high) == (0.0, pytest.approx(0.2))


def test_an_unlisted_word_is_censored_not_set() -> None:
    tokens = [token(" the", 0.6, **{" a": 0.25, " an": 0.1})]
    assert unseen_bound(tokens[0]) == pytest.approx(0.05)  # what is left, below the last listed
    assert word_probability(tokens, "knee") == Interval(0.0, pytest.approx(0.05))


def test_a_longer_word_is_not_the_word() -> None:
    assert word_probability([token(" kneecap", 0.9)], "knee").low == 0.0


def test_blank_first_token_is_passed_over() -> None:
    assert word_probability([token("\n", 0.5), token("knee", 0.5)], "knee") == exactly(0.25)


def test_no_tokens_is_unread() -> None:
    assert word_probability([], "knee") == UNREAD


def test_cut_answer_bounds_the_word() -> None:
    assert word_probability([token(" met", 0.8)], "metformin") == Interval(0.0, pytest.approx(0.8))


def test_apostrophes_inside_a_word_are_part_of_it() -> None:
    assert word_probability([token(" patient", 0.9), token("'s", 0.95)], "patient's") == exactly(
        0.855
    )


def test_a_space_begins_another_word() -> None:
    assert word_probability([token(" the", 0.9), token(" re", 0.9)], "there").low == 0.0


def test_a_number_that_goes_on_is_another_number() -> None:
    longer = [token(" 5", 0.9), token("0", 0.8, **{".": 0.15}), token("0", 0.9)]
    found = word_probability(longer, "5")
    assert found == exactly(0.9 * 0.2)


def test_an_alternative_digit_may_go_on() -> None:
    found = word_probability([token(" 4", 0.7, **{" 5": 0.2})], "5")
    assert (found.low, found.high) == (0.0, pytest.approx(0.2))


def test_pieces_of_one_character_are_followed() -> None:
    tokens = [token("", 0.9), token("", 0.8), token("猫", 0.5), token("は", 0.9)]
    assert word_probability(tokens[:3], "猫") == exactly(0.36)


def test_an_alternative_does_not_hide_the_chosen_path() -> None:
    tokens = [token(" kne", 0.9, **{" knees": 0.02}), token("es", 0.99)]
    assert word_probability(tokens, "knees") == exactly(0.9 * 0.99 + 0.02)


def test_an_unusable_logprob_is_unread() -> None:
    assert word_probability([TokenLogprob(" knee", math.nan)], "knee") == UNREAD


@given(
    st.lists(
        st.tuples(
            st.sampled_from([" a", "a", "b", " ab", "ab", "", "5", " 5", "."]), st.floats(0.01, 1.0)
        ),
        max_size=5,
    ),
    st.sampled_from(["a", "ab", "ba", "5", "55", "a5"]),
)
def test_every_reading_is_an_interval_of_probabilities(rows, word) -> None:
    found = word_probability([token(text, p) for text, p in rows], word)
    assert 0.0 <= found.low <= found.high <= 1.0
