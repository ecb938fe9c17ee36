"""The same work by a Ray cluster: one governor, scorers that hold a model, callers of the target.

Only Ray Core is used. The shadow system is asked by the scorers, then the target by the callers.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ragwitness.asking.governor import Governor, Pace, Reservation
from ragwitness.asking.scores import RunFolder, finished_units, start_for
from ragwitness.asking.shards import Shard
from ragwitness.asking.worker import DistantAudit, Done, Progress, Steps, advance, probe_of
from ragwitness.audits.order import Order, audit_at, fitted, read_manifest
from ragwitness.audits.plan import at_target
from ragwitness.audits.shards import adopt_target, ask_shadow
from ragwitness.errors import InputError, MissingExtraError, RagwitnessError
from ragwitness.kit.quotes import quote_error
from ragwitness.kit.workers import VARIABLE as WORKERS
from ragwitness.targets.resolve import open_target
from ragwitness.targets.transport import Setback
from ragwitness.types import Answer, Document, Probe, Query, Score

# What lives in a Ray cluster: a governor per target, scorers with a model, callers.
#
# Plain classes without any import of Ray, so that they can be tested without a cluster; ``ray.py``
# turns them into actors. All read the run folder, which every machine must see under one path.

T = TypeVar("T")


class Remote(Protocol):
    """Calls the methods of an object in another process; its errors come back as they are."""

    async def call(self, method: str, *arguments: object) -> Any:
        """Call a method and wait for what it returns."""

    def call_now(self, method: str, *arguments: object) -> Any:
        """The same where nothing can be awaited."""


@dataclass(frozen=True, slots=True)
class RunPlace:
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
        os.environ[WORKERS] = "1"  # the cluster's actors are the processes
        return read_manifest(self.run).order


class GovernorHost:
    """The governor of a target, asked from other processes: caps and pace of all callers.

    Args:
        place: Its ledger lies in the run folder.
    """

    def __init__(self, place: RunPlace) -> None:
        self._place = place
        self._held: dict[int, Reservation] = {}
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

    async def note_setback(self, ticket: int, setback: Setback) -> None:
        """Take note of an attempt without an answer."""
        self._governor.note_setback(self._held[ticket], setback)

    async def end(self, ticket: int, answer: Answer | None) -> None:
        """Give a ticket back, with what the answer says it used; None where there is none."""
        self._governor.end(self._held.pop(ticket), answer)

    async def close(self) -> None:
        """Close the ledger."""
        self._governor.close()


_TICKET: ContextVar[int | None] = ContextVar("ticket of the query under way", default=None)


class DistantGovernor:
    """Lets queries pass by asking a :class:`GovernorHost`.

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
        # The same three steps as Governor.spend, with a ticket in the reservation's place.
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
            self._gate.call_now("note_setback", ticket, setback)


class Scorer:
    """Holds the auditor's model and the probes under way, and asks the shadow system.

    Args:
        place: Where the order lies.
        alternatives: Per token, that the target gives.
    """

    def __init__(self, place: RunPlace, alternatives: int) -> None:
        self._place, self._alternatives = place, alternatives
        self._probes: dict[str, Probe] = {}

    def shadow(self, shard: Shard) -> None:
        """Load the model and ask the shadow system about a shard's units; comes first."""
        order = self._place.order()
        self._audit, identity = fitted(
            order.method, order.config, order.proxy, self._alternatives, order.plan
        )
        wanted = order.stages().part(shard.takes)
        with RunFolder.of_shard(self._place.run, shard, identity) as folder:
            asyncio.run(ask_shadow(order, wanted, folder, self._audit))

    def begin(self, key: str, document: Document) -> list[Query] | Done[Score]:
        """Begin a probe and return its first batch, or its score."""
        self._probes[key] = probe_of(self._audit, document)
        return self.next(key, None)

    def next(self, key: str, answers: list[Answer] | None) -> list[Query] | Done[Score]:
        """Hand over answers; return the next batch, or the score."""
        step = advance(self._probes[key], answers)
        if isinstance(step, Done):
            del self._probes[key]
        return step

    def stop(self, key: str) -> None:
        """Give a probe up."""
        self._probes.pop(key).close()


class Caller:
    """Holds the target, and the journal and scores of one shard.

    Args:
        place: Where the order lies.
        identity: Of the audit.
        gate: Lets queries pass.
        scorer: Where the audit's model works.
    """

    def __init__(self, place: RunPlace, identity: str, gate: Remote, scorer: Remote) -> None:
        self._place, self._identity = place, identity
        self._gate, self._scorer = gate, scorer

    def work(self, shard: Shard) -> None:
        """Ask the target about a shard's units."""
        # A loop of its own: an asynchronous actor could not wait for the gate inside a callback.
        audit = _AtScorer(self._scorer, str(shard))
        governor = DistantGovernor(self._gate)
        asyncio.run(_ask_target(self._place, self._identity, shard, audit, governor))


