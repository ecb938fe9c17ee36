"""``ragwitness audit --engine``: the same audit by several processes, or by a Ray cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwitness.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from ragwitness.runs import AuditResult
    from ragwitness.runs.order import Order
    from ragwitness.runs.worker import Progress
    from ragwitness.types import Audit, Target

__all__ = [
    "Engine",
    "EngineName",
    "Gpus",
    "Prepare",
    "RayAddress",
    "Workers",
    "prepare",
    "spread",
]

EngineName = Annotated[
    str,
    typer.Option("--engine", help="local: this process; processes: several; ray: a Ray cluster."),
]
Workers = Annotated[int, typer.Option(help="Processes, or scorers of the Ray cluster.")]
Gpus = Annotated[
    float, typer.Option("--worker-gpus", help="ray: GPUs of each scorer; 0.5 shares one.")
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        envvar="RAY_ADDRESS", help="ray: cluster to join.", show_default="one on this machine"
    ),
]
Prepare = Annotated[
    bool,
    typer.Option("--prepare", help="Write the run folder for ragwitness work; send nothing."),
]


@dataclass(frozen=True, slots=True)
class Engine:
    """Who does the work.

    Attributes:
        name: ``"local"``, ``"processes"`` or ``"ray"``.
        workers: How many.
        gpus: Of each Ray scorer.
        address: Ray cluster to join; None starts one on this machine.

    Raises:
        InputError: There is no such engine, or a number is out of range.
    """

    name: str = "local"
    workers: int = 4
    gpus: float = 0.0
    address: str | None = None

    def __post_init__(self) -> None:
        if self.name not in ("local", "processes", "ray"):
            raise InputError(f"There is no engine {self.name!r}.", "Use local, processes or ray.")
        if self.workers < 1 or self.gpus < 0:
            raise InputError("At least 1 worker is needed, and no fewer than 0 GPUs for each.")


def prepare(order: Order, folder: Path, screen: Console) -> None:
    """Write an order into its folder and say how to go on."""
    from ragwitness.runs.manifest import write_manifest

    stages = order.stages()
    write_manifest(folder, order)
    counts = ", ".join(f"{len(part)} {stage}" for stage, part in stages.documents.items() if part)
    for line in (
        f"prepared {folder}: {stages.count} units ({counts}); nothing was sent",
        f"work on it:   ragwitness work {folder} --shard 1/4    (2/4, 3/4, 4/4 elsewhere)",
        f"then:         ragwitness merge {folder}",
    ):
        screen.print(line, markup=False, soft_wrap=True)


def spread(order: Order, folder: Path, engine: Engine, screen: Console) -> AuditResult:
    """Do an audit with several workers, and conclude it.

    Raises:
        InputError: The order cannot be written down, or a cap is smaller than the number of
            processes.
        MissingExtraError: Ray is not installed.
        RagwitnessError: A worker failed.
    """
    from ragwitness.cli.common import one_thread_per_answer
    from ragwitness.cli.finish import leaving_resumable
    from ragwitness.runs.manifest import write_manifest
    from ragwitness.runs.merge import merge_run

    cap = order.budget.queries
    if engine.name == "processes" and cap is not None and cap < engine.workers:
        raise InputError(
            f"A cap of {cap} queries cannot be shared by {engine.workers} processes.",
            "Give fewer --workers, or more --max-queries.",
        )
    manifest = write_manifest(folder, order)
    start = _with_processes if engine.name == "processes" else _with_ray
    with leaving_resumable(screen, folder):
        start(order, folder, engine, screen)
        one_thread_per_answer()
        return merge_run(manifest, folder)


def _with_processes(order: Order, folder: Path, engine: Engine, screen: Console) -> None:
    from ragwitness.cli.common import progress_bars
    from ragwitness.cli.finish import driven
    from ragwitness.runs import Governor, Pace
    from ragwitness.runs.engines.processes import run_processes
    from ragwitness.runs.part import adopt_target
    from ragwitness.targets import open_target

    async def nothing(target: Target, audit: Audit, identity: str, progress: Progress) -> None:
        """The target is measured once, here; that is all."""

    with Governor.of_run(folder, order.budget, Pace.up_to(1)) as governor:
        adopt_target(folder, folder)
        transport = order.reach.transport(1, governor.setback)
        opening = open_target(order.target, transport)
        driven(
            opening, (order.method, order.config, order.proxy), folder, screen, nothing, governor
        )
    with progress_bars(screen) as progress:
        run_processes(folder, engine.workers, order.stages().count, progress)


def _with_ray(order: Order, folder: Path, engine: Engine, screen: Console) -> None:
    from ragwitness.cli.common import progress_bars
    from ragwitness.runs.engines.ray import Cluster, run_on_ray

    cluster = Cluster(engine.workers, engine.gpus, engine.address)
    with progress_bars(screen) as progress:
        run_on_ray(order, folder, cluster, progress)
