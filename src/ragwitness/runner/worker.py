"""The only loop that sends queries: it drives generators and keeps every answer.

A generator yields batches of queries, receives their answers, and returns a result. The probe of an
audit returns a score; synthesis, attacks and judges return other types. This module drives them: it
stores responses, respects caps, handles failures, and limits the number under way.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from ragwitness.core.errors import (
    CapabilityError,
    CapReachedError,
    ModelError,
    TargetError,
    TargetUnreachableError,
)
from ragwitness.core.types import Answer, Audit, Document, Probe, Query, Score, Target
from ragwitness.runner.response_store import ResponseStore, StoredQuery, decode_answer, query_key

T = TypeVar("T")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

QueryGenerator: TypeAlias = Generator[list[Query], list[Answer], R]
"""Batches of queries out, their answers in (same order), a result as return value."""

# A generator step by step.

_QUICK = 1e-3  # seconds


@dataclass(frozen=True, slots=True)
class Done(Generic[R_co]):
    """The return value of a generator."""

    value: R_co


class Steps(Generic[R]):
    """A generator, a step at a time.

    Args:
        generator: Not started yet.
        quick: Places of the steps that took no time in the generators before, shared by all of a
            stage; the others run in a thread. None runs every step on the loop, one at a time.
    """

    def __init__(self, generator: QueryGenerator[R], quick: set[int] | None = None) -> None:
        self._generator = generator
        self._quick = quick
        self._place = 0

    async def next(self, answers: list[Answer] | None) -> list[Query] | Done[R]:
        """Return the next batch of queries, or the result."""
        if self._quick is None:
            return advance(self._generator, answers)
        # The proxy model works inside the generator; a thread keeps answers flowing. Where no
        # model works, changing threads would take longer than the step.
        number = self._place
        self._place += 1
        if number in self._quick:
            step, seconds = self._timed(answers)
        else:
            step, seconds = await asyncio.to_thread(self._timed, answers)
        (self._quick.add if seconds < _QUICK else self._quick.discard)(number)
        return step

    def _timed(self, answers: list[Answer] | None) -> tuple[list[Query] | Done[R], float]:
        started = time.perf_counter()
        step = advance(self._generator, answers)
        return step, time.perf_counter() - started

    def stop(self) -> None:
        """Close the generator."""
        self._generator.close()


def advance(generator: QueryGenerator[R], answers: list[Answer] | None) -> list[Query] | Done[R]:
    """Run a generator up to its next batch or its end."""
    try:
        return generator.send(answers)  # type: ignore[arg-type]  # None starts a generator
    except StopIteration as stop:
        return Done(stop.value)


def replay(
    generator: QueryGenerator[R], find: Callable[[Query], Answer | None]
) -> tuple[Done[R] | None, int, list[Answer | None]]:
    """Run a generator on recorded answers, until its end or a missing answer.

    Returns:
        The end, None where an answer is missing; the number of questions before the last batch; and
        the answers of that batch.
    """
    queries, answers = 0, None
    while not isinstance(step := advance(generator, answers), Done):
        replies = [find(query) for query in step]
        if None in replies:
            return None, queries, replies
        answers = [answer for answer in replies if answer is not None]
        queries += len(step)
    return step, queries, []


def probe_of(audit: Audit, document: Document) -> Probe:
    """Probe a document; it is unscorable where a local model cannot read it."""
    try:
        return (yield from audit.probe(document))
    except ModelError as error:
        return Score(None, reason=error.message)


# Results of generators.


@dataclass(frozen=True, slots=True)
class GeneratorResult(Generic[R]):
    """A generator that was driven to its end, or until a cap refused one of its queries.

    Attributes:
        value: Its return value; None where it was stopped.
        queries: Number of its queries, including those with a stored answer.
        sent: Queries that went to the target now.
        passing: A query failed and may succeed at another start.
        refusal: Of the cap. Then there is no result, which would rest on some of its answers only.
        starts: At which its answers were taken; ``""`` is an unknown one.
    """

    value: R | None
    queries: int
    sent: int
    passing: bool = False
    refusal: CapReachedError | None = None
    starts: tuple[str, ...] = ()

    @property
    def capped(self) -> bool:
        """Whether a cap stopped it."""
        return self.refusal is not None

    def result(self) -> R:
        """Return what it returned.

        Raises:
            CapReachedError: A cap stopped it.
        """
        if self.refusal is not None:
            raise self.refusal
        return self.value  # type: ignore[return-value]  # None only where it is a result


@dataclass(frozen=True, slots=True)
class Outcome:
    """A probed document.

    Attributes:
        document: The probed document.
        score: Its evidence.
        queries: Number of its queries, including those with a stored answer.
        sent: Queries that went to the target now.
        capped: A cap refused one of its queries; then it has no score.
        passing: A query failed and may succeed at another start.
        starts: At which its answers were taken; ``""`` is an unknown one.
    """

    document: Document
    score: Score
    queries: int
    sent: int
    capped: bool = False
    passing: bool = False
    starts: tuple[str, ...] = ()


Watch = Callable[[Document, Query, Answer], None]
"""Called with every answer, including stored ones."""

Progress = Callable[[str, int, int], None]
"""Called with stage, documents done and documents in all."""


class Spender(Protocol):
    """Lets queries to a target pass: a rate limiter, or an object that refuses them all."""

    async def spend(self, query: Query, send: Callable[[Query], Awaitable[T]]) -> T:
        """Wait for a turn, send a query and settle what it used."""


class KeepsScores(Protocol):
    """Where the scores of an audit are kept: by system and document."""

    def get(self, target: str, document: Document) -> Outcome | None:
        """Return the outcome of an earlier start, or None."""

    def put(self, target: str, outcome: Outcome) -> Outcome:
        """Keep an outcome and return it as it will be read back."""


class _TargetReply(NamedTuple):
    answer: Answer
    sent: bool
    start: str
    kept: bool = True


PATIENCE = 10
"""Documents whose answers cannot be read, from a start's first one on, after which it ends."""

