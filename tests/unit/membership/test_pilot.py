"""The pilot: whether a method can read a target is said before any text of the user is sent."""

from __future__ import annotations

import asyncio

import pytest

from ragwitness.core.errors import CapabilityError, InputError
from ragwitness.core.run_files import ANSWERS, PILOT
from ragwitness.core.types import Answer, Capability, Query, Score
from ragwitness.membership.auto_select import (
    TEXTS,
    Pilot,
    choose,
    pilot_documents,
    run_pilot,
)
from ragwitness.membership.method_registry import build_audit, configure
from ragwitness.membership.plan import AuditPlan
from ragwitness.membership.prepared import PreparedAudit
from ragwitness.membership.run import run_audit
from ragwitness.models.model_registry import load_language_model
from ragwitness.runner.budget import Budget
from ragwitness.runner.capabilities import probe_capabilities
from ragwitness.runner.rate_limiter import RateLimiter
from ragwitness.runner.replay import read_recording
from ragwitness.text.sample import load_sample

_SAMPLE = load_sample()
_KNOWN = _SAMPLE[40:50]  # outside


class _Chat:
    """Reads the text shown in the question; answers in the manner of its maker.

    Args:
        reads: Whether it uses what stands in the question at all.
        manner: Makes the answer of what was read.
    """

    name = "chat"
    capabilities = frozenset({Capability.TEXT})

    def __init__(self, reads=True, manner="{}", fails="") -> None:
        self.reads, self.manner, self.fails = reads, manner, fails
        self.asked: list[Query] = []

    async def ask(self, query: Query) -> Answer:
        self.asked.append(query)
        if self.fails:
            return Answer(self.fails, finish_reason="length")
        shown, _, question = query.prompt.rpartition("\n\n")
        if "appear in the context?" in question:
            text = question.split("\u201c")[1].split("\u201d")[0]
            return Answer(self.manner.format("Yes" if self.reads and text in shown else "No"))
        return Answer(self.manner.format("I like trains."))

    async def close(self) -> None:
        """Nothing is open."""


def _pilot(target, method="rag-mia", run=None, limiter=None) -> Pilot:
    audit = build_audit(method, load_language_model("reader"))
    return asyncio.run(run_pilot(target, limiter, run, audit))


def test_a_method_whose_reading_tells_shown_texts_apart_is_possible() -> None:
    target = _Chat()
    found = _pilot(target)
    assert found.possible
    assert (found.standing_out(), found.queries) == (TEXTS, 2 * TEXTS)
    assert "4 of 4 texts shown in the question stood out" in found.told
    # Every text hidden first, then with itself before the question: a memory has seen none.
    is_shown = [query.prompt.startswith("Context: ") for query in target.asked]
    assert is_shown == [False] * TEXTS + [True] * TEXTS


def test_a_target_that_ignores_the_question_is_named_with_the_numbers() -> None:
    found = _pilot(_Chat(reads=False))
    assert not found.possible
    assert "only 0 of 4 texts shown in the question stood out" in found.told


@pytest.mark.parametrize(
    "method",
    ["rag-mia", *(pytest.param(name, marks=pytest.mark.slow) for name in ("mba", "runon"))],
)
def test_a_target_that_declines_whatever_it_is_shown_is_named(method: str) -> None:
    found = _pilot(_Chat(fails="I'm sorry, but I can't answer that."), method)
    assert not found.possible
    assert "declined: the target says that it does not know or may not say" in found.told


def test_a_target_that_thinks_until_its_tokens_are_spent_is_named() -> None:
    found = _pilot(_Chat(fails="<think>Let me see. The user wants"))
    assert not found.possible
    # Asked once more with room to think.
    assert found.queries == 4 * TEXTS
    assert "cannot be read: it thought until its tokens were spent" in found.told


def test_chance_alone_rarely_passes() -> None:
    import random

    rng = random.Random(3)
    passed = 0
    for _ in range(2000):
        shown, hidden = (tuple(Score(rng.random()) for _ in range(TEXTS)) for _ in range(2))
        passed += Pilot("x", shown, hidden, 0).possible
    assert passed / 2000 == pytest.approx(1 / 14, abs=0.02)


def test_a_pilot_sends_generated_texts_and_none_of_the_user() -> None:
    target = _Chat()
    audit = build_audit("rag-mia", load_language_model("reader"))
    documents = pilot_documents(audit)
    assert len(documents) == TEXTS
    assert all(len(document.text) <= 800 for document in documents)
    assert {document.id for document in documents} <= {document.id for document in _SAMPLE}
    assert _pilot(target).possible


def test_a_method_without_questions_for_any_pilot_text_is_refused_in_words() -> None:
    found = Pilot("x", (Score(1.0),), (), 1)
    assert not found.possible
    assert found.told == "it can ask about 1 pilot texts, and 3 are needed"


