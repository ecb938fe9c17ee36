"""The matrix of documents and accounts, for given audits."""

from __future__ import annotations

from dataclasses import replace

from ragwitness.core.types import Decision, Verdict
from ragwitness.membership.results.audit import AuditResult, Calibration
from ragwitness.membership.results.scope import RESULT_TYPE, scope_of
from ragwitness.report.document import Table


def _audit(*decisions: Decision) -> AuditResult:
    verdicts = tuple(Verdict(f"d{i}", one, 0.01, 1.0, 1) for i, one in enumerate(decisions))
    outside = Calibration("known-out", 99, True, "They are like yours.")
    return AuditResult("mba", "http://x", 0.025, "", 1.0, 9, verdicts, outside, None, {})


_REACHED, _NOT = _audit(Decision.OUT, Decision.IN), _audit(Decision.OUT, Decision.INCONCLUSIVE)


def test_reached_documents_come_first_with_a_verdict_for_each_account() -> None:
    report = RESULT_TYPE.report(scope_of({"ann": _REACHED, "bob": _NOT}, 0.05))
    assert report.title == "1 of 2 documents: reached by another account"
    assert report.sentence.startswith("Of 4 pairs of a document and an account: 1 in the database")
    [table] = [one for one in report.sections[1].blocks if isinstance(one, Table)]
    assert [cell.text for cell in table.rows[0]] == ["d1", "IN", "inconclusive"]


def test_the_error_rate_is_that_of_all_pairs_only_if_every_audit_is_exact() -> None:
    exact = scope_of({"ann": _REACHED, "bob": _NOT}, 0.05)
    assert exact.wrong.startswith("Of the pairs called in, at most 5 %")
    loose = replace(_NOT, calibration=replace(_NOT.calibration, exact=False))
    assert "is not known" in scope_of({"ann": _REACHED, "bob": loose}, 0.05).wrong


def test_a_warning_names_its_accounts_unless_all_have_it() -> None:
    both, one = replace(_NOT, warnings=("late",)), replace(_REACHED, warnings=("late", "few"))
    assert scope_of({"ann": one, "bob": both}, 0.05).warnings == ("late", "ann: few")


def test_conditions_count_pairs_and_the_json_opens() -> None:
    result = scope_of({"ann": _REACHED, "bob": _NOT}, 0.05)
    assert RESULT_TYPE.rule(result, RESULT_TYPE.conditions(["in"])).code == 3
    assert RESULT_TYPE.rule(result, RESULT_TYPE.conditions(["in:2"])).code == 0
    assert RESULT_TYPE.opened(RESULT_TYPE.stored(result)) == result
