"""``--method auto`` takes what the target, the documents and the caps admit, and says why."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from ragwitness.core.errors import CapabilityError, InputError
from ragwitness.core.types import Capability, Document, Score
from ragwitness.membership.auto_select import Pilot, choose, refuse_beforehand
from ragwitness.membership.plan import AuditPlan
from ragwitness.membership.task import AuditTask
from ragwitness.models.model_registry import load_language_model
from ragwitness.runner.budget import Budget
from ragwitness.runner.capabilities import CapabilityReport
from ragwitness.text.sample import load_sample

_TEXT = frozenset({Capability.TEXT})
_ALL = _TEXT | {Capability.TOP_LOGPROBS}


@pytest.fixture(scope="module")
def plan() -> AuditPlan:
    documents = load_sample()
    return AuditPlan(tuple(documents[:8]), tuple(documents[20:60]))


def _report(seen, requests=0) -> CapabilityReport:
    return CapabilityReport("m", seen, True, 20, False, None, 0.1, requests, "Hello.")


async def _readable(audit) -> Pilot:
    return Pilot(audit.name, (Score(1.0),) * 4, (Score(0.0),) * 4, 8)


def _chosen(plan, seen=_ALL, piloting=_readable, requests=0, **caps):
    own = load_language_model("reader")
    return asyncio.run(choose(plan, _report(seen, requests), own, Budget(**caps), piloting))


@pytest.mark.slow
def test_the_first_candidate_is_taken_where_nothing_speaks_against_it(plan) -> None:
    found = _chosen(plan)
    assert found.method == "joint"
    assert found.why.startswith("auto chose joint: about 6 queries a document; ")
    assert "not passages: the target does not give contexts" in found.why


def test_a_target_that_shows_what_it_retrieved_is_read_from_that(plan) -> None:
    found = _chosen(plan, _ALL | {Capability.CONTEXTS})
    assert found.method == "passages"
    assert found.why == (
        "auto chose passages: about 1 query a document; the target shows the passages that it"
        " retrieves."
    )


def test_where_e_values_decide_alone_every_question_serves_them(plan) -> None:
    alone = replace(plan, known_out=(), references=("smollm2",))
    found = _chosen(alone, _TEXT)
    assert found.method == "runon"
    assert found.config.natural
    one = replace(plan, documents=plan.documents[:1], references=("smollm2",))
    assert _chosen(one, _TEXT).method == "joint"  # forty known-outside documents rank one


def test_known_documents_without_a_question_are_no_obstacle_to_e_values(plan) -> None:
    numbers = tuple(Document(f"n{i}", f"{i} {i + 1} {i + 2}") for i in range(12))
    unlike = AuditPlan(plan.documents, numbers, references=("smollm2",))
    assert _chosen(unlike, _TEXT).method == "runon"


def test_what_the_target_does_not_give_is_named(plan, monkeypatch) -> None:
    turned = (("s-rag", {"mode": "few"}), ("rag-mia", {}))
    monkeypatch.setattr("ragwitness.membership.auto_select.CANDIDATES", turned)
    found = _chosen(plan, _TEXT)
    assert found.method == "rag-mia"
    assert "s-rag (few): the target does not give top_logprobs" in found.why
    few = _chosen(plan)
    assert (few.method, few.config.mode) == ("s-rag", "few")


def test_a_cap_chooses_a_method_that_asks_less(plan, monkeypatch) -> None:
    turned = (("s-rag", {"mode": "few"}), ("rag-mia", {}))
    monkeypatch.setattr("ragwitness.membership.auto_select.CANDIDATES", turned)
    found = _chosen(plan, queries=70)
    assert found.method == "rag-mia"
    # Three questions about each of 48 documents.
    assert "the whole would take 144 queries and " in found.why
    assert "more than --max-queries allows" in found.why
    # Where none stays within the caps, the one that asks least; the run can be resumed.
    none = _chosen(plan, queries=20)
    assert none.method == "rag-mia"
    assert "no method stays within the caps" in none.why


def test_a_price_counts_as_a_cap_does(plan, monkeypatch) -> None:
    turned = (("s-rag", {"mode": "few"}), ("rag-mia", {}))
    monkeypatch.setattr("ragwitness.membership.auto_select.CANDIDATES", turned)
    found = _chosen(plan, cost=0.02, price_in=1.0, price_out=1.0)
    assert found.method == "rag-mia"
    assert "--max-cost" in found.why


def test_documents_that_a_method_cannot_read_are_left_to_the_next(plan, monkeypatch) -> None:
    monkeypatch.setattr(
        "ragwitness.membership.auto_select.CANDIDATES", (("mba", {}), ("rag-mia", {}))
    )
    short = tuple(Document(f"s{i}", f"Eight words are in this short text {i}.") for i in range(8))
    found = _chosen(AuditPlan(short, plan.known_out))
    assert found.method == "rag-mia"
    assert "can ask about 0 of 5 documents tried" in found.why


def test_where_nothing_can_be_used_the_reasons_are_said(plan) -> None:
    with pytest.raises(CapabilityError, match="No method can be chosen"):
        _chosen(plan, frozenset())
    mute = replace(_report(frozenset()), silence="it called a tool instead of answering")
    own = load_language_model("reader")
    with pytest.raises(CapabilityError, match="give text: it called a tool instead"):
        asyncio.run(choose(plan, mute, own, Budget(), _readable))
    tiny = AuditPlan(tuple(Document(f"t{i}", "tiny") for i in range(3)), plan.known_out)
    with pytest.raises(InputError, match="nothing was sent"):
        asyncio.run(refuse_beforehand(tiny, load_language_model("reader")))


def _pilots(*readable):
    """Pilots that call the methods named readable, and count who was tried."""
    tried: list[str] = []

    async def piloting(audit):
        assert getattr(getattr(audit, "config", None), "questions", 3) == 3
        tried.append(audit.name)
        shown = 1.0 if audit.name in readable else 0.0
        return Pilot(audit.name, (Score(shown),) * 4, (Score(0.0),) * 4, 8)

    return tried, piloting


def test_a_pilot_is_advice_and_no_gate(plan) -> None:
    tried, piloting = _pilots()
    found = _chosen(plan, _TEXT, piloting)
    assert (found.method, found.asked, tried) == ("joint", 8, ["joint"])
    assert "only 0 of 4 texts shown in the question stood out" in found.why
    assert "asked all the same" in found.why


@pytest.mark.parametrize(("asked", "look"), [(2, 2), (3, 0)])
def test_where_pilots_run_on_at_once_silent_documents_get_a_first_look_alone(
    plan, asked, look
) -> None:
    async def piloting(audit):
        shown = Score(1.0, details={"ran on": 1.0, "asked": float(asked)})
        return Pilot(audit.name, (shown,) * 4, (Score(0.0),) * 4, 8)

    found = _chosen(plan, _TEXT, piloting)
    assert found.config.look == look
    assert ("where 2 questions bring nothing, no more are asked" in found.why) == bool(look)


def test_what_needs_no_reading_is_not_piloted(plan) -> None:
    tried, piloting = _pilots()
    assert _chosen(plan, _TEXT | {Capability.CONTEXTS}, piloting).method == "passages"
    assert tried == []


@pytest.mark.parametrize(("documents", "piloted"), [(1, []), (10, []), (11, ["runon"])])
def test_a_few_documents_with_e_values_alone_take_no_pilot(documents, piloted) -> None:
    plan = AuditPlan(tuple(load_sample()[:documents]), references=("smollm2",))
    tried, piloting = _pilots("runon")
    assert _chosen(plan, _TEXT, piloting).config.further == 12
    assert tried == piloted


def test_the_cheapest_beyond_the_caps_is_piloted_too(plan, monkeypatch) -> None:
    monkeypatch.setattr(
        "ragwitness.membership.auto_select.CANDIDATES", (("mba", {}), ("rag-mia", {}))
    )
    tried, piloting = _pilots("mba")
    found = _chosen(plan, _ALL, piloting, queries=40)
    assert found.method == tried[0] == "mba"
    assert "no method stays within the caps" in found.why


def test_what_is_asked_before_the_documents_counts(plan, monkeypatch) -> None:
    turned = (("s-rag", {"mode": "few"}), ("rag-mia", {}))
    monkeypatch.setattr("ragwitness.membership.auto_select.CANDIDATES", turned)
    # Measuring the target took 3 queries, and three questions each take 144.
    for spare, over in ((0, False), (-1, True)):
        found = _chosen(plan, requests=3, queries=147 + spare)
        assert found.method == ("rag-mia" if over else "s-rag")
        assert ("more than --max-queries allows" in found.why) == over


@pytest.mark.parametrize(
    ("method", "references", "enough"),
    [
        ("runon", ("smollm2",), 30.0),  # one place is too little evidence for twenty documents
        ("mba", ("smollm2",), None),
        ("rag-mia", (), None),  # it bets on no words: ranks alone can decide
        ("s2mia", (), None),
    ],
)
def test_a_reference_model_by_default_is_for_methods_that_bet(
    monkeypatch: pytest.MonkeyPatch, method: str, references: tuple[str, ...], enough: float | None
) -> None:
    monkeypatch.setattr("ragwitness.models.smollm2.can_be_had", lambda: True)
    texts = [document.text for document in load_sample()[:60]]
    order = AuditTask("lab:x", texts[:20], known_out=texts[20:], method=method).order()
    assert order.plan.references == references
    assert getattr(order.config, "enough", None) == enough
    own = AuditTask("lab:x", texts[:20], known_out=texts[20:], method=method, options=["enough=3"])
    if enough:
        assert own.order().config.enough == 3