def test_doctor_does_not_pilot_a_recording(tmp_path) -> None:
    from ragwitness.cli.doctor import _pilots, examine
    from ragwitness.targets.transport import TransportOptions

    (tmp_path / "answers.jsonl").write_text('{"prompt": "Who?", "answer": "Nobody."}\n')

    # Doctor takes nothing away from what a recording admits.
    async def piloted():
        address = f"replay/{tmp_path / 'answers.jsonl'}"
        seen = await examine(address, TransportOptions())
        return await _pilots(address, TransportOptions(), seen, None)

    assert asyncio.run(piloted()) == {}


def test_a_recorded_run_holds_the_answers_of_its_pilot(tmp_path) -> None:
    found = _pilot(_Chat(), run=tmp_path)
    # The run itself, of which one answer is enough here.
    (tmp_path / ANSWERS).write_bytes((tmp_path / PILOT).read_bytes().splitlines(True)[0])
    recording = read_recording(tmp_path, "chat")
    again = _pilot(recording)
    asyncio.run(recording.close())
    assert (
        (again.possible, again.standing_out())
        == (found.possible, found.standing_out())
        == (True, TEXTS)
    )


def test_answers_are_kept_in_a_journal_of_the_pilots_own(tmp_path) -> None:
    target = _Chat()
    first = _pilot(target, run=tmp_path)
    asked = len(target.asked)
    assert _pilot(target, run=tmp_path) == first
    assert len(target.asked) == asked
    assert [one.name for one in tmp_path.iterdir() if one.suffix == ".jsonl"] == [PILOT]


def test_a_pilot_that_costs_more_than_the_caps_is_named(tmp_path) -> None:
    with (
        RateLimiter.of_run(tmp_path, Budget(queries=3), 1) as limiter,
        pytest.raises(InputError, match="A cap ended the pilot of rag-mia"),
    ):
        _pilot(_Chat(), run=tmp_path, limiter=limiter)


@pytest.mark.slow
def test_auto_goes_on_where_the_pilot_reads_nothing_and_says_so() -> None:
    plan = AuditPlan(tuple(_SAMPLE[:4]), tuple(_KNOWN))

    def chosen(target):
        async def piloting(audit):
            return await run_pilot(target, None, None, audit)

        proxy = load_language_model("reader")
        seen = asyncio.run(probe_capabilities(target))
        return asyncio.run(choose(plan, seen, proxy, Budget(), piloting))

    found = chosen(_Chat())
    assert found.method == "joint"
    assert "4 of 4 texts shown in the question stood out" in found.why
    found = chosen(_Chat(reads=False))
    assert found.method == "joint"
    assert "0 of 4 texts shown in the question stood out" in found.why
    assert "asked all the same" in found.why


def test_a_run_ends_itself_after_ten_documents_that_could_not_be_read() -> None:
    target = _Chat(fails="<think>Let me see")
    audit = build_audit("rag-mia", load_language_model("reader"))
    plan = AuditPlan(tuple(_SAMPLE[:30]), tuple(_SAMPLE[40:70]), in_flight=1)
    with pytest.raises(CapabilityError, match="None of the first 10 documents") as told:
        asyncio.run(run_audit(plan, target, audit))
    assert "it thought until its tokens were spent" in told.value.message
    assert len(target.asked) == 20  # each once more, with room to think


def test_documents_kept_as_unreadable_do_not_end_a_run_that_is_issued_again(tmp_path) -> None:
    class Once(_Chat):
        async def ask(self, query: Query) -> Answer:
            found = await super().ask(query)
            return found if self.asked[1:] else Answer("No")

    target = Once(fails="<think>Let me see")
    plan = AuditPlan(tuple(_SAMPLE[:30]), tuple(_SAMPLE[40:70]), in_flight=1)
    audit, identity = PreparedAudit("", plan, "rag-mia", configure("rag-mia")).fitted(0)

    def again():
        return asyncio.run(run_audit(plan, target, audit, run=tmp_path, identity=identity))

    first, asked = again(), len(target.asked)
    for _ in range(5):  # each in another order
        assert again().verdicts == first.verdicts
    assert len(target.asked) == asked
    # What is asked about now counts as before.
    more = AuditPlan(tuple(_SAMPLE[70:90]), tuple(_SAMPLE[90:110]))
    with pytest.raises(CapabilityError, match="None of the first 10 documents"):
        asyncio.run(run_audit(more, target, audit, run=tmp_path))


def test_a_run_goes_on_after_ten_documents_whose_queries_failed() -> None:
    class Busy(_Chat):
        async def ask(self, query: Query) -> Answer:
            await super().ask(query)
            return Answer("No") if len(self.asked) > 12 else Answer("", error="status 429")

    audit = build_audit("rag-mia", load_language_model("reader"))
    plan = AuditPlan(tuple(_SAMPLE[:15]), tuple(_SAMPLE[40:55]), in_flight=1)
    found = asyncio.run(run_audit(plan, Busy(), audit))
    assert sum(one.score is not None for one in found.verdicts) > 0
