"""A record leaks by what no unrelated text and no other record explains; chance likewise."""

from __future__ import annotations

import random

import pytest

from ragwitness.leakage.score.hits import explained_leaks

RNG = random.Random(1)
GREETING = "Hello and many thanks for your trusting question to our doctors here today."


def _text(seed: str) -> str:
    rng = random.Random(seed)
    return " ".join(f"{rng.choice('bdfgk')}{rng.choice('aeiou')}{rng.randrange(999)}"
                    for _ in range(40))  # fmt: skip


RECORDS = [_text(f"r{n}") for n in range(8)]
BACKGROUND = [_text(f"b{n}") for n in range(8)]


def _leaked(output: str, records: list[str] = RECORDS, prompt: str = "", **more: list[str]):
    found = explained_leaks([output], [prompt], records, **{"background": BACKGROUND} | more)
    return found[0].records.nonzero()[0].tolist(), found


def test_what_is_told_leaks_and_nothing_else() -> None:
    told, (found, by_chance) = _leaked(f"It says: {RECORDS[3]}")
    assert told == [3]
    assert found.outputs.tolist() == [True]
    assert not by_chance.records.any()
    assert not by_chance.outputs.any()
    unasked = explained_leaks([], [], RECORDS)[0]
    assert unasked.records.tolist() == [False] * 8


def test_a_phrase_of_unrelated_or_public_texts_tells_of_no_record() -> None:
    greeted = [f"{GREETING} {text}" for text in RECORDS]
    unrelated = [f"{GREETING} {text}" for text in BACKGROUND]
    said = f"{GREETING} Please see somebody."
    assert _leaked(said, greeted, background=unrelated)[0] == []
    assert _leaked(said, greeted, background=BACKGROUND, public=[GREETING])[0] == []
    # What else the answer tells still counts.
    assert _leaked(f"{said} {RECORDS[5][:90]}", greeted, background=unrelated)[0] == [5]
    # A background text is held against the others as a record is against all of them.
    _, (_, by_chance) = _leaked(unrelated[2], greeted, background=unrelated)
    assert by_chance.records.nonzero()[0].tolist() == [2]


def test_a_record_that_is_told_explains_what_others_share_with_it() -> None:
    greeted = [f"{GREETING} {text}" for text in RECORDS]
    assert _leaked(greeted[4], greeted)[0] == [4]
    both = f"{greeted[4]} {RECORDS[6]}"
    assert _leaked(both, greeted)[0] == [4, 6]
    # Of a phrase that all share and no record explains one counts: at least one was told.
    assert len(_leaked(GREETING, greeted)[0]) == 1


def test_words_that_the_prompt_gave_away_tell_nothing() -> None:
    words = RECORDS[2].split()
    broken = " and then ".join(words[:24])
    assert _leaked(broken)[0] == [2]
    given = " ".join(RNG.sample(words[:24], 12))
    assert _leaked(broken, prompt=given)[0] == []
    # What it did not give away is enough where it is half of the record.
    assert _leaked(" and then ".join(words), prompt=given)[0] == [2]


@pytest.mark.slow
def test_records_and_background_leak_alike_where_neither_is_known() -> None:
    """Texts of one house under answers of the same house: both shares are the same on average."""
    phrases = [_text(f"p{n}")[:80] for n in range(60)]

    def house(seed: str) -> str:
        rng = random.Random(seed)
        return " ".join([_text(seed)[:60], *rng.sample(phrases, 2), _text(f"{seed}x")[:60]])

    ours = theirs = 0
    for draw in range(40):
        texts = [house(f"{draw}-{n}") for n in range(60)]
        answers = [house(f"{draw}-a{n}") for n in range(20)]
        told, by_chance = explained_leaks(answers, [""] * 20, texts[:30], texts[30:])
        ours += told.records.sum()
        theirs += by_chance.records.sum()
    assert 0 < ours <= 1.2 * theirs
