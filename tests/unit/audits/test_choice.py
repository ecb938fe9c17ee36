"""``--method auto`` takes what the target, the documents and the caps admit, and says why."""

from __future__ import annotations

import asyncio

import pytest

from ragwitness.asking.budget import Budget
from ragwitness.audits.choice import choose, refuse_unscorable_by_all
from ragwitness.audits.plan import AuditPlan
from ragwitness.errors import CapabilityError, InputError
from ragwitness.models.registry import load_language_model
from ragwitness.text.sample import load_sample
from ragwitness.types import Capability, Document

_TEXT = frozenset({Capability.TEXT})
_ALL = _TEXT | {Capability.TOP_LOGPROBS}


@pytest.fixture(scope="module")
def plan() -> AuditPlan:
    documents = load_sample()
    return AuditPlan(tuple(documents[:8]), tuple(documents[20:60]))


def _chosen(plan, seen=_ALL, **caps):
    return asyncio.run(choose(plan, seen, load_language_model("reader"), Budget(**caps)))


def test_the_first_candidate_is_taken_where_nothing_speaks_against_it(plan) -> None:
    found = _chosen(plan)
    assert (found.method, found.config.mode) == ("s-rag:few", "few")
    assert found.why.startswith("auto chose")
    assert found.why.count("not ") == 2
    assert "not passages: the target does not give contexts" in found.why


def test_a_target_that_shows_what_it_retrieved_is_read_from_that(plan) -> None:
    found = _chosen(plan, _ALL | {Capability.CONTEXTS})
    assert found.method == "passages"
    assert found.why == "auto chose passages: 1 queries a document."


def test_a_target_without_log_probabilities_is_filled_into_a_form(plan) -> None:
    found = _chosen(plan, _TEXT)
    assert found.method == "mba"
    assert "not s-rag (few): the target does not give top_logprobs" in found.why


def test_what_the_target_does_not_give_is_named(plan, monkeypatch) -> None:
    turned = (("s-rag", {"mode": "few"}), ("rag-mia", {}))
    monkeypatch.setattr("ragwitness.audits.choice.CANDIDATES", turned)
    found = _chosen(plan, _TEXT)
    assert found.method == "rag-mia"
    assert "s-rag (few): the target does not give top_logprobs" in found.why
    few = _chosen(plan)
    assert (few.method, few.config.mode) == ("s-rag", "few")


def test_a_cap_chooses_a_method_that_asks_less(plan, monkeypatch) -> None:
    turned = (("s-rag", {"mode": "few"}), ("rag-mia", {}))
    monkeypatch.setattr("ragwitness.audits.choice.CANDIDATES", turned)
    found = _chosen(plan, queries=60)
    assert found.method == "rag-mia"
    assert "the whole would take 144, and --max-queries is 60" in found.why
    # Where none stays within the caps, the one that asks least; the run can be resumed.
    none = _chosen(plan, queries=10)
    assert none.method == "rag-mia"
    assert "no method stays within the caps" in none.why


def test_a_price_counts_as_a_cap_does(plan, monkeypatch) -> None:
    turned = (("s-rag", {"mode": "few"}), ("rag-mia", {}))
    monkeypatch.setattr("ragwitness.audits.choice.CANDIDATES", turned)
    found = _chosen(plan, cost=0.02, price_in=1.0, price_out=1.0)
    assert found.method == "rag-mia"
    assert "--max-cost" in found.why


def test_documents_that_a_method_cannot_read_are_left_to_the_next(plan, monkeypatch) -> None:
    monkeypatch.setattr("ragwitness.audits.choice.CANDIDATES", (("mba", {}), ("rag-mia", {})))
    short = tuple(Document(f"s{i}", "Eight words are in this very short text.") for i in range(8))
    found = _chosen(AuditPlan(short, plan.known_out))
    assert found.method == "rag-mia"
    assert "can ask about 0 of 5 documents tried" in found.why


def test_where_nothing_can_be_used_the_reasons_are_said(plan) -> None:
    with pytest.raises(CapabilityError, match="No method can be chosen"):
        _chosen(plan, frozenset())
    tiny = AuditPlan(tuple(Document(f"t{i}", "tiny") for i in range(3)), plan.known_out)
    with pytest.raises(InputError, match="nothing was sent"):
        asyncio.run(refuse_unscorable_by_all(tiny, load_language_model("reader")))


def test_a_question_that_the_target_refuses_for_its_length_is_not_chosen(plan, monkeypatch) -> None:
    monkeypatch.setattr("ragwitness.audits.choice.CANDIDATES", (("mba", {}), ("rag-mia", {})))
    asked: list[int] = []

    async def takes(characters: int) -> bool:
        asked.append(characters)
        return characters <= 800

    own = load_language_model("reader")
    found = asyncio.run(choose(plan, _ALL, own, Budget(), takes))
    assert found.method == "rag-mia"
    assert f"not mba: the target refuses a question of {max(asked):,} characters" in found.why
    assert len(asked) == 2
    assert min(asked) <= 800 < max(asked)


@pytest.mark.slow
def test_where_every_question_is_too_long_the_lengths_are_said(plan) -> None:
    async def nothing(_characters: int) -> bool:
        return False

    with pytest.raises(CapabilityError, match="refuses a question of"):
        asyncio.run(choose(plan, _ALL, load_language_model("reader"), Budget(), nothing))


@pytest.mark.slow
def test_the_cheapest_beyond_the_caps_is_looked_at_for_its_length_too(plan, monkeypatch) -> None:
    monkeypatch.setattr("ragwitness.audits.choice.CANDIDATES", (("mba", {}), ("rag-mia", {})))
    own = load_language_model("reader")
    longest: list[int] = []

    async def takes(characters: int) -> bool:
        longest.append(characters)
        return len(longest) > 1  # the first that is looked at is refused

    found = asyncio.run(choose(plan, _ALL, own, Budget(queries=1), takes))
    first = asyncio.run(choose(plan, _ALL, own, Budget(queries=1)))
    assert len(longest) == 2
    assert found.method != first.method
    assert f"nor {first.method}: the target refuses a question of {longest[0]:,}" in found.why
