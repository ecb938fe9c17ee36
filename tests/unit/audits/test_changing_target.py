"""A target that changes while it is asked, and holds nothing: nobody is accused."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from ragwitness.asking.budget import Budget
from ragwitness.asking.governor import Governor, Pace
from ragwitness.audits.membership import run_audit
from ragwitness.audits.owner import run_collection
from ragwitness.audits.plan import AuditPlan
from ragwitness.results.membership import AuditResult
from ragwitness.text.sample import load_sample
from ragwitness.types import Answer, Capability, Decision, Document, Probe, Query, Score


class _Turning:
    """Says no to so many questions and yes to all others, whatever it is asked."""

    name = "turning"
    capabilities = frozenset({Capability.TEXT})

    def __init__(self, after: int) -> None:
        self.left = after

    async def ask(self, query: Query) -> Answer:
        self.left -= 1
        return Answer("no" if self.left >= 0 else "yes")

    async def close(self) -> None:
        pass


class _Asks:
    """One question a document, whose answer is its score."""

    name = "asks"
    requires = frozenset({Capability.TEXT})

    def probe(self, document: Document) -> Probe:
        (answer,) = yield [Query(document.text)]
        return Score(float(answer.text == "yes"))


def _plan(mine: int, others: int) -> AuditPlan:
    texts = load_sample()
    return AuditPlan(tuple(texts[:mine]), known_out=tuple(texts[mine : mine + others]), in_flight=1)


@pytest.mark.parametrize("after", [0, 20, 60, 100, 103, 110, 119])
def test_no_document_is_accused_because_the_target_changed(after: int) -> None:
    result = asyncio.run(run_audit(_plan(20, 100), _Turning(after), _Asks()))
    assert all(one.decision is not Decision.IN for one in result.verdicts)
    # Asked one kind after the other, all in question would have scored above all others at 100.
    p_values = [one.p_value or 1.0 for one in result.verdicts]
    assert sum(p <= 0.05 for p in p_values) <= 3


@pytest.mark.parametrize("after", [79, 85, 90, 100])
def test_no_collection_is_accused_because_the_target_changed(after: int) -> None:
    result = asyncio.run(run_collection(_plan(60, 100), _Turning(after), _Asks()))
    assert not result.decided
    assert result.caution is None or "seems to have changed during the audit" in result.caution
    assert (result.caution is not None) == (result.log10_e >= 1.3)


def test_a_target_that_stays_the_same_is_not_called_changed() -> None:
    class Holds(_Turning):
        async def ask(self, query: Query) -> Answer:
            return Answer("yes" if query.prompt in held else "no")

    plan = _plan(60, 100)
    held = {one.text for one in plan.documents}
    result = asyncio.run(run_collection(plan, Holds(0), _Asks()))
    assert result.decided
    assert result.caution is None


@pytest.mark.parametrize(
    ("refuses", "says"),
    [
        ("late", "only 0 of the 20 known-outside"),
        ("half of late", None),
        ("most of late", "only 4"),
    ],
)
def test_a_collection_is_decided_only_where_a_change_could_be_seen(refuses: str, says) -> None:
    plan = _plan(60, 100)
    held = {one.text for one in plan.documents}
    late = []

    class Refuses(_Turning):
        async def ask(self, query: Query) -> Answer:
            if self.left > -80 or query.prompt in held:
                self.left -= 1
                return Answer("yes" if query.prompt in held else "no")
            late.append(query)
            many = {"late": 20, "half of late": 10, "most of late": 16}[refuses]
            return Answer("no") if len(late) > many else Answer("", error="429 daily limit")

    class Asks(_Asks):
        def probe(self, document: Document) -> Probe:
            (answer,) = yield [Query(document.text)]
            return Score(None if answer.error else float(answer.text == "yes"), reason=answer.error)

    result = asyncio.run(run_collection(plan, Refuses(0), Asks()))
    assert result.log10_e >= 1.3
    assert result.decided == (says is None)
    assert says is None or says in (result.caution or "")


def test_a_cap_before_the_last_documents_leaves_a_collection_undecided(tmp_path) -> None:
    plan = _plan(60, 100)
    held = {one.text for one in plan.documents}

    class Holds(_Turning):
        async def ask(self, query: Query) -> Answer:
            return Answer("yes" if query.prompt in held else "no")

    def run(cap: int | None):
        with Governor.of_run(tmp_path, Budget(queries=cap), Pace.at_most(1)) as governor:
            audit = run_collection(plan, Holds(0), _Asks(), run=tmp_path, governor=governor)
            return asyncio.run(audit)

    needed = run(None).documents_asked + 80
    for name in ("answers.jsonl", "spent.jsonl"):
        (tmp_path / name).unlink()
    # Decided by the e-value, just before the documents that are asked last.
    result = run(needed)
    assert not result.decided
    assert result.spent.stopped_by == "query"
    assert "could not be checked" in result.caution
    again = run(None)  # the same command with a higher cap resumes
    assert again.decided
    assert again.caution is None


def _resumed(plan: AuditPlan, target: _Turning, run, cap: int | None = None) -> AuditResult:
    with Governor.of_run(run, Budget(queries=cap), Pace.at_most(1)) as governor:
        audit = run_audit(plan, target, _Asks(), run=run, governor=governor, identity="asks")
        return asyncio.run(audit)


def test_other_documents_in_the_folder_of_a_finished_run_are_not_accused(tmp_path) -> None:
    plan = _plan(20, 100)
    _resumed(plan, _Turning(10**6), tmp_path)
    others = tuple(load_sample()[120:140])
    # The target says yes to everybody by now.
    result = _resumed(replace(plan, documents=others), _Turning(0), tmp_path)
    assert result.count(Decision.IN) == 0
    assert not result.calibration.exact
    assert "asked at another time" in result.verdicts[0].reason
    assert any("take a fresh --run folder" in one for one in result.warnings)
    fresh = _resumed(replace(plan, documents=others), _Turning(0), tmp_path / "fresh")
    assert fresh.calibration.exact


def test_an_audit_that_was_interrupted_stays_exact(tmp_path) -> None:
    plan = _plan(20, 100)
    assert _resumed(plan, _Turning(10**6), tmp_path, cap=70).spent.stopped_by == "query"
    result = _resumed(plan, _Turning(10**6), tmp_path)
    assert result.calibration.exact
    assert any("70 of 120 answers were kept" in one for one in result.warnings)


class _Opening(_Asks):
    """Reads no further than the beginning, and asks for the rest of what begins so."""

    def probe(self, document: Document) -> Probe:
        (answer,) = yield [Query(document.text[:120])]
        return Score(float(answer.text == "yes"))


def test_texts_that_differ_only_further_on_have_no_verdict(tmp_path) -> None:
    plan = _plan(20, 100)
    first, second = plan.documents[:2]
    known = plan.known_out[0]
    twin = Document("twin", first.text[:120] + second.text)
    late = Document("late", known.text[:120] + second.text)
    mine = replace(plan, documents=(*plan.documents[:2], twin, late))

    class Holds(_Turning):
        async def ask(self, query: Query) -> Answer:
            held = (first.text, second.text)
            return Answer("yes" if any(one.startswith(query.prompt) for one in held) else "no")

    result = asyncio.run(run_audit(mine, Holds(0), _Opening(), run=tmp_path))
    reasons = {one.document: (one.decision.value, one.reason) for one in result.verdicts}
    said = "asks the same question as {}, whose text differs further on"
    assert reasons[first.id] == ("inconclusive", said.format("twin"))
    assert reasons["twin"] == ("inconclusive", said.format(first.id))
    assert reasons["late"] == ("inconclusive", said.format(known.id))
    assert reasons[second.id][0] == "in"  # one test, and not one of four
    assert result.verdicts[1].q_value == result.verdicts[1].p_value
    assert result.calibration.n == 99
    assert not any("earlier start" in one for one in result.warnings)
