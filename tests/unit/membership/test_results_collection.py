"""The path of the evidence about a collection: its axes and its ends."""

from __future__ import annotations

import re

from ragwitness.membership.results.collection import evidence_course


def points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) (-?[\d.]+)", path)]


def test_without_evidence_there_is_no_figure() -> None:
    assert evidence_course([], 0.05) is None


def test_evidence_below_one_stays_in_the_plot() -> None:
    found = evidence_course([-2.0, -1.0, 1.5], 0.05)
    assert found is not None
    assert found.rule is not None
    heights = [y for _, y in points(found.path)] + [found.rule[0]]
    assert min(heights) == 0.0
    assert max(heights) == 180.0
    assert "\N{MINUS SIGN}2" in dict(found.y_ticks).values()


def test_a_long_run_is_thinned_but_ends_where_it_ended() -> None:
    found = evidence_course([n / 10_000 for n in range(20_000)], 0.05)
    assert found is not None
    assert len(points(found.path)) < 450
    assert points(found.path)[-1][0] == 480.0
