"""A target that changes while it is asked, and holds nothing: nobody is accused."""

from __future__ import annotations

import asyncio

import pytest

from ragwitness.audits.membership import run_audit
from ragwitness.audits.owner import run_collection
from ragwitness.audits.plan import AuditPlan
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
    assert result.caution is None or "target changed during the audit" in result.caution
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
