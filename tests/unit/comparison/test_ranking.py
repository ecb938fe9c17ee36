"""The headline of a comparison: what ends a leak, at what price, and when nobody can say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragwitness.comparison.result import Contender, floor_warning, ranking
from ragwitness.stats.rates import Rate, proportion_interval


def _one(
    name: str, hits: int | None, use: float | None = None, gain: Rate | None = None
) -> Contender:
    rate = None if hits is None else Rate(hits / 100, *proportion_interval(hits, 100), 100)
    mean = None if use is None else Rate(use, use - 0.02, use + 0.02, 50)
    return Contender(name, hits, 100, rate, mean, gain)


_ABOVE = Rate(0.06, 0.04, 0.08, 50)
_BASE = Contender(
    "origin", 58, 100, Rate(0.58, 0.48, 0.68, 100), Rate(0.1, 0.08, 0.12, 50), None, _ABOVE
)
_LOSS = Rate(-0.04, -0.06, -0.02, 50)


def test_it_says_what_ends_the_leak_and_what_that_costs() -> None:
    title, sentence = ranking(_BASE, [_one("redact", 50, 0.1), _one("keywords", 0, 0.06, _LOSS)])
    assert title == "keywords ends the leak and costs 4 of 10 points of usefulness"
    assert (
        "58 of 100 prompts (0.480 to 0.680) leaked with the records; none did with key" in sentence
    )
    assert "leaves room for 3.6 %" in sentence


def test_of_two_that_end_it_the_more_useful_is_named() -> None:
    pair = [_one("keywords", 0, 0.06, _LOSS), _one("sage", 0, 0.09, Rate(-0.01, -0.03, 0.01, 50))]
    title, sentence = ranking(_BASE, pair)
    assert title == "sage ends the leak; 50 questions show no loss of usefulness"
    assert "keywords, sage" in sentence


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([_one("x", 4)], "x leaks least, 4 of 100 prompts"),
        ([_one("x", 58)], "No variant leaks less than the records themselves"),
        ([_one("x", None, 0.06, _LOSS)], "x is the most useful in their place and costs 4 of 10"),
        ([], "The records themselves, with nothing beside them"),
    ],
)
def test_it_says_so_where_the_leak_does_not_end(others: list[Contender], said: str) -> None:
    assert ranking(_BASE, others)[0].startswith(said)


def test_a_few_prompts_end_no_leak() -> None:
    half, none = (Rate(n / 2, *proportion_interval(n, 2), 2) for n in (1, 0))
    title, sentence = ranking(Contender("origin", 1, 2, half), [Contender("x", 0, 2, none)])
    assert title == "Too few prompts to say that x leaks less than the records themselves"
    assert "1 of 2 prompts (0.013 to 0.987) leaked with the records; none did with x" in sentence
    assert ranking(_BASE, [_one("x", 52)])[0].startswith("Too few prompts to say that x leaks")


def test_what_chance_explains_is_no_leak() -> None:
    by_chance = Contender("other", 11, 60, Rate(0.0, -0.1, 0.1, 60))
    title, sentence = ranking(_BASE, [by_chance])
    assert title.startswith("other leaks nothing beyond chance")
    assert "; nothing beyond chance with other (which leaves room for 10 %)" in sentence
    alone, why = ranking(replace(by_chance, name="origin"), [_one("x", 0)])
    assert alone == "Nothing leaked beyond chance even of the records themselves"
    assert why.startswith("11 of 60 prompts (-0.100 to 0.100) leaked with the records, no more")


def test_at_its_floor_usefulness_is_no_ground_for_a_choice() -> None:
    low = Contender(
        "origin",
        58,
        100,
        _BASE.leak,
        Rate(0.018, 0.01, 0.03, 50),
        None,
        Rate(0.001, -0.003, 0.004, 50),
    )
    assert low.at_floor
    assert not _BASE.at_floor
    title, _ = ranking(low, [_one("keywords", 0, 0.02, Rate(0.01, 0.005, 0.02, 50))])
    assert title.endswith("its cost is unknown: usefulness is at its floor")
    assert "ROUGE-L of the answers" in floor_warning(low, "ROUGE-L")
    assert floor_warning(_BASE, "ROUGE-L") == ""
