"""Drives audit generators: the only loop that sends queries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ragwitness.errors import (
    CapabilityError,
    CapReachedError,
    ModelError,
    TargetError,
    TargetUnreachableError,
)
from ragwitness.runs.governor import Governor
from ragwitness.runs.journal import Journal, query_key
from ragwitness.runs.pace import Pace
from ragwitness.types import Answer, Audit, Document, Probe, Query, Score, Target

__all__ = ["Outcome", "Progress", "Watch", "Worker"]

Watch = Callable[[Document, Query, Answer], None]
"""Told of every answer, those from the journal included."""

Progress = Callable[[str, int, int], None]
"""Called with stage, documents done and documents in all."""

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
    """

    document: Document
    score: Score
    queries: int
    sent: int
    capped: bool = False


class Worker:
    """Probes documents at one target, several at a time, and keeps every answer.

    Args:
        target: The system under audit.
        journal: Where answers are kept; None keeps nothing.
        in_flight: Documents probed at the same time.
        watch: Told of every answer.
        governor: Lets queries to the target pass; None lets ``in_flight`` of them pass at a
            time, without caps.
    """

    def __init__(
        self,
        target: Target,
        journal: Journal | None = None,
        in_flight: int = 4,
        watch: Watch | None = None,
        governor: Governor | None = None,
    ) -> None:
        self.target = target
        self.journal = journal
        self.watch = watch
        self.governor = governor or Governor(pace=Pace.at_most(in_flight))
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
        found: list[Outcome | None] = [None] * len(documents)
        waiting = iter(enumerate(documents))
        done = 0

        async def take() -> None:
            """Probe one document after the other; only those under way take memory."""
            nonlocal done
            for place, document in waiting:
                found[place] = await self._probe(audit, document)
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

    async def _probe(self, audit: Audit, document: Document) -> Outcome:
        generator = audit.probe(document)
        queries = sent = 0
        answers: list[Answer] | None = None
        while True:
            # The proxy model works inside the generator; a thread keeps answers flowing.
            step = await asyncio.to_thread(_advance, generator, answers)
            if isinstance(step, Score):
                return Outcome(document, step, queries, sent)
            replies = await asyncio.gather(
                *(self._ask(query) for query in step), return_exceptions=True
            )
            self._count_lost(replies)
            queries += len(step)
            sent += sum(map(_was_sent, replies))
            if capped := next((r for r in replies if isinstance(r, CapReachedError)), None):
                generator.close()  # its score would rest on a part of its answers
                refused = sum(isinstance(reply, CapReachedError) for reply in replies)
                reason = Score(None, reason=capped.message)
                return Outcome(document, reason, queries - refused, sent, capped=True)
            answers = [_answer(reply) for reply in replies]
            for query, answer in zip(step, answers, strict=True):
                if self.watch is not None:
                    self.watch(document, query, answer)

    async def _ask(self, query: Query) -> tuple[Answer, bool]:
        key = query_key(self.target.name, query)
        if self.journal is not None and (stored := self.journal.get(key)) is not None:
            return stored, False
        answer = await self.governor.spend(query, self.target.ask)
        # An answer without the log-probabilities asked for is worth asking for again.
        useless = bool(query.top_logprobs) and answer.tokens is None
        if self.journal is None or useless:
            return answer, True
        return self.journal.put(key, answer), True

    def _count_lost(self, replies: Sequence[tuple[Answer, bool] | BaseException]) -> None:
        """Count documents in a row that found no connection; give up after a few."""
        lost = [reply for reply in replies if isinstance(reply, TargetUnreachableError)]
        if len(lost) < len(replies):
            self._unreachable = 0
        elif lost:
            self._unreachable += 1
            if self._unreachable >= _GIVE_UP_AFTER:
                raise lost[0]


def _was_sent(reply: tuple[Answer, bool] | BaseException) -> bool:
    if isinstance(reply, BaseException):
        return not isinstance(reply, CapReachedError)
    return reply[1]


def _answer(reply: tuple[Answer, bool] | BaseException) -> Answer:
    if isinstance(reply, TargetError | CapabilityError | ModelError):
        return Answer("", error=reply.message)
    if isinstance(reply, BaseException):
        raise reply
    return reply[0]


def _advance(generator: Probe, answers: list[Answer] | None) -> list[Query] | Score:
    """Run a probe up to its next batch or its score.

    A local model that cannot read a document makes that document unscorable, no other.
    """
    try:
        return generator.send(answers)  # type: ignore[arg-type]  # None starts a generator
    except StopIteration as stop:
        score: Score = stop.value
        return score
    except ModelError as error:
        return Score(None, reason=error.message)
