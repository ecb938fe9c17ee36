"""The probe of one document, step by step, wherever its proxy model works."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from typing import Protocol

from ragwitness.errors import ModelError
from ragwitness.types import Answer, Audit, Document, Probe, Query, Score

__all__ = ["DistantAudit", "LocalSteps", "Steps", "advance"]

_QUICK = 1e-3  # seconds


class Steps(Protocol):
    """The probe of one document, wherever its proxy model works."""

    async def next(self, answers: list[Answer] | None) -> list[Query] | Score:
        """Return the next batch of queries, or the score; None starts it."""

    async def stop(self) -> None:
        """Give it up before its score."""


class DistantAudit(ABC):
    """An audit whose proxy model works in another process."""

    @abstractmethod
    def begin(self, document: Document) -> Steps:
        """Return the probe of a document."""


class LocalSteps:
    """A probe in this process.

    Args:
        audit: The method.
        document: What is probed.
        quick: Places of the steps that took no time with the last documents; shared by all
            probes of a stage.
    """

    def __init__(self, audit: Audit, document: Document, quick: set[int]) -> None:
        self._probe = audit.probe(document)
        self._quick = quick
        self._place = 0

    async def next(self, answers: list[Answer] | None) -> list[Query] | Score:
        """Return the next batch of queries, or the score."""
        # The proxy model works inside the generator; a thread keeps answers flowing. Where no
        # model works, changing threads would take longer than the step.
        place = self._place
        self._place += 1
        if place in self._quick:
            step, seconds = self._timed(answers)
        else:
            step, seconds = await asyncio.to_thread(self._timed, answers)
        (self._quick.add if seconds < _QUICK else self._quick.discard)(place)
        return step

    def _timed(self, answers: list[Answer] | None) -> tuple[list[Query] | Score, float]:
        started = time.perf_counter()
        step = advance(self._probe, answers)
        return step, time.perf_counter() - started

    async def stop(self) -> None:
        """Close the generator."""
        self._probe.close()


def advance(generator: Probe, answers: list[Answer] | None) -> list[Query] | Score:
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
