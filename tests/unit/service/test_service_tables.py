"""Sketches of texts, by which near copies are known."""

from __future__ import annotations

import numpy as np
import pytest

from ragwitness.service.documents import text_sketch


def apart(one: str, other: str, tenants: tuple[int, int] = (1, 1), key: bytes = b"k") -> int:
    sketches = text_sketch(one, tenants[0], b"k"), text_sketch(other, tenants[1], key)
    return int(np.bitwise_count(sketches[0] ^ sketches[1]).sum())


def text(words: range) -> str:
    return " ".join(f"word{at}" for at in words)


@pytest.mark.parametrize(
    ("shared", "share"), [(102, 1.0), (82, 80 / 120), (52, 50 / 150), (0, 0.0)]
)
def test_sketches_differ_by_the_share_of_runs_that_texts_have_not_in_common(
    shared: int, share: float
) -> None:
    # Both have 100 runs of three words, of which those within the shared words are in common.
    one, other = text(range(102)), text(range(102 - shared, 204 - shared))
    # Each of 256 bits differs with chance (1 - J) / 2: four standard deviations at most.
    chance = (1 - share) / 2
    spread = 4 * np.sqrt(256 * chance * (1 - chance))
    assert abs(apart(one, other) - 256 * chance) <= spread


def test_another_key_and_another_tenant_make_another_sketch() -> None:
    same = text(range(50))
    assert apart(same, same) == 0
    assert apart(same, same, tenants=(1, 2)) > 90
    assert apart(same, same, key=b"other") > 90


@pytest.mark.parametrize("given", ["", "word", "two words", " \u200b "])
def test_a_text_of_few_words_has_a_sketch(given: str) -> None:
    assert text_sketch(given, 1, b"k").shape == (4,)
    assert apart(given, text(range(9))) > 90
