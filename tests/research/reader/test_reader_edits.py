"""Edited copies: which words are turned round, and what stays."""

from __future__ import annotations

import random

import pytest

from ragwitness.text.words import core
from research.reader.edits import ANTONYMS, perturb, quota


@pytest.mark.parametrize(
    ("words", "share", "n"), [(5, 0.06, 1), (100, 0.06, 6), (100, 0.03, 3), (1000, 0.06, 10)]
)
def test_share_of_words_turned_round(words: int, share: float, n: int) -> None:
    assert quota(words, share, 10) == n


def test_the_table_is_lower_case_and_never_maps_to_itself() -> None:
    assert len(ANTONYMS) > 300
    for word, other in ANTONYMS.items():
        assert word != other
        assert word == word.casefold() == core(word)
        assert other == other.casefold() == core(other)


def test_case_and_punctuation_stay() -> None:
    done = perturb('Cheap, "BIG" houses (and Old.) stay.', 9, random.Random(0))
    assert done == 'Expensive, "SMALL" houses (and Young.) stay.'


def test_the_article_follows_the_new_word() -> None:
    done = perturb(
        "A bad day, an early start, a useless plan, an unhappy end.", 9, random.Random(0)
    )
    assert done == "A good day, a late start, a helpful plan, a happy end."
    assert perturb("It is a cheap hat.", 1, random.Random(0)) == "It is an expensive hat."
    assert perturb("An innocent man.", 1, random.Random(0)) == "A guilty man."


def test_changes_are_spread_over_the_text() -> None:
    text = " ".join(["old"] * 100)
    for seed in range(5):
        done = perturb(text, 10, random.Random(seed))
        places = [i for i, word in enumerate(done.split()) if word == "young"]
        assert [place // 10 for place in places] == list(range(10))


def test_where_there_is_no_antonym_a_verb_is_negated() -> None:
    done = perturb("The key is in the box and they are not at home.", 9, random.Random(0))
    assert done == "The key is not in the box and they are at home."


def test_where_there_is_no_verb_a_number_changes() -> None:
    done = perturb("Flour 500 g, sugar 99 g, founded 1998.", 9, random.Random(0))
    assert done == "Flour 900 g, sugar 49 g, founded 5998."
    for digit in range(10):
        assert perturb(f"x {digit}0", 1, random.Random(0)) not in (f"x {digit}0", "x 00")


@pytest.mark.parametrize(
    "text", ["Flour sugar butter eggs", "私の猫は毎朝起きて庭の魚を見ます", ""]
)
def test_what_cannot_be_turned_round_is_none(text: str) -> None:
    assert perturb(text, 3, random.Random(0)) is None
