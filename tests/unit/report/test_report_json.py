"""The JSON of a result: its shape, its strictness, and the way back."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Decision, Verdict
from ragwitness.membership.results.audit import RESULT_TYPE, from_json, headline, words_of
from ragwitness.report.result_registry import to_json
from tests.unit.report.fake_results import fake_result


@pytest.mark.parametrize(("n", "known"), [(0, True), (1, True), (60, True), (60, False)])
def test_round_trip(n: int, known: bool) -> None:
    result = fake_result(n, known=known)
    text = json.dumps(to_json(result), allow_nan=False)
    assert from_json(json.loads(text)) == result


def test_shape() -> None:
    data = to_json(fake_result(60))
    assert set(data) == {"kind", "version", "documents", "summary"}
    first = data["documents"][0]
    assert list(first)[:5] == ["id", "verdict", "p_value", "score", "queries"]
    assert first["verdict"] in {"in", "out", "inconclusive"}
    unscorable = data["documents"][40]
    assert unscorable["score"] is None
    assert unscorable["reason"]
    counts = data["summary"]["counts"]
    assert counts["in"] + counts["out"] + counts["inconclusive"] == counts["documents"] == 60
    assert set(data["summary"]["evaluation"]["auc"]) == {"value", "low", "high", "n"}


def test_never_nan_or_infinity() -> None:
    result = fake_result(24)
    assert result.evaluation
    rate = replace(result.evaluation.auc, value=math.nan, low=math.nan)
    odd = replace(
        result,
        verdicts=(Verdict("a", Decision.OUT, math.nan, math.inf, 1, q_value=math.nan),),
        evaluation=replace(result.evaluation, auc=rate),
        calibration=replace(result.calibration, scores=(math.nan, 1.0, -math.inf)),
    )
    data = json.loads(json.dumps(to_json(odd), allow_nan=False))
    assert data["documents"][0]["score"] is None
    assert data["documents"][0]["reason"] == "the score is not a finite number"
    assert data["summary"]["evaluation"]["auc"]["value"] is None
    back = from_json(data)
    assert back.evaluation
    assert math.isnan(back.evaluation.auc.value)
    assert back.calibration.scores == (1.0,)


def change(path: str, value: object) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json.dumps(to_json(fake_result(24))))
    place: Any = data
    *parents, last = path.split(".")
    for part in parents:
        place = place[int(part)] if isinstance(place, list) else place[part]
    if value is None:
        del place[last]
    elif isinstance(place, list):
        place[int(last)] = value
    else:
        place[last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("documents.1.verdict", "maybe", "documents.1.verdict"),
        ("documents.1.id", 3, "documents.1.id"),
        ("documents.2.p_value", "low", "documents.2.p_value"),
        ("documents.2.p_value", math.nan, "JSON"),
        ("documents.0.queries", None, "documents.0.queries"),
        ("summary.alpha", None, "alpha"),
        ("summary.version", None, "version"),
        ("summary.calibration.n", "many", "calibration.n"),
        ("summary.evaluation", "good", "evaluation"),
        ("summary.evaluation.auc", None, "auc"),
        ("documents.0", "x", "documents.0"),
        ("documents", 7, "documents"),
        ("summary", None, "summary"),
    ],
)
def test_a_malformed_field_is_named(path: str, value: object, named: str) -> None:
    with pytest.raises(InputError, match=named) as caught:
        from_json(change(path, value))
    assert caught.value.hint


def test_unknown_fields_are_ignored() -> None:
    assert from_json(change("summary.later", "1")) == fake_result(24)


def test_a_result_says_how_much_was_asked_about_and_counts_copies_once() -> None:
    result = fake_result(8)
    first = replace(result.verdicts[0], decision=Decision.IN, reason=None, windows=5, share=0.0412)
    copied = "a copy of “record-0000”"
    copy = replace(first, document="again", queries=0, reason=copied)
    result = replace(result, verdicts=(first, *result.verdicts[1:], copy), evaluation=None)
    data = json.loads(json.dumps(to_json(result)))
    assert from_json(data) == result
    assert (data["documents"][0]["windows"], data["documents"][0]["share"]) == (5, 0.0412)
    assert "windows" not in data["documents"][1]
    assert data["summary"]["counts"]["documents"] == 8
    assert headline(result)[0] == f"{result.count(Decision.IN)} of 8 documents: in the database"
    extent = "asked about 5 windows, 4.1 % of its text; a part may be inside"
    assert words_of(first).reason == extent
    assert words_of(copy).reason == f"{copied}; {extent}"
    [told] = (one for one in RESULT_TYPE.report(result).claimed if "inside alone" in one)
    assert "96.9 % for 50 % of it, 67.2 % for 20 % of it, 41 % for 10 % of it" in told
    assert not any("inside alone" in one for one in RESULT_TYPE.report(fake_result(8)).claimed)
