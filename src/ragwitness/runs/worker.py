"""Drives audit generators: the only loop that sends queries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from ragwitness.errors import (
    CapabilityError,
    CapReachedError,
    ModelError,
    TargetError,
    TargetUnreachableError,
)
from ragwitness.runs.governor import Governor
from ragwitness.runs.journal import Asked, Journal, query_key
from ragwitness.runs.pace import Pace
from ragwitness.runs.steps import DistantAudit, LocalSteps
from ragwitness.types import Answer, Audit, Document, Query, Score, Target

__all__ = [
    "Outcome",
    "Progress",
    "Shelf",
    "Spender",
    "Watch",
    "Worker",
]

Watch = Callable[[Document, Query, Answer], None]
"""Told of every answer, those from the journal included."""

Progress = Callable[[str, int, int], None]
"""Called with stage, documents done and documents in all."""

T = TypeVar("T")

_GIVE_UP_AFTER = 3  # documents in a row that found no connection


@dataclass(frozen=True, slots=True)
class Outcome:
    """A probed document.

    Attributes:
        document: What was probed.
        score: Its evidence.
        queries: Queries it took, those answered from the journal included.
        sent: Queries that went to the target now.
        capped: A cap refused one of its queries; then it has no score.
        passing: A query of it failed, which it may not do again.
    """

    document: Document
    score: Score
    queries: int
    sent: int
    capped: bool = False
    passing: bool = False


class Spender(Protocol):
    """Lets queries to a target pass: a governor, or one in another process."""

    async def spend(self, query: Query, send: Callable[[Query], Awaitable[T]]) -> T:
        """Wait for a turn, send a query and settle what it used."""


class Shelf(Protocol):
    """Where finished documents are kept."""

    def get(self, document: Document) -> Outcome | None:
        """Return what an earlier start found."""

    def put(self, outcome: Outcome) -> Outcome:
        """Keep an outcome and return it as it will be read back."""


class _Reply(NamedTuple):
    answer: Answer
    sent: bool
    kept: bool = True


class Worker:
    """Probes documents at one target, several at a time, and keeps every answer.

    Args:
        target: The system under audit.
        journal: Where answers are kept; None keeps nothing.
        in_flight: Documents probed at the same time.
        watch: Told of every answer.
        governor: Lets queries to the target pass; None lets ``in_flight`` of them pass at a
            time, without caps.
        shelf: Keeps finished documents, so that none is probed again; None keeps none.
    """

    def __init__(
        self,
        target: Target,
        journal: Journal | None = None,
        in_flight: int = 4,
        watch: Watch | None = None,
        governor: Spender | None = None,
        shelf: Shelf | None = None,
    ) -> None:
        self.target = target
        self.journal = journal
        self.watch = watch
        self.governor: Spender = governor or Governor(pace=Pace.at_most(in_flight))
        self.shelf = shelf
        self._in_flight = in_flight
        self._unreachable = 0
        self._quick: set[int] = set()

    async def run(
        self,
        audit: Audit | DistantAudit,
        documents: Sequence[Document],
        stage: str,
        progress: Progress | None = None,
    ) -> list[Outcome]:
        """Probe all documents, in their order.

        A document whose queries fail is unscorable with the reason; the others go on.

        Raises:
            TargetUnreachableError: Several documents in a row found no connection.
        """
        found: list[Outcome | None] = [None] * len(documents)
        self._quick = set()
        waiting = iter(enumerate(documents))
        done = 0

        async def take() -> None:
            """Probe one document after the other; only those under way take memory."""
            nonlocal done
            for place, document in waiting:
                found[place] = await self._found(audit, document, stage)
                done += 1
                if progress:
                    progress(stage, done, len(documents))

        takers = [asyncio.ensure_future(take()) for _ in documents[: self._in_flight]]
        try:
            await asyncio.gather(*takers)
        except BaseException:
            for taker in takers:
                taker.cancel()
            await asyncio.gather(*takers, return_exceptions=True)
            raise
        return [outcome for outcome in found if outcome is not None]

    async def run_stages(
        self,
        audit: Audit | DistantAudit,
        stages: Mapping[str, Sequence[Document]],
        progress: Progress | None = None,
    ) -> dict[str, list[Outcome]]:
        """Probe the documents of several stages, one stage after the other; see :meth:`run`."""
        return {
            stage: await self.run(audit, documents, stage, progress)
            for stage, documents in stages.items()
        }

    async def _found(self, audit: Audit | DistantAudit, document: Document, stage: str) -> Outcome:
        """What an earlier start found of a document, or else what is found now."""
        if self.shelf is None:
            return await self._probe(audit, document, stage)
        if (kept := self.shelf.get(document)) is not None:
            return kept
        return self.shelf.put(await self._probe(audit, document, stage))

    async def _probe(self, audit: Audit | DistantAudit, document: Document, stage: str) -> Outcome:
        steps = (
            audit.begin(document)
            if isinstance(audit, DistantAudit)
            else LocalSteps(audit, document, self._quick)
        )
        queries = sent = 0
        passing = False
        answers: list[Answer] | None = None
        while True:
            step = await steps.next(answers)
            if isinstance(step, Score):
                return Outcome(document, step, queries, sent, passing=passing)
            replies = await asyncio.gather(
                *(self._ask(query, document, stage) for query in step), return_exceptions=True
            )
            self._count_lost(replies)
            queries += len(step)
            sent += sum(map(_was_sent, replies))
            if capped := next((r for r in replies if isinstance(r, CapReachedError)), None):
                await steps.stop()  # its score would rest on a part of its answers
                refused = sum(isinstance(reply, CapReachedError) for reply in replies)
                reason = Score(None, reason=capped.message)
                return Outcome(document, reason, queries - refused, sent, capped=True, passing=True)
            answers = [_answer(reply) for reply in replies]
            passing = passing or not all(isinstance(r, _Reply) and r.kept for r in replies)
            for query, answer in zip(step, answers, strict=True):
                if self.watch is not None:
                    self.watch(document, query, answer)

    async def _ask(self, query: Query, document: Document, stage: str) -> _Reply:
        key = query_key(self.target.name, query)
        if self.journal is not None and (stored := self.journal.get(key)) is not None:
            return _Reply(stored, sent=False)
        answer = await self.governor.spend(query, self.target.ask)
        # An answer without the log-probabilities asked for is worth asking for again.
        useless = bool(query.top_logprobs) and answer.tokens is None
        if self.journal is None or useless:
            return _Reply(answer, sent=True, kept=not useless)
        asked = Asked(self.target.name, stage, document.id, query)
        return _Reply(self.journal.put(key, answer, asked), sent=True)

    def _count_lost(self, replies: Sequence[_Reply | BaseException]) -> None:
        """Count documents in a row that found no connection; give up after a few."""
        lost = [reply for reply in replies if isinstance(reply, TargetUnreachableError)]
        if len(lost) < len(replies):
            self._unreachable = 0
        elif lost:
            self._unreachable += 1
            if self._unreachable >= _GIVE_UP_AFTER:
                raise lost[0]


def _was_sent(reply: _Reply | BaseException) -> bool:
    if isinstance(reply, BaseException):
        return not isinstance(reply, CapReachedError)
    return reply.sent


def _answer(reply: _Reply | BaseException) -> Answer:
    if isinstance(reply, TargetError | CapabilityError | ModelError):
        return Answer("", error=reply.message)
    if isinstance(reply, BaseException):
        raise reply
    return reply.answer
