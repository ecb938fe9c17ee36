"""A Ray cluster: work in the processes of several machines. Only Ray Core is used."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ragwitness.core.errors import InputError, MissingExtraError, RagwitnessError
from ragwitness.core.quotes import quote_error

_LONGEST_TEMPORARY = 40  # characters; Ray's sockets lie below, and their paths are limited


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Ray cluster, and what is wanted of it.

    Attributes:
        workers: Number of processes that compute.
        gpus: GPUs of each process; 0.5 shares one.
        address: Address of the cluster to join; None starts one on this machine.

    Raises:
        InputError: A number is out of range.
    """

    workers: int = 4
    gpus: float = 0.0
    address: str | None = None

    def __post_init__(self) -> None:
        if self.workers < 1 or self.gpus < 0:
            raise InputError("At least 1 worker is needed, and no fewer than 0 GPUs for each.")


@contextmanager
def ray_session(cluster: Cluster) -> Iterator[Any]:
    """Start Ray on this machine, or join a cluster; yield the package.

    Raises:
        MissingExtraError: Ray is not installed.
        InputError: The cluster is too small.
        RagwitnessError: There is no cluster at the address.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("The engine ray", "ray") from error
    folder = tempfile.mkdtemp(prefix="rw-")
    started_here: dict[str, Any] = {"num_cpus": cluster.workers, "include_dashboard": False}
    if len(folder) <= _LONGEST_TEMPORARY:
        started_here["_temp_dir"] = folder
    try:
        try:
            ray.init(
                address=cluster.address or "local",
                log_to_driver=False,
                logging_level="error",
                **({} if cluster.address else started_here),
            )
        except Exception as error:  # a start that takes too long is a bare one of Ray
            where = f"at {cluster.address}" if cluster.address else "on this machine"
            raise RagwitnessError(
                f"There is no Ray cluster {where}: {quote_error(error)}.",
                "Check --ray-address, or leave it out to start one on this machine.",
            ) from error
        _refuse_small(cluster, ray.cluster_resources())
        yield ray
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def _refuse_small(cluster: Cluster, there: dict[str, float]) -> None:
    """Refuse a cluster on which a worker would wait for ever: Ray queues it and never says so."""
    for name, needed in (("CPU", cluster.workers), ("GPU", cluster.workers * cluster.gpus)):
        if there.get(name, 0) < needed:
            raise InputError(
                f"{cluster.workers} workers need {needed:g} {name}s; the cluster has"
                f" {there.get(name, 0):g}.",
                "Give fewer --workers.",
            )


def ray_result(ray: Any, reference: Any) -> Any:
    """Wait for what a worker returns.

    Raises:
        RagwitnessError: The worker raised it, or ended.
    """
    try:
        return ray.get(reference)
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, RagwitnessError):
            raise cause from None
        raise RagwitnessError(
            f"A Ray worker failed: {quote_error(cause or error)}.", "The same command resumes."
        ) from None
