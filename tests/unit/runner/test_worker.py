"""The worker keeps answers, goes on after failures, and stops where there is no target."""

import asyncio
from collections.abc import Callable

import pytest

from ragwitness.core.errors import (
    CapReachedError,
    ModelError,
    TargetResponseError,
    TargetUnreachableError,
)
from ragwitness.core.types import Answer, Capability, Document, Query, Score
from ragwitness.runner.budget import Budget
from ragwitness.runner.rate_limiter import RateLimiter
from ragwitness.runner.response_store import ResponseStore
from ragwitness.runner.worker import Outcome, Steps, Worker


class Shout:
    """An audit of two rounds: the second asks about the first answer."""

    name = "shout"
    requires = frozenset({Capability.TEXT})

    def probe(self, document: Document):
        (first,) = yield [Query(document.text)]
        if first.error:
            return Score(None, reason=first.error)
        (second,) = yield [Query(first.text + "!")]
        return Score(float(len(second.text)))


class Scripted:
    """A target that answers by a function and counts."""

    name = "scripted"
    capabilities = frozenset({Capability.TEXT})

    def __init__(self, answer: Callable[[str], str]) -> None:
        self.answer, self.asked = answer, 0

    async def ask(self, query: Query) -> Answer:
        self.asked += 1
        await asyncio.sleep(0)
        return Answer(self.answer(query.prompt))

    async def close(self) -> None: ...


def _documents(n: int) -> list[Document]:
    return [Document(str(i), f"text {i}") for i in range(n)]


def _run(
    target: Scripted, n: int, responses: ResponseStore | None = None, **options
) -> list[Outcome]:
    return asyncio.run(Worker(target, responses, **options).run(Shout(), _documents(n), "stage"))


def test_outcomes_keep_the_order_and_count_queries() -> None:
    seen = []
    worker = Worker(Scripted(str.upper), in_flight=3)
    outcomes = asyncio.run(worker.run(Shout(), _documents(7), "s", lambda *args: seen.append(args)))
    assert [o.document.id for o in outcomes] == [str(i) for i in range(7)]
    assert [o.score.value for o in outcomes] == [7.0] * 7
    assert {o.queries for o in outcomes} == {2}
    assert seen == [("s", i + 1, 7) for i in range(7)]


def test_nothing_is_asked_twice(tmp_path) -> None:
    target = Scripted(str.upper)
    with ResponseStore(tmp_path / "answers.jsonl") as responses:
        first = _run(target, 4, responses)
    with ResponseStore(tmp_path / "answers.jsonl") as responses:
        again = _run(target, 4, responses)
    assert target.asked == 8
    assert [o.score for o in again] == [o.score for o in first]
    assert [o.sent for o in again] == [0] * 4


def test_only_an_earlier_start_keeps_answers_and_no_other_document_of_this_one(tmp_path) -> None:
    alike = [Document("a", "text"), Document("b", "text")]
    for start, sent in (("one", [2, 2]), ("two", [0, 0])):
        with ResponseStore(tmp_path / "answers.jsonl") as responses:
            worker = Worker(Scripted(str.upper), responses, in_flight=1, start=start)
            assert [o.sent for o in asyncio.run(worker.run(Shout(), alike, "s"))] == sent


def test_one_failing_document_leaves_the_others_alone_and_is_not_kept(tmp_path) -> None:
    def answer(prompt: str) -> str:
        if prompt == "text 1":
            raise TargetResponseError("it answered with HTML")
        return prompt

    with ResponseStore(tmp_path / "answers.jsonl") as responses:
        outcomes = _run(Scripted(answer), 3, responses)
        assert len(responses) == 4
    assert [o.score.value is None for o in outcomes] == [False, True, False]
    assert outcomes[1].score.reason == "it answered with HTML"


def test_an_answer_without_the_logprobs_asked_for_is_not_kept(tmp_path) -> None:
    class Wants(Shout):
        def probe(self, document: Document):
            yield [Query(document.text, top_logprobs=5)]
            return Score(1.0)

    with ResponseStore(tmp_path / "answers.jsonl") as responses:
        asyncio.run(Worker(Scripted(str.upper), responses).run(Wants(), _documents(2), "s"))
        assert len(responses) == 0


def test_a_document_no_local_model_can_read_is_unscorable() -> None:
    class Cannot(Shout):
        def probe(self, document: Document):
            if document.id == "1":
                raise ModelError("too long for the proxy")
            return (yield from super().probe(document))

    worker = Worker(Scripted(str.upper))
    outcomes = asyncio.run(worker.run(Cannot(), _documents(3), "s"))
    assert [o.score.reason for o in outcomes] == [None, "too long for the proxy", None]


def test_one_document_that_finds_no_connection_does_not_end_the_run() -> None:
    class Five(Shout):
        def probe(self, document: Document):
            answers = yield [Query(f"{document.text} {i}") for i in range(5)]
            errors = [answer.error for answer in answers if answer.error]
            return Score(None, reason=errors[0]) if errors else Score(1.0)

    def answer(prompt: str) -> str:
        if prompt.startswith("text 0"):
            raise TargetUnreachableError("connection refused")
        return prompt

    worker = Worker(Scripted(answer), in_flight=1)
    outcomes = asyncio.run(worker.run(Five(), _documents(3), "s"))
    assert [o.score.value for o in outcomes] == [None, 1.0, 1.0]


