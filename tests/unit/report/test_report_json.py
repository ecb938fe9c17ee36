"""The JSON of a result: its shape, its strictness, and the way back."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from ragwitness.errors import InputError
from ragwitness.results.membership import from_json
from ragwitness.results.registry import to_json
from ragwitness.types import Decision, Verdict
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
