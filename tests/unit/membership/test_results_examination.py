"""The result of ``doctor``, for a target that was seen."""

from __future__ import annotations

from ragwitness.core.types import Capability
from ragwitness.membership.results.examination import RESULT_TYPE, Examination, PilotOutcome
from ragwitness.runner.capabilities import CapabilityReport

_SEEN = CapabilityReport("m", frozenset({Capability.TEXT}), True, 20, False, None, 0.1, 3, "Hello.")
_RESULT = Examination(_SEEN, ("mba", "min-k"), {"mba": PilotOutcome(True, "it reads", 8)})


def test_pilots_and_methods_without_one_are_told_apart() -> None:
    facts = dict(RESULT_TYPE.report(_RESULT).facts)
    assert facts["pilot of mba"] == "it reads"
    assert facts["audits possible"] == "mba, min-k (no pilot)"
    assert facts["queries spent"] == "11"
    assert dict(RESULT_TYPE.report(Examination(_SEEN, (), {})).facts)["audits possible"] == "none"


def test_an_examination_survives_its_json_and_an_earlier_forecast() -> None:
    stored = RESULT_TYPE.stored(_RESULT)
    assert RESULT_TYPE.opened(stored) == _RESULT
    assert RESULT_TYPE.opened(stored | {"forecast": {"methods": {}}}) == _RESULT


def test_its_rows_are_its_facts() -> None:
    rows = list(RESULT_TYPE.rows(_RESULT))
    assert {row["row"]: row["value"] for row in rows}["queries spent"] == "11"
