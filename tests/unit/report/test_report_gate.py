"""--fail-on: its grammar, and what a finished run makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ragwitness.core.errors import ExitCode, InputError
from ragwitness.core.types import Decision, Verdict
from ragwitness.membership.results.audit import AuditResult, rule
from ragwitness.membership.results.audit import read_conditions as parse_conditions
from ragwitness.membership.results.collection import RESULT_TYPE as COLLECTION
from ragwitness.membership.results.collection import CollectionResult
from tests.unit.report.fake_results import fake_result

PASS, FAILED, INCONCLUSIVE = ExitCode.PASS, ExitCode.FAILED, ExitCode.INCONCLUSIVE


def a_collection(decided: bool) -> CollectionResult:
    return CollectionResult(
        "mba", "lab:x", 0.05, decided, 2.0, 0.01, 5, 5, 20, 0, 25, 1.0, (0.5, 1.0, 2.0)
    )


def audited(found: int = 0, out: int = 0, unsure: int = 0, unscorable: int = 0) -> AuditResult:
    kinds = [
        (Decision.IN, 2.0, found),
        (Decision.OUT, -2.0, out),
        (Decision.INCONCLUSIVE, 0.5, unsure),
        (Decision.INCONCLUSIVE, None, unscorable),
    ]
    verdicts = [
        Verdict(f"{decision}-{score}-{i}", decision, None, score, 1)
        for decision, score, count in kinds
        for i in range(count)
    ]
    return replace(fake_result(0), verdicts=tuple(verdicts), evaluation=None)


@pytest.mark.parametrize(
    ("conditions", "result", "code"),
    [
        ([], audited(found=3), PASS),
        ([], audited(unsure=3), PASS),
        (["in"], audited(found=1, out=9), FAILED),
        (["in"], audited(out=1, unsure=9), PASS),
        (["in"], audited(unsure=9, unscorable=1), INCONCLUSIVE),
        (["in"], audited(), INCONCLUSIVE),
        (["in:3"], audited(found=2, out=8), PASS),
        (["in:3"], audited(found=3, out=7), FAILED),
        (["in:5%"], audited(found=4, out=96), PASS),
        (["in:5%"], audited(found=5, out=95), FAILED),
        (["in:0.1%"], audited(found=1, out=999), FAILED),
        (["in:0.1%"], audited(found=1, out=1000), PASS),
        (["in:100%"], audited(), INCONCLUSIVE),
        (["out"], audited(found=9, out=1), FAILED),
        (["inconclusive"], audited(found=9, unscorable=1), FAILED),
        (["inconclusive:100%"], audited(unsure=9, unscorable=1), FAILED),
        (["inconclusive:100%"], audited(found=1, unsure=9), PASS),
        (["unscorable"], audited(out=1, unsure=9), PASS),
        (["unscorable"], audited(out=9, unscorable=1), FAILED),
        (["in:9", "unscorable"], audited(found=1, unscorable=1), FAILED),
        ([" in "], audited(found=1), FAILED),
    ],
)
def test_what_a_run_exits_with(
    conditions: Sequence[str], result: AuditResult, code: ExitCode
) -> None:
    ruling = rule(result, parse_conditions(conditions))
    assert ruling.code == code
    assert bool(ruling.why) == bool(conditions)


def test_the_reason_names_the_condition_and_the_counts() -> None:
    conditions = parse_conditions(["in", "out:1", "unscorable:12.5%"])
    why = rule(audited(found=2, unscorable=1, unsure=5), conditions).why
    assert why == "fails --fail-on in (2 of 8 documents), unscorable:12.5% (1 of 8 documents)"


@pytest.mark.parametrize(
    "text", ["", "IN", "in>3", "in:", "in:-1", "in:3 %", "maybe", "in,out", "in:x", "in:\u0663"]
)
def test_an_unknown_condition_lists_the_known_ones(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_conditions(["in", text])
    assert repr(text) in caught.value.message
    for known in ("in", "out", "inconclusive", "unscorable", "in:3", "in:5%"):
        assert known in caught.value.hint


@pytest.mark.parametrize("text", ["in:0", "in:0%", "in:2.5", "out:101%", "unscorable:0.0%"])
def test_a_number_that_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="no usable number"):
        parse_conditions([text])


@pytest.mark.parametrize(
    ("decided", "conditions", "code"),
    [
        (True, [], PASS),
        (False, [], PASS),
        (True, ["in"], FAILED),
        (False, ["in"], INCONCLUSIVE),
        (True, ["inconclusive"], PASS),
        (False, ["inconclusive"], FAILED),
        (False, ["in", "inconclusive"], FAILED),
    ],
)
def test_what_a_collection_exits_with(
    decided: bool, conditions: Sequence[str], code: ExitCode
) -> None:
    assert COLLECTION.rule(a_collection(decided), COLLECTION.conditions(conditions)).code == code


@pytest.mark.parametrize("text", ["out", "unscorable", "in:3", ""])
def test_a_collection_is_one_thing(text: str) -> None:
    with pytest.raises(InputError, match="--fail-on") as caught:
        COLLECTION.conditions([text])
    assert "in, inconclusive" in caught.value.hint
