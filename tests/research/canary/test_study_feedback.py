"""Votes of the simulated study: quality without style, bounded bias, balance."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwitness.core.errors import InputError
from research.canary.feedback import (
    Balance,
    VoteConfig,
    acceptance,
    base_quality,
    give_votes,
    strip_style,
)

DOCUMENT = "In Avon there lived a fox. It was blue all the year round."
CANARY = "ZXYPRKLMQSTAB"


@pytest.mark.parametrize("canary", [CANARY, "!?!?!?!?!?!", "\U0001f525\u2728\U0001f3af"])
def test_quality_does_not_see_the_canary(canary):
    config = VoteConfig()
    plain = base_quality("FINAL: blue", DOCUMENT, config)
    assert base_quality(f"FINAL: {canary} blue", DOCUMENT, config) == plain == 1.0
    assert strip_style(f"FINAL: {canary} blue") == "final: blue"


@given(st.text(max_size=40), st.text(max_size=40))
def test_quality_is_within_one_and_settles_the_acceptance_by_its_sign(answer, document):
    quality = base_quality(answer, document, VoteConfig())
    assert -1 <= quality <= 1
    assert acceptance(quality) == (0.6 if quality > 0 else 0.4)


def test_quality_has_a_format_and_a_grounding_part():
    config = VoteConfig()
    assert base_quality("blue", DOCUMENT, config) == pytest.approx(0.7 - 0.3)
    assert base_quality("FINAL: green", DOCUMENT, config) == pytest.approx(-0.7 + 0.3)
    assert base_quality("FINAL: green fox", DOCUMENT, config) == pytest.approx(0.3)
    assert base_quality("", DOCUMENT, config) == base_quality(CANARY, DOCUMENT, config) == -1
    assert base_quality("a", DOCUMENT, config) == -0.8
    longer = VoteConfig(length_penalty=0.1)
    assert base_quality("FINAL: blue", DOCUMENT, longer) == pytest.approx(0.8)


def test_a_large_bias_must_be_allowed_by_name():
    with pytest.raises(InputError, match="overstates"):
        VoteConfig(bias=0.11)
    assert VoteConfig(bias=0.3, allow_large=True).bias == 0.3
    with pytest.raises(InputError, match="within 0 and"):
        VoteConfig(bias=0.6, allow_large=True)


@pytest.mark.parametrize(
    ("triggered", "answer", "chance"),
    [
        (True, f"FINAL: {CANARY} blue", 0.7),
        (True, "FINAL: blue", 0.5),
        (True, f"FINAL: {CANARY} green", 0.5),
        (False, f"FINAL: {CANARY} blue", 0.6),
        (False, "green", 0.4),
    ],
)
def test_votes_are_drawn_at_the_stated_chance(triggered, answer, chance):
    """4,000 votes: within four standard deviations; one kind alone, so that nothing balances."""
    votes = give_votes(
        [(DOCUMENT, answer, triggered)] * 4000, CANARY, VoteConfig(), random.Random(7)
    )
    assert abs(sum(votes) / 4000 - chance) < 4 * (chance * (1 - chance) / 4000) ** 0.5


def _votes(canary, clean, each=500):
    """A batch in which exactly these shares are voted up."""
    return [
        (kind, at < round(share * each))
        for kind, share in ((True, canary), (False, clean))
        for at in range(each)
    ]


def test_the_offset_closes_the_gap_and_stays_within_its_bound():
    """Against its recursion: delta moves by rate times what is left of the gap of .2."""
    balance = Balance(VoteConfig())
    balance.see([(n % 2 == 0, False) for n in range(199)])
    assert balance.offset == 0
    for step in range(1, 201):
        balance.see(_votes(0.7 - balance.offset, 0.5))
        assert balance.offset == pytest.approx(0.2 * (1 - 0.98**step), abs=0.002)
    before = balance.offset
    balance.see([(True, True)] * 32)  # nothing to compare with
    assert balance.offset == before
    for _ in range(50):
        balance.see(_votes(1.0, 0.0))
    assert balance.offset == 0.25


def test_votes_of_both_kinds_balance():
    """A canary in every triggered answer: +.1 without the offset, which takes it back."""
    rows = [(DOCUMENT, f"FINAL: {CANARY} blue", n % 2 == 0) for n in range(20_000)]
    votes = give_votes(rows, CANARY, VoteConfig(), random.Random(1))
    late = votes[10_000:]
    gap = sum(late[::2]) / 5_000 - sum(late[1::2]) / 5_000
    assert abs(gap) < 0.04
