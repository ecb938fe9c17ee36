"""How unlike a set of texts each one is: other languages, lists, other kinds, and its own."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ragwitness.stats.p_values import conformal_p_values
from ragwitness.text.domain_shift import unlikeness
from ragwitness.text.sample import load_sample

_GERMAN = (
    "Der Schornstein wurde zuletzt im Mai gefegt. Bitte vereinbaren Sie einen Termin mit der Firma."
    " Am Abend kam starker Regen hinzu, und das Dach war undicht. Die Mieter sind sehr verärgert."
)
_TABLE = "\n".join(f"{n};unit {n % 7};{n * 13 % 97};ok" for n in range(25))
_TALE = (
    "Once upon a time there was a king who had three daughters, and the youngest was so beautiful"
    " that the sun itself, who had seen so much, wondered each time it shone upon her face. “Go,”"
    " said the old woman, “and do not look back, whatever you may hear behind you in the wood.”"
)


def _texts(seed: int, n: int) -> list[str]:
    return [one.text for one in random.Random(seed).sample(load_sample(), n)]


@pytest.mark.parametrize("known", [100, 200])
def test_a_text_of_another_kind_lies_beyond_all_known_ones(known: int) -> None:
    own, found = unlikeness(_texts(1, known), [_GERMAN, _TABLE, _TALE])
    assert (conformal_p_values(found, own) <= 0.02).all()


@pytest.mark.slow
def test_texts_of_the_same_kind_are_lost_no_oftener_than_the_level() -> None:
    """500 texts, each ranked among 60 that it was drawn with: at .02 some 8 are expected."""
    lost = 0
    for seed in range(5):
        texts = _texts(seed, 160)
        own, found = unlikeness(texts[:60], texts[60:])
        lost += int((conformal_p_values(found, own) <= 0.02).sum())
    assert 1 <= lost <= 20


def test_a_text_is_no_less_unlike_for_standing_beside_others_of_its_kind() -> None:
    known = _texts(3, 40)
    alone = unlikeness(known, [_TALE])[1][0]
    assert unlikeness(known, [_TALE] * 5)[1] == pytest.approx([alone] * 5)
    assert unlikeness(known, [])[1].shape == (0,)


@pytest.mark.parametrize("text", ["", " \n ", "?", "一" * 400, "\ud800 broken", "x" * 50_000])
def test_any_text_has_a_finite_unlikeness(text: str) -> None:
    own, found = unlikeness(["", "a b", text, "c d e"], [text])
    assert np.isfinite([*own, *found]).all()
