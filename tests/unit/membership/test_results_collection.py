"""The path of the evidence about a collection."""

from __future__ import annotations

import pytest

from ragwitness.membership.results.collection import (
    RESULT_TYPE,
    CollectionResult,
    evidence_course,
)
from ragwitness.report.spending import Spending


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


def _result(**changes: object) -> CollectionResult:
    plain: dict[str, object] = {
        "method": "mba", "target": "http://x", "alpha": 0.05, "decided": True, "log10_e": 1.5,
        "p_value": 0.03, "documents_asked": 12, "documents": 40, "known_out": 11, "unscorable": 1,
        "queries": 30, "seconds": 9.0, "path": (0.4, 1.5),
    }  # fmt: skip
    return CollectionResult(**{**plain, **changes})  # type: ignore[arg-type]


def test_a_decided_collection_is_called_unlike_documents_outside() -> None:
    report = RESULT_TYPE.report(_result())
    assert report.title.startswith("The collection is not like documents outside (e-value ")
    assert "at most 5 %" in RESULT_TYPE.report(_result()).claimed[0]
    assert dict(report.brief)["Asked about"] == "12 of 40 documents"


def test_an_undecided_collection_is_not_called_outside() -> None:
    report = RESULT_TYPE.report(_result(decided=False, caution="Not exact: they differ."))
    assert report.title.startswith("Not decided about the collection")
    assert report.warnings == ("Not exact: they differ.",)
    assert "does not say that the collection is outside" in report.not_claimed[1]


def test_a_cap_is_named_with_the_option_that_raises_it() -> None:
    spent = Spending(30, 0, 0, max_queries=30, stopped_by="query")
    report = RESULT_TYPE.report(_result(decided=False, spent=spent))
    assert dict(report.brief)["Stopped by"] == "the query cap"
    assert "a higher --max-queries resumes" in report.closing[1]


@pytest.mark.parametrize(
    ("decided", "condition", "code"),
    [(True, "in", 3), (False, "in", 4), (False, "inconclusive", 3), (True, "inconclusive", 0)],
)
def test_conditions_of_a_collection(decided: bool, condition: str, code: int) -> None:
    result = _result(decided=decided)
    assert RESULT_TYPE.rule(result, RESULT_TYPE.conditions([condition])).code == code


def test_a_collection_survives_its_json() -> None:
    assert RESULT_TYPE.opened(RESULT_TYPE.stored(_result())) == _result()