_GIVE_UP_AFTER = 3  # in a row that found no connection
_FAILURES = (TargetError, CapabilityError, ModelError)  # a query fails, and the others go on


class Worker:
    """Follows generators at one target, several at a time, and keeps every answer.

    Args:
        target: The system that is asked.
        responses: Store of the answers; None keeps nothing.
        in_flight: Generators under way at the same time.
        watch: Called with every answer.
        limiter: Lets queries to the target pass; None lets ``in_flight`` of them pass at a
            time, without caps.
        scores: Keeps probed documents, so that none is probed again; None keeps none.
        start: From :func:`~ragwitness.runner.score_store.start_for`, kept with every answer.
    """

    def __init__(
        self,
        target: Target,
        responses: ResponseStore | None = None,
        in_flight: int = 4,
        watch: Watch | None = None,
        limiter: Spender | None = None,
        scores: KeepsScores | None = None,
        start: str = "",
    ) -> None:
        if limiter is None:
            from ragwitness.runner.rate_limiter import RateLimiter

            limiter = RateLimiter(at_once=in_flight)
        self.target = target
        self.start = start
        self.responses = responses
        self.watch = watch
        self.limiter: Spender = limiter
        self.scores = scores
        self._in_flight = in_flight
        self._unreachable = 0

    async def run(
        self,
        audit: Audit,
        documents: Sequence[Document],
        stage: str,
        progress: Progress | None = None,
    ) -> list[Outcome]:
        """Probe all documents, in their order.

        A document whose queries fail is unscorable with the reason; the others go on.

        Raises:
            TargetUnreachableError: Several documents in a row found no connection.
        """
        outcomes = await self.run_stages(audit, {stage: documents}, progress)
        return outcomes[stage]

    async def run_stages(
        self,
        audit: Audit,
        stages: Mapping[str, Sequence[Document]],
        progress: Progress | None = None,
        *,
        mixed: bool = False,
        patience: int | None = None,
    ) -> dict[str, list[Outcome]]:
        """Probe the documents of several stages, each in its order; see :meth:`run`.

        Args:
            audit: The method.
            stages: Documents by stage.
            progress: Called after each document.
            mixed: Probe all in an unpredictable random order, not one stage after the other.
            patience: Documents asked about now whose answers cannot be read, from the first one on,
                before the rest is left unasked; None asks about all.

        Raises:
            CapabilityError: None of the first ``patience`` documents could be read.
        """
        unread = 0
        quick: set[int] = set()

        async def outcome_of(document: Document, stage: str) -> Outcome:
            if self.scores is not None and (stored := self.scores.get(self.target.name, document)):
                return stored
            steps = Steps(probe_of(audit, document), quick)
            result = await self.follow(steps, document, stage)
            refused = result.refusal and Score(None, reason=result.refusal.message)
            score = refused or result.result()
            rest = (result.queries, result.sent, result.capped, result.passing, result.starts)
            outcome = Outcome(document, score, *rest)
            return outcome if self.scores is None else self.scores.put(self.target.name, outcome)

        outcomes: dict[str, dict[int, Outcome]] = {stage: {} for stage in stages}

        async def take(place: tuple[str, int]) -> None:
            nonlocal patience, unread
            stage, number = place
            outcome = outcomes[stage][number] = await outcome_of(stages[stage][number], stage)
            # The first readable answer ends the watch; unreadable ones count up to the limit.
            if outcome.score.value is not None:
                patience = None
            elif outcome.sent and not outcome.passing:  # not a failed query
                unread += 1
            if unread == patience:
                raise CapabilityError(
                    f"None of the first {unread} documents asked about could be read, so the rest"
                    f" was left unasked: {outcome.score.reason}.",
                    "Look at answers of the target: ragwitness doctor TARGET.",
                )
            if progress:
                progress(stage, len(outcomes[stage]), len(stages[stage]))

        places = [(stage, n) for stage, row in stages.items() for n in range(len(row))]
        if mixed:
            # A system that changes meanwhile must not look as if it held documents.
            random.SystemRandom().shuffle(places)
        await self.each(places, take)
        return {stage: [row[i] for i in range(len(row))] for stage, row in outcomes.items()}

    async def put(
        self,
        questions: Sequence[tuple[Document, Query]],
        stage: str,
        progress: Progress | None = None,
    ) -> list[Answer | None]:
        """Put single questions, each about a document; None where a cap refused one.

        Raises:
            TargetUnreachableError: Several questions in a row found no connection.
        """

        def single(query: Query) -> QueryGenerator[Answer]:
            [answer] = yield [query]
            return answer

        async def answer_to(question: tuple[Document, Query]) -> Answer | None:
            document, query = question
            return (await self.follow(Steps(single(query)), document, stage)).value

        return await self.each(questions, answer_to, stage, progress)

    async def each(
        self,
        items: Sequence[T],
        work: Callable[[T], Awaitable[R]],
        stage: str = "",
        progress: Progress | None = None,
    ) -> list[R]:
        """Do the work of all items, several at a time; return the results in order of the items.

        Work begins in this order; only items under way take memory.
        """
        results: dict[int, R] = {}
        # A fixed number of takers share one iterator, so work begins in the order of items.
        waiting = iter(enumerate(items))

        async def take() -> None:
            for number, item in waiting:
                results[number] = await work(item)
                if progress:
                    progress(stage, len(results), len(items))

        takers = [asyncio.ensure_future(take()) for _ in items[: self._in_flight]]
        try:
            await asyncio.gather(*takers)
        except BaseException:
            for taker in takers:
                taker.cancel()
            await asyncio.gather(*takers, return_exceptions=True)
            raise
        return [results[number] for number in range(len(items))]

    async def follow(
        self, steps: Steps[R], document: Document, stage: str, *, alone: bool = False
    ) -> GeneratorResult[R]:
        """Ask what a generator asks until it returns.

        Args:
            steps: The generator.
            document: Subject of its queries, for the response store.
            stage: Part of the run, likewise.
            alone: Nothing else is under way: queries without a connection are counted one by one,
                not generator by generator, before the target is given up.

        Raises:
            TargetUnreachableError: Several in a row found no connection.
        """
        queries = sent = 0
        passing, starts = False, set[str]()
        answers: list[Answer] | None = None
        while True:
            # 1. The generator reads the answers, and asks on or returns.
            step = await steps.next(answers)
            if isinstance(step, Done):
                return GeneratorResult(
                    step.value, queries, sent, passing, starts=tuple(sorted(starts))
                )
            # 2. Its batch is asked side by side; where one query fails, the others are still kept.
            replies = await asyncio.gather(
                *(self._ask(query, document, stage) for query in step), return_exceptions=True
            )
            self._count_lost(replies, alone=alone)
            queries += len(step)
            sent += sum(
                reply.sent
                if isinstance(reply, _TargetReply)
                else not isinstance(reply, CapReachedError)
                for reply in replies
            )
            starts.update(reply.start for reply in replies if isinstance(reply, _TargetReply))
            # 3. A cap ends it: a result from some of its answers would depend on the cap.
            if capped := next((r for r in replies if isinstance(r, CapReachedError)), None):
                steps.stop()
                refused = sum(isinstance(reply, CapReachedError) for reply in replies)
                return GeneratorResult(None, queries - refused, sent, passing=True, refusal=capped)
            answers = [_answer(reply) for reply in replies]
            passing = passing or not all(isinstance(r, _TargetReply) and r.kept for r in replies)
            for query, answer in zip(step, answers, strict=True):
                if self.watch is not None:
                    self.watch(document, query, answer)

    async def _ask(self, query: Query, document: Document, stage: str) -> _TargetReply:
        # 1. A stored response is used again.
        key = query_key(self.target.name, query)
        if self.responses is not None and (row := self.responses.row(key)) is not None:
            start = row.get("start", "")
            # A response that another document stored at this start was sent now as well.
            return _TargetReply(decode_answer(row["answer"]), start == self.start != "", start)
        stored = StoredQuery(self.target.name, stage, document.id, query)
        # 2. The query is sent; in a sealed run a failure is recorded, too.
        try:
            answer = await self.limiter.spend(query, self.target.ask)
        except _FAILURES as error:
            if self.responses is not None:
                self.responses.note(key, Answer("", error=error.message), stored)
            raise
        # 3. Not stored: an error, or missing log-probabilities. The query is repeated at a resume.
        lasting = answer.error is None and not (query.top_logprobs and answer.tokens is None)
        if self.responses is not None and not lasting:
            self.responses.note(key, answer, stored)
        if self.responses is None or not lasting:
            return _TargetReply(answer, True, self.start, kept=lasting)
        return _TargetReply(self.responses.put(key, answer, stored, self.start), True, self.start)

    def _count_lost(self, replies: Sequence[_TargetReply | BaseException], *, alone: bool) -> None:
        """Count what found no connection in a row; give up after a few."""
        unreachable = [reply for reply in replies if isinstance(reply, TargetUnreachableError)]
        if len(unreachable) < len(replies):
            self._unreachable = 0
        elif unreachable:
            self._unreachable += len(unreachable) if alone else 1
            if self._unreachable >= _GIVE_UP_AFTER:
                raise unreachable[0]


def _answer(reply: _TargetReply | BaseException) -> Answer:
    if isinstance(reply, _FAILURES):
        return Answer("", error=reply.message)
    if isinstance(reply, BaseException):
        raise reply
    return reply.answer
