"""Cost curves: sums, caps and axes."""

from __future__ import annotations

import re

import pytest

from ragwitness.asking.budget import Use
from ragwitness.results.collection import evidence_course as path_figure
from ragwitness.results.spending import Spending
from ragwitness.web.figures import money_figure, tokens_figure


def points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) (-?[\d.]+)", path)]


def test_tokens_add_up_from_nothing_to_the_last_query() -> None:
    found = tokens_figure([Use(1, 100, 0), Use(1, 0, 300)], None)
    assert found is not None
    assert points(found.path) == [(0.0, 180.0), (240.0, 135.0), (480.0, 0.0)]
    assert found.description == "400 tokens after 2 queries."
    assert found.rule is None
    assert dict(found.x_ticks) == {0.0: "0", 240.0: "1", 480.0: "2"}


@pytest.mark.parametrize(("cap", "drawn"), [(500, True), (600, True), (601, False)])
def test_a_cap_is_drawn_only_where_it_is_near(cap: int, drawn: bool) -> None:
    known = Spending(1, 400, 0, max_tokens=cap)
    found = tokens_figure([Use(1, 400, 0)], known)
    assert found is not None
    assert (found.rule is not None) is drawn
    assert f"the cap is {cap}" in found.description
    if found.rule:
        assert found.rule == (0.0, "cap")  # the highest value of the plot


def test_money_needs_prices() -> None:
    spent = [Use(1, 1_000_000, 500_000)]
    assert money_figure(spent, None) is None
    assert money_figure(spent, Spending(1, 1, 1, cost=7.0)) is None
    found = money_figure(spent, Spending(1, 1, 1, price_in=2.0, price_out=8.0, max_cost=7.0))
    assert found is not None
    assert found.description == "6 after 1 queries, at the prices given; the cap is 7."
    assert money_figure(spent, Spending(1, 1, 1, price_in=0.0, price_out=0.0)) is None


def test_nothing_spent_is_no_figure() -> None:
    assert tokens_figure([], None) is None
    assert tokens_figure([Use(1, 0, 0)], None) is None
    assert path_figure([], 0.05) is None


def test_evidence_below_one_stays_in_the_plot() -> None:
    found = path_figure([-2.0, -1.0, 1.5], 0.05)
    assert found is not None
    assert found.rule is not None
    heights = [y for _, y in points(found.path)] + [found.rule[0]]
    assert min(heights) == 0.0
    assert max(heights) == 180.0
    assert "\N{MINUS SIGN}2" in dict(found.y_ticks).values()


def test_a_long_run_is_thinned_but_ends_where_it_ended() -> None:
    found = tokens_figure([Use(1, 1, 0)] * 20_000, None)
    assert found is not None
    assert len(points(found.path)) < 450
    assert points(found.path)[-1] == (480.0, 0.0)
