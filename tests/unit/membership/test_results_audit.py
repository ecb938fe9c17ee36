"""The report, JSON and conditions of an audit of documents, for given verdicts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ragwitness.core.types import Decision, Verdict
from ragwitness.membership.results.audit import (
    RESULT_TYPE,
    AuditResult,
    Calibration,
    headline,
    how_often_wrong,
    read_conditions,
    rule,
    strength,
    words_of,
)
from ragwitness.membership.results.odds import OddsScale
from ragwitness.report.document import Mark, Table
from ragwitness.stats.evaluation import evaluate

_IN, _OUT, _UNSURE = Decision.IN, Decision.OUT, Decision.INCONCLUSIVE
_GUESSES = OddsScale(("smollm2",), 0.05, ())
_KNOWN = Calibration("known-out", 99, True, "They are like yours.", tuple(map(float, range(99))))


def _verdict(name: str, decision: Decision, p: float | None, **more: object) -> Verdict:
    score = None if p is None else 1.0 - p
    return Verdict(name, decision, p, score, 2, **more)  # type: ignore[arg-type]


def _result(*verdicts: Verdict, **more: object) -> AuditResult:
    plain: dict[str, object] = {
        "method": "rag-mia", "target": "http://x/v1", "alpha": 0.05,
        "started": "2026-11-21T02:40:11Z", "seconds": 60.0, "queries": 20,
        "verdicts": verdicts, "calibration": _KNOWN, "evaluation": None,
        "settings": {"correction": "Benjamini-Hochberg over all scored documents"},
    }  # fmt: skip
    return AuditResult(**{**plain, **more})  # type: ignore[arg-type]


_THREE = _result(
    _verdict("a", _IN, 0.01, q_value=0.03),
    _verdict("b", _OUT, 0.9, p_out=0.01),
    _verdict("c", _UNSURE, None, reason="too short"),
)


def test_the_title_counts_accusations_and_the_sentence_everything_else() -> None:
    assert headline(_THREE) == (
        "1 of 3 documents: in the database",
        "1 shows no sign of being in it; 1 is inconclusive; 1 could not be scored at all.",
    )
    assert headline(_result())[0] == "No documents were audited"
    assert headline(_result(_verdict("a", _IN, 0.01)))[1] == "All have this verdict."


def test_a_copy_is_no_document_of_its_own() -> None:
    copy = replace(_THREE.verdicts[0], document="a2", queries=0, reason="a copy of “a”")
    result = replace(_THREE, verdicts=(*_THREE.verdicts, copy))
    assert (len(result.own), result.count(_IN)) == (3, 1)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "at most 5 % are expected to be outside"),
        ({"settings": {}}, "with probability at most 5 %"),
        ({"calibration": replace(_KNOWN, exact=False)}, "is not known: nobody has confirmed"),
        # E-values alone decide, or decide nothing, where nobody named documents outside.
        (
            {"calibration": replace(_KNOWN, source="generated", exact=False), "odds": _GUESSES},
            "no more often than the reference models guess",
        ),
    ],
)
def test_the_error_rate_is_promised_only_if_the_calibration_is_exact(changes, says) -> None:
    result = replace(_THREE, **changes)
    assert says in how_often_wrong(result)
    assert how_often_wrong(result) in RESULT_TYPE.report(result).claimed[0]


def test_the_report_says_what_the_verdicts_rest_on_and_leaves_out_empty_rows() -> None:
    report = RESULT_TYPE.report(_THREE)
    rests = dict(report.rests_on)
    assert rests["Smallest p-value possible"] == "0.010"
    assert rests["Guarantee"] == "Exact under this assumption. They are like yours."
    assert not {"Equal scores", "Possible decisions"} & set(rests)
    assert all(value for _, value in (*report.brief, *report.settings))
    tied = RESULT_TYPE.report(replace(_THREE, calibration=replace(_KNOWN, largest_tie=7)))
    assert (
        "7 of 99 calibration documents have the same score" in dict(tied.rests_on)["Equal scores"]
    )
    assert [share.n for share in report.shares] == [1, 1, 1]


def test_p_if_inside_is_explained_only_where_a_document_has_one() -> None:
    terms = dict(RESULT_TYPE.report(_THREE).reading)
    assert "requires q ≤ 5 %" in terms["q-value"]
    assert "p if inside" in terms
    assert "p if inside" not in dict(RESULT_TYPE.report(_result(_THREE.verdicts[0])).reading)


def test_windows_are_told_with_the_chance_to_meet_a_part() -> None:
    partly = _verdict("a", _IN, 0.01, windows=2, share=0.25)
    claimed = RESULT_TYPE.report(_result(partly)).claimed
    assert "In 2 windows at random places" in claimed[-1]
    assert "75 % for 50 % of it" in claimed[-1]
    assert words_of(partly).reason == (
        "asked about 2 windows, 25 % of its text; a part may be inside"
    )
    assert len(RESULT_TYPE.report(_THREE).claimed) == 3


def test_a_wrong_verdict_is_marked_and_rates_say_whether_the_promise_was_kept() -> None:
    verdicts = [_verdict(f"m{i}", _IN, 0.01, member=True) for i in range(4)]
    verdicts += [_verdict(f"n{i}", _UNSURE, 0.5, member=False) for i in range(3)]
    verdicts += [_verdict("wrong", _IN, 0.02, member=False)]
    evaluation = evaluate(
        [v.score or 0.0 for v in verdicts], [bool(v.member) for v in verdicts],
        decisions=[v.decision is _IN for v in verdicts],
        p_values=[v.p_value or 0.0 for v in verdicts], alpha=0.05,
        unscorable=0, decided_by="p <= 0.05",
    )  # fmt: skip
    report = RESULT_TYPE.report(_result(*verdicts, evaluation=evaluation))
    [known] = [part for part in report.sections if part.key == "evaluation"]
    [table] = [block for block in known.blocks if isinstance(block, Table)]
    remarks = {row[0].text: row[-1] for row in table.rows}
    assert remarks["False positives"] == "promised: at most 5 %; above, but within chance"
    [documents] = [part for part in report.sections if part.key == "documents"]
    rows = [row for group in documents.blocks[1:] for row in group.blocks[0].rows]
    marked = {row[0].text for row in rows if any(isinstance(cell, Mark) for cell in row)}
    assert marked == {"wrong"}


def test_documents_are_ranked_by_the_test_that_decided() -> None:
    ranked = sorted(_THREE.verdicts, key=strength)
    assert [verdict.document for verdict in ranked] == ["a", "c", "b"]


@pytest.mark.parametrize(
    ("condition", "code"), [("in", 3), ("in:2", 0), ("unscorable", 3), ("out:50%", 0)]
)
def test_conditions_count_documents(condition: str, code: int) -> None:
    assert rule(_THREE, read_conditions([condition])).code == code


def test_the_json_keeps_everything_and_no_number_that_is_none() -> None:
    odd = replace(_THREE.verdicts[0], score=float("inf"))
    stored = json.loads(json.dumps(RESULT_TYPE.stored(_result(odd)), allow_nan=False))
    [row] = stored["documents"]
    assert (row["score"], row["reason"]) == (None, "the score is not a finite number")
    stored = json.loads(json.dumps(RESULT_TYPE.stored(_THREE), allow_nan=False))
    assert stored["summary"]["counts"] == {
        "in": 1, "out": 1, "inconclusive": 1, "documents": 3, "unscorable": 1,
    }  # fmt: skip
    assert RESULT_TYPE.opened(stored) == _THREE
