"""Drives audit generators: the only loop that sends queries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ragwitness.errors import CapabilityError, ModelError, TargetError, TargetUnreachableError
from ragwitness.runs.journal import Journal, query_key
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
    """

    document: Document
    score: Score
    queries: int
    sent: int


class Worker:
    """Probes documents at one target, several at a time, and keeps every answer.

    Args:
        target: The system under audit.
        journal: Where answers are kept; None keeps nothing.
        in_flight: Documents probed at the same time.
        watch: Told of every answer.
    """

    def __init__(
        self,
        target: Target,
        journal: Journal | None = None,
        in_flight: int = 4,
        watch: Watch | None = None,
    ) -> None:
        self.target = target
        self.journal = journal
        self.watch = watch
        self._gate = asyncio.Semaphore(in_flight)
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
        done = 0

        async def one(document: Document) -> Outcome:
            nonlocal done
            async with self._gate:
                outcome = await self._probe(audit, document)
            done += 1
            if progress:
                progress(stage, done, len(documents))
            return outcome

        tasks = [asyncio.ensure_future(one(document)) for document in documents]
        try:
            return list(await asyncio.gather(*tasks))
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

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
            answers = [_answer(reply) for reply in replies]
            for query, answer in zip(step, answers, strict=True):
                if self.watch is not None:
                    self.watch(document, query, answer)
            queries += len(step)
            sent += sum(isinstance(reply, BaseException) or reply[1] for reply in replies)

    async def _ask(self, query: Query) -> tuple[Answer, bool]:
        key = query_key(self.target.name, query)
        if self.journal is not None and (stored := self.journal.get(key)) is not None:
            return stored, False
        answer = await self.target.ask(query)
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
