"""Placing a document: exact chances, the ratio of any two, and what finds it again."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from ragwitness.core.errors import InputError
from ragwitness.privacy.codes import Placement, asked_model, has_word, word_weights
from ragwitness.privacy.sampler import ShakeBits, system_bits

TEXTS = (
    "The botanist Quillfeather counted orchids near Zanzibar.",
    "Invoice 7781: nephrectomy, Dr Abernathy.",
    "of the and to",  # no telling word at all
    "",
)


class Point:
    """Bits from which ``uniform`` draws one number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def take(self, count: int) -> bytes:
        return self.number.to_bytes(count, "big")


def chances(placement: Placement, text: str) -> dict[int, Fraction]:
    """Chance of each group, exact: the drawn number decides in runs, whose ends are bisected."""
    _, total = placement.weights
    found: dict[int, Fraction] = {}
    at = 0
    while at < total:
        group = placement.place(text, Point(at))
        low, high = at, total - 1
        # The last number of the run; groups take one run each, in some order.
        while low < high:
            middle = (low + high + 1) // 2
            if placement.place(text, Point(middle)) == group:
                low = middle
            else:
                high = middle - 1
        found[group] = found.get(group, Fraction(0)) + Fraction(low - at + 1, total)
        at = low + 1
    return found


@pytest.mark.parametrize(("groups", "near"), [(7, 1), (7, 3), (40, 5)])
def test_any_two_documents_give_any_group_with_chances_within_e_to_the_epsilon(groups, near):
    placement = Placement(16, 4, 1.5, groups, near)
    every = [chances(placement, text) for text in TEXTS]
    for one in every:
        assert sum(one.values()) == 1
        assert sorted(one) == list(range(groups))
        ratio = float(max(one.values()) / min(one.values()))
        assert ratio <= math.exp(1.5) * (1 + 1e-9)
        assert ratio >= math.exp(1.5) * (1 - 1e-3)  # nothing of the promise is wasted
    # A slot without a document is as likely in any group: within e^epsilon of any document.
    assert all(
        math.exp(-1.5) <= float(chance * groups) <= math.exp(1.5)
        for one in every
        for chance in one.values()
    )


def test_a_question_with_a_document_s_rarest_word_finds_it_and_the_same_slots_again():
    texts = [f"Report about thing{at:03d} and nothing else" for at in range(200)]
    placement = Placement.of(200, 4, 12.0)
    codes = np.array([placement.place(text, ShakeBits(text.encode())) for text in texts], np.int32)
    found = [at in placement.answer(f"Where is thing{at:03d}?", codes) for at in range(200)]
    assert np.mean(found) > 0.9
    again = placement.answer("Where is thing007?", codes)
    assert again == placement.answer("Where is thing007?", codes)
    assert len(set(again)) == 4
    # A question of common words alone gives slots by lot, other ones for another question.
    assert placement.answer("of the", codes) != placement.answer("and to", codes)


def test_a_text_is_shown_for_a_word_in_its_own_group_alone():
    placement = Placement.of(100, 4, 10.0)
    text = "The botanist Quillfeather counted orchids"
    own = placement.groups_of(["quillfeather"])[0]
    words = placement.words("Who is QUILLFEATHER?")
    assert words[own] == {"quillfeather"}
    assert has_word(text, words[own])
    assert not has_word(
        text, placement.words("Who is Abernathy?")[placement.groups_of(["abernathy"])[0]]
    )
    assert placement.words("the the the") == {}


def test_draws_come_out_as_often_as_they_should():
    placement = Placement(16, 4, 2.0, 10, 2)
    drawn = Counter(placement.place(TEXTS[0], system_bits()) for _ in range(4000))
    near = sum(count for _, count in drawn.most_common(2)) / 4000
    true, total = placement.weights
    assert near == pytest.approx(true / total, abs=0.04)


def test_the_worth_is_what_is_found():
    rng = np.random.default_rng(0)
    placement = Placement.of(300, 4, 6.0)
    texts = [f"item{at}" for at in range(300)]
    hits = []
    for draw in range(5):
        bits = ShakeBits(f"draw {draw}".encode())
        codes = np.array([placement.place(text, bits) for text in texts], np.int32)
        asked = rng.choice(300, 100, replace=False)
        hits += [at in placement.answer(f"item{at}", codes) for at in asked]
    assert np.mean(hits) == pytest.approx(placement.worth, abs=0.08)
    # Where nothing is promised to be found, it is about chance.
    assert Placement.of(1024, 4, 0.1).worth < 2 * 4 / 1024


def test_words_weigh_by_how_rare_they_are_in_public_and_accents_are_kept():
    weights = word_weights("the the Naïve nephrectomy patient Патиент x1")
    assert "the" not in weights
    assert weights["nephrectomy"] > weights["patient"]
    assert {"naïve", "патиент", "x1"} <= weights.keys()


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ((16, 4, 31.0, 10), "30 at most"),
        ((16, 4, 0.0, 10), "epsilon"),
        ((16, 4, float("nan"), 10), "epsilon"),
        ((16, 17, 1.0, 10), "16 slots cannot give 17"),
        ((16, 4, 1.0, 1), "groups"),
        ((16, 4, 1.0, 10, 10), "10 of 10 groups"),
        ((16, 4, 1.0, 10, 0), "0 of 10 groups"),
    ],
)
def test_what_cannot_be_placed_is_refused(values, shown):
    with pytest.raises(InputError, match=shown):
        Placement(*values)


def test_a_model_of_what_is_asked_finds_the_words_that_questions_have():
    """Names at the head of each text are asked; a rarer code at its end never is."""
    texts = [f"Name{at:03d} called about the bill. Reference zzqx{at:03d}x" for at in range(60)]
    questions = [[f"When did name{at:03d} call?"] for at in range(60)]
    model = asked_model(texts[:40], questions[:40])
    assert len(model) == 7 + 7 + 35 + 1
    bare, taught = Placement(60, 4, 12.0, 500), Placement(60, 4, 12.0, 500, asked=model)
    names = [taught.groups_of([f"name{at:03d}"]) for at in range(40, 60)]
    assert [taught.near_groups(text) for text in texts[40:]] == names
    assert taught.digest != bare.digest
    # Documents without a telling word have a group all the same; nothing asked teaches nothing.
    assert taught.near_groups("of the and") == [0]
    assert asked_model(["of the", "and to"], [["x"], ["y"]]) == ()


@pytest.mark.parametrize("model", [(), tuple(np.linspace(0.5, 1.5, 50).tolist())])
def test_any_public_rule_keeps_the_promise(model):
    placement = Placement(16, 4, 1.5, 40, 3, model)
    every = [chances(placement, text) for text in TEXTS]
    assert all(sum(one.values()) == 1 for one in every)
    ratio = max(
        float(one[group] / other[group]) for one in every for other in every for group in one
    )
    assert ratio <= math.exp(1.5) * (1 + 1e-9)
