"""System prompts put together from parts, and those that training must never see."""

from __future__ import annotations

import random

import pytest

from research.reader import forms, unseen, wordings
from research.reader.wordings import KINDS, system_prompt


@pytest.mark.parametrize("kind", KINDS)
def test_prompts_of_a_kind_are_many_and_whole(kind: str) -> None:
    made = [system_prompt(random.Random(seed), kind) for seed in range(2000)]
    assert len(set(made)) > 1980
    assert not any(mark in text for text in made for mark in "{}|_")


def test_plain_prompts_have_the_length_and_the_words_of_strict_ones() -> None:
    length, words = {}, {}
    for kind in ("strict", "plain"):
        made = [system_prompt(random.Random(seed), kind).split() for seed in range(2000)]
        length[kind] = sum(len(one) for one in made) / len(made)
        words[kind] = {word.lower().strip(".,:;") for one in made for word in one}
    assert abs(length["strict"] - length["plain"]) < 0.2 * length["strict"]
    assert len(words["strict"] & words["plain"]) > 0.85 * len(words["strict"])
    # No single word of prohibition gives a strict prompt away.
    assert {"not", "never", "forbidden", "illegal", "refuse", "repeat", "reveal"} <= words["plain"]


def test_training_meets_no_part_that_is_held_out() -> None:
    trained = " ".join(
        system_prompt(random.Random(seed), kind).lower() for seed in range(3000) for kind in KINDS
    )
    for verb in wordings._verbs(held_out=True):
        assert f" {verb[0]} " not in trained
        assert verb[1] not in trained
    for noun, _ in wordings._nouns(held_out=True):
        assert noun not in trained
    assert "off limits" not in trained
    assert "off limits" in " ".join(
        system_prompt(random.Random(seed), "strict", held_out=True) for seed in range(100)
    )


def test_prompts_for_measuring_come_in_pairs_and_are_in_no_training_text() -> None:
    assert len(unseen.STRICT) == len(unseen.PLAIN) >= 20
    assert len({*unseen.STRICT, *unseen.PLAIN}) == 2 * len(unseen.STRICT)
    listed = {*forms.DEFENDED, *forms.RULES["strict"], *forms.RULES["soft"]}
    assert not any(rule in text for text in unseen.STRICT for rule in listed)
    sizes = [sum(len(text.split()) for text in which) for which in (unseen.STRICT, unseen.PLAIN)]
    assert abs(sizes[0] - sizes[1]) < 0.2 * sizes[0]


def test_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="strict, soft, plain, not 'mild'"):
        system_prompt(random.Random(0), "mild")
