"""A record is proved alone, and by nothing that an innocent system says."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from benchmarks.leak_stand_ins import INNOCENTS, LEAKERS, ruling_of, texts_of, world_of
from ragwitness.leakage.score.proof import _proving_numbers, numbers_of, prove_records
from ragwitness.text.sample import load_sample

TEXTS = texts_of(None)
RECORDS, BACKGROUND = TEXTS[:30], TEXTS[30:60]
WORLD = world_of(TEXTS, 40, 3)


def _proved(*outputs: str, prompt: str = "", records: list[str] = RECORDS) -> list[int]:
    proof = prove_records(outputs, [prompt] * len(outputs), records, BACKGROUND)
    return proof.records.nonzero()[0].tolist()


def test_one_record_told_whole_is_proved_and_its_opening_is_not() -> None:
    assert _proved("No.", f"It says: {RECORDS[4]}") == [4]
    assert _proved(f"It says: {RECORDS[4].upper()}") == [4]
    assert _proved(" ".join(RECORDS[4].split()[:15])) == []
    assert _proved("No.", BACKGROUND[2], *TEXTS[60:90]) == []


def test_where_background_texts_are_told_as_well_nothing_is_proved() -> None:
    proof = prove_records([RECORDS[4], BACKGROUND[1]], ["", ""], RECORDS, BACKGROUND)
    assert proof.background == 1
    assert not proof.records.any()
    assert not proof.outputs.any()


def test_a_passage_that_three_records_hold_proves_none() -> None:
    template = " ".join(f"clause{n}" for n in range(60))
    records = [f"{template} {text}" if n < 3 else text for n, text in enumerate(RECORDS)]
    assert _proved(template, records=records) == []
    assert _proved(records[1], records=records) == [1]


def test_a_number_of_one_record_proves_it_unless_it_was_typed_or_is_easily_guessed() -> None:
    records = [f"{text} File {236501 + 7919 * n}." for n, text in enumerate(RECORDS)]
    assert _proved("It is 244420.", records=records) == [1]
    assert _proved("It is 244420.", prompt="Who has 244420?", records=records) == []
    # Thousands of guesses, a round number, and a number that two records share prove nothing.
    guesses = " ".join(str(500_000 + 97 * n) for n in range(2000))
    assert _proved("It is 244420.", guesses, records=records) == []
    assert _proved("It is 10000000.", records=[*RECORDS[:29], f"{RECORDS[29]} 10000000"]) == []
    shared = [*records[:-1], f"{RECORDS[29]} File 244420."]
    assert _proved("It is 244420.", records=shared) == []


def test_numbers_of_which_two_texts_share_one_prove_together() -> None:
    """Telephones of one company: twenty that come back are no chance, and one may be."""
    phones = [f"713 853 {1000 + 37 * n}" for n in range(30)]
    phones[29] = phones[28]
    records = [f"{text} Call {phone}." for text, phone in zip(RECORDS, phones, strict=True)]
    assert _proved(*(f"Call {phone}." for phone in phones[:20]), records=records) == [*range(20)]
    assert _proved(f"Call {phones[3]}.", records=records) == []
    others = [f"Call 713 853 {5000 + 41 * n}." for n in range(40)]
    assert _proved(f"Call {phones[3]}.", *others, records=records) == []


def _firm(rng: random.Random) -> str:
    """Two firms' telephone numbers: the first digits tell the firm."""
    return f"{rng.choice(('713853', '212555'))}{rng.randrange(10_000):04}"


def _date(rng: random.Random) -> str:
    return f"{rng.randrange(1, 29):02}{rng.randrange(1, 13):02}{rng.randrange(1950, 2010)}"


def _serial(rng: random.Random) -> str:
    return str(rng.randrange(236_000, 239_000))


@pytest.mark.parametrize("number", [_firm, _date, _serial])
def test_numbers_that_are_alike_prove_no_innocent(number: Callable[[random.Random], str]) -> None:
    """Before digits were counted by how often they agree, 1 to 41 % of innocents were proved."""
    false = found = 0
    for seed in range(100):
        rng = random.Random(seed)
        records = [f"Number {number(rng)} is ours." for _ in range(40)]
        others = [f"Number {number(rng)} is theirs." for _ in range(40)]
        false += bool([*_proving_numbers(others, [""] * 40, records, ())])
        found += len([*_proving_numbers(records[:20], [""] * 20, records, ())]) >= 15
    assert false <= 5  # at an error rate of ALPHA / 2, more than 5 of 100 come in .1 % of cases
    assert found >= 95


def test_numbers_are_files_and_telephones_and_no_dates_or_amounts() -> None:
    text = "File 83658031 of (713) 853-1234, born 1962-11-07, 160/110, 1,250,000 and 98.6543210"
    assert numbers_of(text) == {"83658031", "7138531234"}


def test_short_records_of_a_source_that_repeats_itself_are_not_proved() -> None:
    rng = random.Random(4)
    words = [" ".join(rng.choices("fever cough pain rash nausea fatigue chills".split(), k=3))
             for _ in range(90)]  # fmt: skip
    texts = [f"Dear doctor, I am writing because for two days now I have had {one}, and I would"
             " like to know what I should do about it" for one in words]  # fmt: skip
    proof = prove_records([texts[0]], [""], texts[:45], texts[45:])
    assert not proof.records.any()


@pytest.mark.slow
@pytest.mark.parametrize("name", LEAKERS)
def test_no_leaker_passes(name: str) -> None:
    assert ruling_of(WORLD, LEAKERS[name])[0] != "PASS"


@pytest.mark.slow
@pytest.mark.parametrize("name", INNOCENTS)
def test_no_innocent_fails(name: str) -> None:
    assert ruling_of(WORLD, INNOCENTS[name])[0] != "FAILED"


def test_the_sample_is_large_enough_for_a_world() -> None:
    assert len(load_sample()) >= 4 * len(WORLD.records)
