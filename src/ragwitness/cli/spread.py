"""``ragwitness audit --engine``: the same audit by a Ray cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragwitness.cli.common import one_thread_per_answer, print_lines, progress_bars
from ragwitness.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from ragwitness.audits.order import Order
    from ragwitness.results.membership import AuditResult


@dataclass(frozen=True, slots=True)
class Engine:
    """Who does the work.

    Attributes:
        name: ``"local"`` or ``"ray"``; ``"processes"`` is an old spelling of ``"local"``.
        workers: How many scorers.
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
            raise InputError(f"There is no engine {self.name!r}.", "Use local or ray.")
        if self.workers < 1 or self.gpus < 0:
            raise InputError("At least 1 worker is needed, and no fewer than 0 GPUs for each.")


def prepare(order: Order, folder: Path, screen: Console) -> None:
    """Write an order into its folder and say how to go on."""
    from ragwitness.audits.order import write_manifest

    stages = order.stages()
    write_manifest(folder, order)
    # The parts of the order by stage, so that a shard's length can be guessed.
    counts = ", ".join(f"{len(part)} {stage}" for stage, part in stages.documents.items() if part)
    print_lines(
        screen,
        f"prepared {folder}: {stages.count} units ({counts}); nothing was sent",
        f"work on it:   ragwitness run work {folder} --shard 1/4    (2/4, 3/4, 4/4 elsewhere)",
        f"then:         ragwitness run merge {folder}",
    )


def write_down(order: Order, path: Path, answered: Path | None, screen: Console) -> None:
    """Write the questions of an order into a file and say how to go on.

    Raises:
        InputError: There is none, or the answers are those of another audit.
    """
    from ragwitness.audits.questions import write_questions
    from ragwitness.cli.steps import wait

    questions, documents, without = wait(write_questions(path, order, answered))
    print_lines(
        screen,
        f"wrote {path}: {questions:,} questions about {documents:,} documents; {without:,} others"
        " have none; nothing was sent",
        "answer it:    any program for OpenAI batch files; docs/scale.md names one",
        "then:         the same command with replay/ANSWERS.jsonl in place of the target",
        "some missing: the same command with --questions-to MORE --answered ANSWERS",
    )


def spread(order: Order, folder: Path, engine: Engine, screen: Console) -> AuditResult:
    """Do an audit with several workers, and conclude it.

    Raises:
        InputError: The order cannot be written down.
        MissingExtraError: Ray is not installed.
        RagwitnessError: A worker failed.
    """
    from ragwitness.audits.order import write_manifest
    from ragwitness.audits.shards import merge_run
    from ragwitness.cli.steps import leaving_resumable

    # The order is written down first: workers read it, and the merge concludes from it alone.
    manifest = write_manifest(folder, order)
    with leaving_resumable(folder):
        _with_ray(order, folder, engine, screen)
        one_thread_per_answer()
        return merge_run(manifest, folder)


def _with_ray(order: Order, folder: Path, engine: Engine, screen: Console) -> None:
    from ragwitness.audits.engines.ray import Cluster, run_on_ray

    cluster = Cluster(engine.workers, engine.gpus, engine.address)
    with progress_bars(screen) as progress:
        run_on_ray(order, folder, cluster, progress)
