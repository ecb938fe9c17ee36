"""What is foreseen is what a run then counts."""

from __future__ import annotations

import asyncio
import random

import pytest

from ragwitness.core.types import Answer, Capability, Document, Query, Score
from ragwitness.membership.forecast import look_ahead
from ragwitness.membership.method_registry import AUDITS, build_audit, configure
from ragwitness.membership.plan import AuditPlan, among
from ragwitness.membership.results.forecast import Outlook
from ragwitness.membership.run import run_audit
from ragwitness.stats.power import Binormal
from ragwitness.text.sample import load_sample
from tests.support.copier import Copier
from tests.support.library import CLINIC, FERRY

_TINY = Document("tiny", "two words")


def _documents(n: int, text: str = FERRY) -> tuple[Document, ...]:
    words = text.split()
    mixed = [" ".join(random.Random(i).sample(words, len(words))) for i in range(n)]  # no drafts
    return tuple(Document(f"{text[:8]}{i}", f"Record {i}. {own}") for i, own in enumerate(mixed))


class Counting:
    """A target with all capabilities that says nothing of use, or repeats; counts."""

    name = "counting"
    capabilities = frozenset(Capability)

    def __init__(self, repeats: bool = False) -> None:
        self.queries = self.words = self.allowed = 0
        self.repeats = repeats

    async def ask(self, query: Query) -> Answer:
        self.queries += 1
        self.words += Copier().count_tokens(query.prompt)
        self.allowed += query.max_tokens
        said = query.prompt.split("\n\n", 1)[-1] if self.repeats else "hm"
        return Answer(said, finish_reason="length" if self.repeats else "stop")

    async def close(self) -> None: ...


def _ahead(names: list[str], plan: AuditPlan) -> Outlook:
    proxy = Copier()
    audits = {name: build_audit(name, proxy) for name in names}
    return asyncio.run(look_ahead(plan, audits, proxy))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in AUDITS if name != "s-rag"])
def test_counts_are_those_of_a_run(name: str) -> None:
    plan = AuditPlan((*_documents(3), _TINY), known_out=_documents(2, CLINIC))
    (one,) = _ahead([name], plan).methods
    target = Counting()
    done = asyncio.run(run_audit(plan, target, build_audit(name, Copier())))
    assert one.dearest.queries >= one.queries == done.queries == target.queries > 0
    asked = (one.documents, one.known_out)
    assert sum(a.documents * a.per_document.sent for a in asked) == pytest.approx(target.words)
    assert sum(a.documents * a.per_document.answer for a in asked) == pytest.approx(target.allowed)
    before = {v.reason for v in done.verdicts if not v.queries}
    assert set(one.documents.reasons) == before
    assert one.documents.reasons
    assert one.documents.scorable == 3


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [False, True])
def test_a_target_that_repeats_is_asked_again(repeats: bool) -> None:
    plan = AuditPlan(_documents(4), known_out=_documents(2, CLINIC))
    (one,) = _ahead(["s-rag"], plan).methods
    (learns,) = _ahead(["s-rag:paper"], plan).methods
    target = Counting(repeats)

    async def probe() -> None:
        from ragwitness.runner.worker import Worker

        audit = build_audit("s-rag", Copier())
        await Worker(target).run(audit, (*plan.documents, *plan.known_out), "all")

    asyncio.run(probe())
    assert (one.queries, one.dearest.queries) == (18, 36)
    assert target.queries == (one.dearest.queries if repeats else one.queries)
    assert (one.shadow_of_your_own, learns.shadow_of_your_own) == (False, True)


class Picky:
    """An audit that cannot score documents of one kind and asks twice about the others."""

    name = "picky"
    requires = frozenset({Capability.TEXT})

    def probe(self, document: Document):
        if document.text.startswith("bad"):
            return Score(None, reason="it is bad")
        yield [Query(document.text, max_tokens=7)]
        yield [Query("and?", max_tokens=3)]
        return Score(1.0)


def _picky(documents: tuple[Document, ...], known: tuple[Document, ...]) -> Outlook:
    plan = AuditPlan(documents, known)
    return asyncio.run(look_ahead(plan, {"picky": Picky()}, Copier()))


def test_a_sample_stands_for_the_rest_and_is_the_same_each_time() -> None:
    documents = tuple(
        Document(str(i), f"{'bad' if i % 2 else 'good'} text {i}") for i in range(400)
    )
    known = tuple(Document(f"k{i}", f"good known {i}") for i in range(30))
    first = _picky(documents, known)
    (one,) = first.methods
    assert (one.documents.documents, one.documents.sampled) == (400, 10)
    assert one.documents.unscorable == 40 * one.documents.reasons["it is bad"] > 0
    assert one.queries == 2 * (one.documents.scorable + 30)
    assert first == _picky(documents, known)


def test_power_is_of_documents_that_can_be_scored() -> None:
    from ragwitness.stats.power import expected_power

    good = [Document(str(i), f"good {i}") for i in range(6)]
    bad = [Document(f"b{i}", f"bad {i}") for i in range(4)]
    known = tuple(Document(f"k{i}", f"good known {i}") for i in range(25))
    (one,) = _picky((*good, *bad), known).methods
    assert one.power["AUC .9"] == expected_power(
        Binormal(0.9), documents=6, known_out=25, inside_share=0.5, alpha=0.05
    )
    (none,) = _picky(tuple(bad), known).methods
    assert (none.documents.scorable, none.power, none.queries) == (0, {}, 50)


def test_without_known_documents_generated_ones_are_asked_about() -> None:
    outlook = _picky((Document("a", "good"),), ())
    assert outlook.calibration == "generated"
    assert outlook.warning
    assert outlook.methods[0].known_out.documents == 200
    assert outlook.methods[0].queries == 2 * 201


def test_copies_in_question_are_not_asked_about() -> None:
    copies = tuple(Document(f"copy{i}", one.text.upper()) for i, one in enumerate(_documents(3)))
    plan = AuditPlan((*_documents(3), *copies), known_out=_documents(2, CLINIC))
    (one,) = _ahead(["passages"], plan).methods
    assert (one.documents.documents, one.queries) == (3, 5)


def test_copies_among_known_documents_count_once() -> None:
    known = (Document("k", "good one"), Document("copy", "good one"))
    assert _picky((Document("a", "good"),), known).methods[0].known_out.documents == 1


def test_a_method_that_asks_on_where_words_come_back_is_counted_so() -> None:
    documents = tuple(load_sample()[:2])
    plan, proxy = AuditPlan(documents, references=("smollm2",)), Copier()
    usual = among(build_audit("runon", proxy), documents)
    asks_on = among(build_audit("runon", proxy, configure("runon", {"further": 12})), documents)
    audits = {"usual": usual, "asks on": asks_on}
    one, more = asyncio.run(look_ahead(plan, audits, proxy)).methods
    assert one.dearest.queries == one.queries == more.queries
    listed = sum(len(asks_on.questions(document)) for document in documents)
    assert more.dearest.queries == listed > more.queries
