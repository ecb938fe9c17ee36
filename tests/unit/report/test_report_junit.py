"""The JUnit XML, read back with the parser of the standard library."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ragwitness.core.errors import InputError
from ragwitness.core.types import Decision, Evidence, Interval, Verdict
from ragwitness.membership.results.audit import AuditResult
from ragwitness.membership.results.audit import read_conditions as parse_conditions
from tests.support.reports import junit_of as junit_xml
from tests.support.reports import write
from tests.unit.report.fake_results import fake_result

EVIL = "]]><failure/>\"'&<\x00\x07\x1b\x85\u202e\ud800\ufffe\uffff\U0001f600"


def parse(result: AuditResult, *conditions: str) -> ET.Element:
    text = junit_xml(result, parse_conditions(conditions))
    return ET.fromstring(text.encode())  # noqa: S314


def names(root: ET.Element, kind: str) -> list[str]:
    return [case.get("name", "") for case in root.iter("testcase") if case.find(kind) is not None]


def ids(result: AuditResult, *decisions: Decision) -> list[str]:
    return [v.document for v in result.verdicts if v.decision in decisions]


@pytest.mark.parametrize(
    ("conditions", "failing", "skipped"),
    [
        ([], [], [Decision.INCONCLUSIVE]),
        (["in"], [Decision.IN], [Decision.INCONCLUSIVE]),
        (["out", "in"], [Decision.IN, Decision.OUT], [Decision.INCONCLUSIVE]),
        (["inconclusive"], [Decision.INCONCLUSIVE], []),
        (["in:199"], [], [Decision.INCONCLUSIVE]),
    ],
)
def test_failures_are_the_documents_of_the_conditions_met(
    conditions: Sequence[str], failing: list[Decision], skipped: list[Decision]
) -> None:
    result = fake_result(200)
    root = parse(result, *conditions)
    assert [c.get("name") for c in root.iter("testcase")] == ids(result, *Decision)
    assert names(root, "failure") == ids(result, *failing)
    assert names(root, "skipped") == ids(result, *skipped)
    for element in (root, root.find("testsuite")):
        assert element is not None
        assert element.get("tests") == "200"
        assert element.get("failures") == str(len(ids(result, *failing)))
        assert element.get("skipped") == str(len(ids(result, *skipped)))
        assert element.get("errors") == "0"
        assert element.get("time") == "102.300"


def test_unscorable_documents_alone_fail_where_only_they_are_counted() -> None:
    result = fake_result(200)
    root = parse(result, "unscorable")
    assert names(root, "failure") == [v.document for v in result.verdicts if v.score is None]
    assert len(names(root, "skipped")) == result.count(Decision.INCONCLUSIVE) - result.unscorable


def test_a_failure_says_why_in_the_words_of_the_other_reports() -> None:
    word = Evidence("ankle", "her left", Interval(0.93, 0.93), 0.004)
    verdict = Verdict("a", Decision.IN, 0.01, 2.0, 3, q_value=0.02, evidence=(word,))
    root = parse(replace(fake_result(0), verdicts=(verdict,), evaluation=None), "in")
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None
    assert failure.get("type") == "in"
    assert failure.get("message") == (
        "in the database: p 0.010, q 0.020, score 2.00, 3 queries; --fail-on in"
    )
    assert failure.text == "her left ankle: 0.93 / 0.004"
    passed = parse(replace(fake_result(0), verdicts=(verdict,), evaluation=None))
    assert "her left ankle" in (passed.findtext("testsuite/testcase/system-out") or "")


def test_untrusted_text_is_escaped_and_what_xml_forbids_is_gone() -> None:
    word = Evidence(EVIL, EVIL, Interval(0.0, 0.3), 0.01)
    result = replace(
        fake_result(0),
        verdicts=(
            Verdict(EVIL, Decision.IN, 0.01, 2.0, 3, evidence=(word,)),
            Verdict("b", Decision.OUT, 0.9, -2.0, 3, evidence=(word,)),
            Verdict("c", Decision.INCONCLUSIVE, None, None, 0, reason=EVIL),
        ),
        target=EVIL,
        method=EVIL,
        started=EVIL,
        ragwitness=EVIL,
        warnings=(EVIL,),
        settings={EVIL: EVIL},
        calibration=replace(fake_result(0).calibration, note=EVIL),
        seconds=math.nan,
    )
    text = junit_xml(result, parse_conditions(["in"]))
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x85\u202e\ud800\ufffe\uffff]", text)
    root = ET.fromstring(text.encode())  # noqa: S314
    assert len(root.findall(".//failure")) == 1
    name = root.find(".//testcase").get("name")  # type: ignore[union-attr]
    assert name is not None
    assert name.startswith("]]><failure/>\"'&<⟨U+0000⟩")
    assert name.endswith("\U0001f600")
    assert "time" not in root.attrib


def test_order_of_elements_is_that_of_the_schema() -> None:
    suite = parse(fake_result(24)).find("testsuite")
    assert suite is not None
    kinds = [child.tag for child in suite]
    assert kinds == ["properties", *["testcase"] * 24, "system-out"]
    assert "5 likeliest words" in (suite.findtext("system-out") or "")
    properties = {p.get("name"): p.get("value") for p in suite.iter("property")}
    assert properties["fail-on"] == "nothing"
    assert properties["correction"] == "Benjamini-Hochberg over 200 documents"


def test_write_names_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    write("junit", fake_result(2), tmp_path / "r.xml")
    assert (tmp_path / "r.xml").read_bytes().startswith(b'<?xml version="1.0" encoding="utf-8"?>')
    with pytest.raises(InputError, match="Cannot write"):
        write("junit", fake_result(2), tmp_path / "r.xml" / "r.xml")
