"""The same work by a Ray cluster: one governor, scorers that hold a model, callers of the target.

Only Ray Core is used. The shadow system is asked by the scorers, then the target by the callers.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragwitness.errors import InputError, MissingExtraError, RagwitnessError
from ragwitness.quoting import quote_error
from ragwitness.runs.engines.actors import Caller, DistantGovernor, Gate, Place, Scorer
from ragwitness.runs.merge import finished_units
from ragwitness.runs.order import Order, audit_at
from ragwitness.runs.part import adopt_target
from ragwitness.runs.shards import Shard
from ragwitness.runs.worker import Progress
from ragwitness.targets import open_target

__all__ = ["Cluster", "run_on_ray"]

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
    with _session(cluster) as ray:
        place = Place(run.absolute(), os.getcwd())
        work = _Work(ray, order, place, cluster, progress)
        try:
            work.all()
        finally:
            work.stop()


class _Handle:
    """An actor as a :class:`~ragwitness.runs.engines.actors.Remote`; can be sent to another."""

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
        self, ray: Any, order: Order, place: Place, cluster: Cluster, progress: Progress
    ) -> None:
        self._ray, self._order, self._place, self._cluster = ray, order, place, cluster
        self._progress, self._units = progress, order.stages().count
        self._actors: list[Any] = []

    def all(self) -> None:
        """Do everything that is not done."""
        gate = _Handle(self._gate())
        asyncio.run(gate.call("open"))
        alternatives, identity = asyncio.run(self._measure(gate))
        shards = [Shard(self._cluster.workers, n + 1) for n in range(self._cluster.workers)]
        options = {"num_cpus": 1, "num_gpus": self._cluster.gpus}
        scorers = [self._actor(Scorer, options, self._place, alternatives) for _ in shards]
        pairs = zip(scorers, shards, strict=True)
        self._wait([scorer.shadow.remote(shard) for scorer, shard in pairs])
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
            return self._actor(Gate, options, self._place)
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
            audit, identity = await audit_at(target, method, governor, self._place.run)
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
def _session(cluster: Cluster) -> Iterator[Any]:
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


def _refuse_small(ray: Any, cluster: Cluster) -> None:
    """Refuse a cluster on which a scorer would wait for ever."""
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