async def _ask_target(
    place: RunPlace, identity: str, shard: Shard, audit: DistantAudit, governor: DistantGovernor
) -> None:
    order = place.order()
    at_once = max(1, order.plan.in_flight // shard.of)
    stages = order.stages()
    wanted, start = at_target(stages.part(shard.takes)), start_for(at_target(stages.documents))
    transport = order.reach.transport(at_once, governor.setback)
    target = await open_target(order.target, transport)
    try:
        with RunFolder.of_shard(place.run, shard, identity) as folder:
            worker = folder.worker(target, at_once, governor, start)
            await worker.run_stages(audit, wanted, mixed=True)
    finally:
        await target.close()


class _AtScorer(DistantAudit):
    """An audit whose probes a scorer holds, under keys that no other caller uses."""

    def __init__(self, scorer: Remote, caller: str) -> None:
        self._scorer, self._caller, self._numbers = scorer, caller, count(1)

    def begin(self, document: Document) -> Steps[Score]:
        return _DistantSteps(self._scorer, f"{self._caller} {next(self._numbers)}", document)


class _DistantSteps:
    """The probe of a document at a scorer."""

    def __init__(self, scorer: Remote, key: str, document: Document) -> None:
        self._scorer, self._key, self._document = scorer, key, document

    async def next(self, answers: list[Answer] | None) -> list[Query] | Done[Score]:
        if answers is None:
            step = await self._scorer.call("begin", self._key, self._document)
        else:
            step = await self._scorer.call("next", self._key, answers)
        found: list[Query] | Done[Score] = step
        return found

    async def stop(self) -> None:
        await self._scorer.call("stop", self._key)


def _counts(answer: object) -> Answer:
    """What the gate must know of an answer; the text stays where it is."""
    if not isinstance(answer, Answer):
        return Answer("")
    return replace(answer, text="", tokens=None, contexts=None)


_NAMESPACE = "ragwitness"
_LOOK_EVERY = 0.5  # seconds
_LONGEST_TEMPORARY = 40  # characters; Ray's sockets lie below, and their paths are limited


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the actors live.

    Attributes:
        workers: Scorers, and callers.
        gpus: Of each scorer.
        address: Cluster to join; None starts one on this machine.
    """

    workers: int = 2
    gpus: float = 0.0
    address: str | None = None


def run_on_ray(order: Order, run: Path, cluster: Cluster, progress: Progress) -> None:
    """Work on all units of a prepared run.

    Args:
        order: As in the manifest of ``run``.
        run: Folder of the run; every machine of the cluster must see it under the same path.
        cluster: Where.
        progress: Called as units end.

    Raises:
        MissingExtraError: Ray is not installed.
        InputError: The cluster is too small, or another run on it asks the same target.
        RagwitnessError: The work failed.
    """
    with ray_session(cluster) as ray:
        place = RunPlace(run.absolute(), os.getcwd())
        work = _Work(ray, order, place, cluster, progress)
        try:
            work.all()
        finally:
            work.stop()


class _Handle:
    """An actor as a :class:`~ragwitness.audits.engines.ray.Remote`; can be sent to another."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def call(self, method: str, *arguments: object) -> Any:
        import ray

        try:
            return await getattr(self._actor, method).remote(*arguments)
        except ray.exceptions.RayError as error:
            raise _cause(error) from None

    def call_now(self, method: str, *arguments: object) -> Any:
        import ray

        try:
            return ray.get(getattr(self._actor, method).remote(*arguments))
        except ray.exceptions.RayError as error:
            raise _cause(error) from None


class _Work:
    """One run on a cluster, from the first question to the last unit."""

    def __init__(
        self, ray: Any, order: Order, place: RunPlace, cluster: Cluster, progress: Progress
    ) -> None:
        self._ray, self._order, self._place, self._cluster = ray, order, place, cluster
        self._progress, self._units = progress, order.stages().count
        self._actors: list[Any] = []

    def all(self) -> None:
        """Do everything that is not done."""
        # 1. One governor for the whole cluster: caps hold for all callers together.
        gate = _Handle(self._gate())
        asyncio.run(gate.call("open"))
        # 2. The target's capabilities, asked once: the audit's settings and identity follow.
        alternatives, identity = asyncio.run(self._measure(gate))
        # 3. One scorer a shard holds the auditor's model, and asks the shadow system on the way.
        shards = [Shard(self._cluster.workers, n + 1) for n in range(self._cluster.workers)]
        options = {"num_cpus": 1, "num_gpus": self._cluster.gpus}
        scorers = [self._actor(Scorer, options, self._place, alternatives) for _ in shards]
        pairs = zip(scorers, shards, strict=True)
        self._wait([scorer.shadow.remote(shard) for scorer, shard in pairs])
        # 4. One caller a shard talks to the target; callers wait on the network and take no CPU.
        callers = [
            self._actor(Caller, {"num_cpus": 0}, self._place, identity, gate, _Handle(scorer))
            for scorer in scorers
        ]
        pairs = zip(callers, shards, strict=True)
        self._wait([caller.work.remote(shard) for caller, shard in pairs])
        asyncio.run(gate.call("close"))

    def stop(self) -> None:
        """End all actors; what they have is kept."""
        for actor in reversed(self._actors):
            self._ray.kill(actor)

    def _gate(self) -> Any:
        """The governor, named by the target: two runs on one cluster would pass its limits."""
        name = hashlib.sha256(self._order.target.encode()).hexdigest()[:16]
        try:
            options = {"num_cpus": 0, "name": f"governor-{name}", "namespace": _NAMESPACE}
            return self._actor(GovernorHost, options, self._place)
        except ValueError:
            raise InputError(
                "Another run on this Ray cluster asks the same target.", "Wait for it to end."
            ) from None

    def _actor(self, kind: type, options: Mapping[str, object], *arguments: object) -> Any:
        actor = self._ray.remote(kind).options(**options).remote(*arguments)
        self._actors.append(actor)
        return actor

    async def _measure(self, gate: _Handle) -> tuple[int, str]:
        """Ask the target what it can do, unless that is known."""
        order, governor = self._order, DistantGovernor(gate)
        adopt_target(self._place.run, self._place.run)
        target = await open_target(order.target, order.reach.transport(1, governor.setback))
        try:
            method = (order.method, order.config, order.proxy)
            audit, identity = await audit_at(target, method, governor, self._place.run, order.plan)
        finally:
            await target.close()
        return int(getattr(getattr(audit, "config", None), "top_logprobs", 0)), identity

    def _wait(self, under_way: Sequence[Any]) -> None:
        waiting, shown = list(under_way), 0
        while waiting:
            done, waiting = self._ray.wait(waiting, timeout=_LOOK_EVERY)
            for ended in done:
                try:
                    self._ray.get(ended)
                except self._ray.exceptions.RayError as error:
                    raise _cause(error) from None
            if (now := min(self._units, finished_units(self._place.run))) > shown:
                shown = now
                self._progress("all stages", now, self._units)


@contextmanager
def ray_session(cluster: Cluster) -> Iterator[Any]:
    """Start Ray on this machine, or join a cluster."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("The engine ray", "ray") from error
    quiet: dict[str, Any] = {
        "log_to_driver": False,
        "logging_level": "error",
        "namespace": _NAMESPACE,
    }
    folder = tempfile.mkdtemp(prefix="rw-")
    try:
        try:
            if cluster.address is None:
                short = folder if len(folder) <= _LONGEST_TEMPORARY else None
                ray.init(
                    address="local",
                    num_cpus=cluster.workers,
                    include_dashboard=False,
                    _temp_dir=short,
                    **quiet,
                )
            else:
                ray.init(address=cluster.address, **quiet)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            where = "on this machine" if cluster.address is None else f"at {cluster.address}"
            raise RagwitnessError(
                f"There is no Ray cluster {where}: {quote_error(error)}.",
                "Check --ray-address, or leave it out to start one on this machine.",
            ) from error
        _refuse_small(ray, cluster)
        yield ray
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def ray_spread(cluster: Cluster) -> Iterator[Callable[..., Iterator[Any]]]:
    """Yield what computes ``task(shared, item)`` of many items on a cluster, in order.

    What is shared is stored once for each machine. A few items more than there are workers are
    under way at a time; a worker that dies has its item computed again.
    """
    with ray_session(cluster) as ray:

        def spread(
            task: Callable[[Any, Any], Any], shared: Any, items: Iterable[Any]
        ) -> Iterator[Any]:
            held, remote = ray.put(shared), ray.remote(num_cpus=1)(task)
            waiting: deque[Any] = deque()
            for item in items:
                waiting.append(remote.remote(held, item))
                if len(waiting) > 2 * cluster.workers:
                    yield ray.get(waiting.popleft())
            while waiting:
                yield ray.get(waiting.popleft())

        yield spread


def _refuse_small(ray: Any, cluster: Cluster) -> None:
    """Refuse a cluster on which a scorer would wait for ever."""
    # Ray would queue an actor without resources and never say so.
    there = ray.cluster_resources()
    for what, name, needed in (
        ("CPUs", "CPU", float(cluster.workers)),
        ("GPUs", "GPU", cluster.workers * cluster.gpus),
    ):
        if there.get(name, 0.0) < needed:
            raise InputError(
                f"{cluster.workers} workers need {needed:g} {what}; the cluster has"
                f" {there.get(name, 0.0):g}.",
                "Give fewer --workers.",
            )


def _cause(error: BaseException) -> BaseException:
    """What an actor raised; Ray wraps it."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, RagwitnessError):
        return cause
    return RagwitnessError(
        f"A Ray worker failed: {quote_error(cause or error)}.", "The same command resumes."
    )
