"""The report and conditions of an evaluation, for given rates."""

from __future__ import annotations

import math

import pytest

from ragwitness.membership.results.evaluation import RESULT_TYPE, Battery, Cost, Measured
from ragwitness.stats.rates import Rate

_HALF = Rate(0.5, 0.4, 0.6, 80)
_UNKNOWN = Rate(math.nan, math.nan, math.nan, 3)


def _measured(name: str, auc: float) -> Measured:
    rate = Rate(auc, auc - 0.1, min(1.0, auc + 0.1), 40)
    return Measured(
        name, rate, rate, None, rate, rate, 0.5, "a threshold", rate, 0.25,
        {"0.05": rate}, {"0.05": rate}, rate, None, None, {}, Cost(3.0, None, 0.25),
        {"a": 1.0, "b": 0.0}, ((0.0, 0.0), (0.0, 1.0), (1.0, 1.0)),
    )  # fmt: skip


def _battery(controls: dict[str, Rate], **more: object) -> Battery:
    audits = (_measured("mba", 0.7), _measured("s-rag/max", 0.75), _measured("s-rag", 0.9))
    plain = {"skipped": {}, "sizes": {"members": 20}, "likeness": 0.3, "settings": {}}
    return Battery(audits, controls, **{**plain, "seconds": 2.0, **more})  # type: ignore[arg-type]


def test_audits_are_ranked_with_the_variants_of_a_score_below_their_audit() -> None:
    report = RESULT_TYPE.report(_battery({}))
    assert report.title == "2 audits, one split, with controls"
    table = report.sections[0].blocks[0]
    assert [row[0].text for row in table.rows] == ["s-rag", " /max", "mba"]


@pytest.mark.parametrize(
    ("name", "rate", "says"),
    [
        ("blind words", Rate(0.7, 0.6, 0.8, 80), "no figure below means what it seems to"),
        ("retrieval off: mba", Rate(0.7, 0.6, 0.8, 80), "without retrieval"),
        ("retrieval off: mba", _UNKNOWN, "could not be measured"),
    ],
)
def test_a_failed_control_is_the_first_warning(name: str, rate: Rate, says: str) -> None:
    battery = _battery({name: rate}, skipped={"min-k": "too few"})
    warning, skipped = RESULT_TYPE.report(battery).warnings
    assert says in warning
    assert skipped == "min-k has no figure: too few."


@pytest.mark.parametrize(
    ("name", "rate", "verdict"),
    [
        ("blind words", _HALF, "holds"),
        ("blind length", Rate(0.5, 0.2, 0.8, 9), "too few to tell"),
        ("near-duplicates: mba", Rate(0.9, 0.8, 1.0, 20), ""),
    ],
)
def test_a_control_that_holds_warns_of_nothing(name: str, rate: Rate, verdict: str) -> None:
    report = RESULT_TYPE.report(_battery({name: rate}))
    assert report.warnings == ()
    assert report.sections[1].blocks[0].rows[0][-1] == verdict


def test_the_embedded_reader_is_named_as_flattering() -> None:
    report = RESULT_TYPE.report(_battery({}, settings={"generator": "reader@1"}))
    assert "rag-mia looks better" in report.sections[0].blocks[1].text
