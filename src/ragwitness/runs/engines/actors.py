"""What lives in a Ray cluster: a governor per target, scorers with a model, callers.

Plain classes without any import of Ray, so that they can be tested without a cluster; ``ray.py``
turns them into actors. All read the run folder, which every machine must see under one path.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ragwitness.runs.governor import Governor, Held
from ragwitness.runs.manifest import read_manifest
from ragwitness.runs.order import Order, fitted
from ragwitness.runs.pace import Pace
from ragwitness.runs.part import ask_shadow
from ragwitness.runs.records import Records
from ragwitness.runs.shards import Shard
from ragwitness.runs.steps import DistantAudit, Steps, advance
from ragwitness.runs.units import at_target
from ragwitness.targets import open_target
from ragwitness.targets.retry import Setback
from ragwitness.types import Answer, Document, Probe, Query, Score

__all__ = ["Caller", "DistantGovernor", "Gate", "Place", "Remote", "Scorer"]

T = TypeVar("T")


class Remote(Protocol):
    """Calls the methods of an object in another process; its errors come back as they are."""

    async def call(self, method: str, *arguments: object) -> Any:
        """Call a method and wait for what it returns."""

    def call_now(self, method: str, *arguments: object) -> Any:
        """The same where nothing can be awaited."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the work is done.

    Attributes:
        run: Folder of the run.
        home: Folder that relative addresses start from.
    """

    run: Path
    home: str

    def order(self) -> Order:
        """Go there and return what is to be done."""
        os.chdir(self.home)
        return read_manifest(self.run).order


class Gate:
    """The governor of a target, asked from other processes: caps and pace of all callers.

    Args:
        place: Its ledger lies in the run folder.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._held: dict[int, Held] = {}
        self._numbers = count(1)

    async def open(self) -> None:
        """Open the ledger; errors at work can be told better than those of making an actor."""
        order = self._place.order()
        pace = Pace.up_to(order.plan.in_flight)
        self._governor = Governor.of_run(self._place.run, order.budget, pace)

    async def begin(self, query: Query) -> int:
        """Wait for a turn; return a ticket."""
        held = await self._governor.begin(query)
        number = next(self._numbers)
        self._held[number] = held
        return number

    async def set_back(self, ticket: int, setback: Setback) -> None:
        """Take note of an attempt without an answer."""
        self._governor.set_back(self._held[ticket], setback)

    async def end(self, ticket: int, answer: Answer | None) -> None:
        """Give a ticket back, with what the answer says it used; None where there is none."""
        self._governor.end(self._held.pop(ticket), answer)

    async def close(self) -> None:
        """Close the ledger."""
        self._governor.close()


_TICKET: ContextVar[int | None] = ContextVar("ticket of the query under way", default=None)


class DistantGovernor:
    """Lets queries pass by asking a :class:`Gate`.

    Args:
        gate: In another process.
    """

    def __init__(self, gate: Remote) -> None:
        self._gate = gate

    async def spend(self, query: Query, send: Callable[[Query], Awaitable[T]]) -> T:
        """Wait for a turn, send a query and settle what it used; as a governor does.

        Raises:
            CapReachedError: The query could pass a cap.
        """
        ticket = await self._gate.call("begin", query)
        token = _TICKET.set(ticket)
        try:
            answer = await send(query)
        except BaseException:
            await self._gate.call("end", ticket, None)
            raise
        finally:
            _TICKET.reset(token)
        await self._gate.call("end", ticket, _counts(answer))
        return answer

    def setback(self, setback: Setback) -> None:
        """Take note of an attempt that brought no answer; the transport calls this.

        Raises:
            CapReachedError: It is to be repeated, and that could pass a cap.
        """
        ticket = _TICKET.get()
        if ticket is not None:
            self._gate.call_now("set_back", ticket, setback)


class Scorer:
    """Holds the auditor's model and the probes under way, and asks the shadow system.

    Args:
        place: Where the order lies.
        alternatives: Per token, that the target gives.
    """

    def __init__(self, place: Place, alternatives: int) -> None:
        self._place, self._alternatives = place, alternatives
        self._probes: dict[str, Probe] = {}

    def shadow(self, shard: Shard) -> None:
        """Load the model and ask the shadow system about a shard's units; comes first."""
        order = self._place.order()
        self._audit, identity = fitted(order.method, order.config, order.proxy, self._alternatives)
        wanted = order.stages().part(shard.takes)
        with Records.of_shard(self._place.run, shard, identity) as records:
            asyncio.run(ask_shadow(order, wanted, records, self._audit))

    def begin(self, key: str, document: Document) -> list[Query] | Score:
        """Begin a probe and return its first batch, or its score."""
        self._probes[key] = self._audit.probe(document)
        return self.next(key, None)

    def next(self, key: str, answers: list[Answer] | None) -> list[Query] | Score:
        """Hand over answers; return the next batch, or the score."""
        step = advance(self._probes[key], answers)
        if isinstance(step, Score):
            del self._probes[key]
        return step

    def stop(self, key: str) -> None:
        """Give a probe up."""
        self._probes.pop(key).close()


class Caller:
    """Holds the target, and the journal and book of one shard.

    Args:
        place: Where the order lies.
        identity: Of the audit.
        gate: Lets queries pass.
        scorer: Where the audit's model works.
    """

    def __init__(self, place: Place, identity: str, gate: Remote, scorer: Remote) -> None:
        self._place, self._identity = place, identity
        self._gate, self._scorer = gate, scorer

    def work(self, shard: Shard) -> None:
        """Ask the target about a shard's units."""
        # A loop of its own: an asynchronous actor could not wait for the gate inside a callback.
        audit = _AtScorer(self._scorer, str(shard))
        governor = DistantGovernor(self._gate)
        asyncio.run(_ask_target(self._place, self._identity, shard, audit, governor))


async def _ask_target(
    place: Place, identity: str, shard: Shard, audit: DistantAudit, governor: DistantGovernor
) -> None:
    order = place.order()
    at_once = max(1, order.plan.in_flight // shard.of)
    wanted = at_target(order.stages().part(shard.takes))
    transport = order.reach.transport(at_once, governor.setback)
    target = await open_target(order.target, transport)
    try:
        with Records.of_shard(place.run, shard, identity) as records:
            worker = records.worker(target, at_once, governor)
            await worker.run_stages(audit, wanted)
    finally:
        await target.close()


class _AtScorer(DistantAudit):
    """An audit whose probes a scorer holds, under keys that no other caller uses."""

    def __init__(self, scorer: Remote, caller: str) -> None:
        self._scorer, self._caller, self._numbers = scorer, caller, count(1)

    def begin(self, document: Document) -> Steps:
        return _DistantSteps(self._scorer, f"{self._caller} {next(self._numbers)}", document)


class _DistantSteps:
    """The probe of a document at a scorer."""

    def __init__(self, scorer: Remote, key: str, document: Document) -> None:
        self._scorer, self._key, self._document = scorer, key, document

    async def next(self, answers: list[Answer] | None) -> list[Query] | Score:
        if answers is None:
            step = await self._scorer.call("begin", self._key, self._document)
        else:
            step = await self._scorer.call("next", self._key, answers)
        found: list[Query] | Score = step
        return found

    async def stop(self) -> None:
        await self._scorer.call("stop", self._key)


def _counts(answer: object) -> Answer:
    """What the gate must know of an answer; the text stays where it is."""
    if not isinstance(answer, Answer):
        return Answer("")
    return replace(answer, text="", tokens=None, contexts=None)