def test_a_dead_target_ends_the_run_and_keeps_what_came(tmp_path) -> None:
    answered = []

    def die_after_six(prompt: str) -> str:
        if len(answered) == 6:
            raise TargetUnreachableError("connection refused")
        answered.append(prompt)
        return prompt

    target = Scripted(die_after_six)
    with ResponseStore(tmp_path / "answers.jsonl") as responses:
        with pytest.raises(TargetUnreachableError):
            _run(target, 50, responses, in_flight=2)
        assert len(responses) == 6
    assert target.asked < 15


def test_concurrency_does_not_change_a_result() -> None:
    alone = _run(Scripted(str.upper), 9, in_flight=1)
    together = _run(Scripted(str.upper), 9, in_flight=9)
    assert alone == together


@pytest.mark.parametrize("mixed", [False, True])
def test_stages_in_any_order_keep_their_documents(mixed) -> None:
    stages = {"known": _documents(40), "asked": _documents(80)[40:], "none": []}
    seen = []
    worker = Worker(Scripted(str.upper), in_flight=1)
    outcomes = asyncio.run(
        worker.run_stages(Shout(), stages, lambda *row: seen.append(row), mixed=mixed)
    )
    assert {stage: [o.document for o in row] for stage, row in outcomes.items()} == stages
    order = "".join(stage[0] for stage, _, _ in seen)
    assert sorted(order) == sorted("k" * 40 + "a" * 40)
    # A random order is this one with probability below 1e-22.
    assert (order == "k" * 40 + "a" * 40) is not mixed


def _spell(text: str):
    """A generator that is no audit: it returns whatever it likes."""
    found = {}
    for letter in text:
        [answer] = yield [Query(letter)]
        found[letter] = answer.error or answer.text
    return found


@pytest.mark.parametrize("quick", [None, set()])
def test_a_generator_may_return_any_value(tmp_path, quick) -> None:
    with ResponseStore(tmp_path / "answers.jsonl") as responses:
        worker = Worker(Scripted(str.upper), responses)
        steps = Steps(_spell("abba"), quick)
        found = asyncio.run(worker.follow(steps, Document("word", ""), "spelling"))
    assert found.result() == {"a": "A", "b": "B"}
    assert (found.queries, found.sent, found.capped) == (4, 2, False)  # the journal knew the rest


def test_a_list_is_a_value_like_any_other() -> None:
    def nothing():
        return [Query("never sent")]
        yield

    target = Scripted(str.upper)
    found = asyncio.run(Worker(target).follow(Steps(nothing()), Document("", ""), "s"))
    assert found.result() == [Query("never sent")]
    assert target.asked == 0


def test_a_cap_stops_a_generator_and_its_value_is_not_made_up() -> None:
    closed = []

    def stopped():
        try:
            yield [Query("one")]
            yield [Query("two"), Query("three")]
        except GeneratorExit:
            closed.append(True)
            raise

    worker = Worker(Scripted(str.upper), limiter=RateLimiter(Budget(queries=2)))
    found = asyncio.run(worker.follow(Steps(stopped()), Document("", ""), "s"))
    assert (found.queries, found.sent, found.passing, closed) == (2, 2, True, [True])
    with pytest.raises(CapReachedError, match="query cap reached"):
        found.result()


def test_an_answer_that_says_it_failed_is_not_kept(tmp_path) -> None:
    class Fails(Scripted):
        async def ask(self, query: Query) -> Answer:
            return Answer("", error="busy")

    with ResponseStore(tmp_path / "answers.jsonl") as responses:
        worker = Worker(Fails(str), responses)
        [answer] = asyncio.run(worker.put([(Document("d", ""), Query("?"))], "s"))
        assert len(responses) == 0
    assert answer is not None
    assert answer.error == "busy"


def test_questions_of_one_document_keep_their_own_answers() -> None:
    same = Document("d", "")
    asked = [(same, Query("a")), (same, Query("b"))]
    worker = Worker(Scripted(str.upper), limiter=RateLimiter(Budget(queries=1), 1))
    found = asyncio.run(worker.put(asked, "s"))
    assert [one and one.text for one in found] == ["A", None]  # None: a cap refused it


@pytest.mark.parametrize(("alone", "batches"), [(True, 1), (False, 3)])
def test_what_is_alone_gives_a_dead_target_up_sooner(alone: bool, batches: int) -> None:
    def lost(prompt: str) -> str:
        raise TargetUnreachableError("connection refused")

    seen = []

    def asks():
        while True:
            seen.append(1)
            yield [Query(f"{len(seen)} {i}") for i in range(4)]

    worker = Worker(Scripted(lost))
    with pytest.raises(TargetUnreachableError):
        asyncio.run(worker.follow(Steps(asks()), Document("", ""), "s", alone=alone))
    assert len(seen) == batches
