"""The path of the evidence about a collection."""

from __future__ import annotations

from ragwitness.membership.results.collection import evidence_course


def test_without_evidence_there_is_no_figure() -> None:
    assert evidence_course([], 0.05) is None


def test_the_figure_shows_the_path_and_where_it_decides() -> None:
    found = evidence_course([-2.0, -1.0, 1.5], 0.05)
    assert found is not None
    [panel] = found.make()
    path, rule = panel.lines
    assert path.points == ((0, 0.0), (1, -2.0), (2, -1.0), (3, 1.5))
    assert rule.name == "decides at 20"
    assert {round(y, 3) for _, y in rule.points} == {1.301}


def test_a_long_run_is_thinned_but_ends_where_it_ended() -> None:
    found = evidence_course([n / 10_000 for n in range(20_000)], 0.05)
    assert found is not None
    points = found.make()[0].lines[0].points
    assert len(points) < 450
    assert points[-1][0] == 20_000
