"""The end of every audit: check the target, run, store, show."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from ragwitness.errors import ExitCode

if TYPE_CHECKING:
    from rich.console import Console

    from ragwitness.cli.outputs import Outputs
    from ragwitness.runs import AuditPlan, AuditResult, Governor, Progress
    from ragwitness.targets import TransportOptions
    from ragwitness.types import Audit, Target

__all__ = ["driven", "finish", "leaving_resumable", "perform", "with_target"]

Result = TypeVar("Result")


def perform(
    plan: AuditPlan,
    opening: Awaitable[Target],
    method: str,
    config: Any,
    proxy: str,
    folder: Path,
    screen: Console,
    governor: Governor,
) -> AuditResult:
    """Open the target, check that it can be audited, run the audit with progress bars.

    Args:
        plan: Documents and settings.
        opening: Opens the target.
        method: Registered name of the audit.
        config: Its parameters; fewer alternatives are asked for where the target
            gives fewer.
        proxy: The auditor's own model.
        folder: Of the run.
        screen: Where progress is shown.
        governor: Lets queries to the target pass.

    Raises:
        CapabilityError: The target lacks what the audit requires.
        TargetError: The target cannot be reached or does not speak the protocol.
    """
    from ragwitness.runs import run_audit

    def work(
        target: Target, audit: Audit, identity: str, progress: Progress
    ) -> Coroutine[Any, Any, AuditResult]:
        return run_audit(
            plan,
            target,
            audit,
            run=folder,
            progress=progress,
            governor=governor,
            identity=identity,
        )

    return driven(opening, (method, config, proxy), folder, screen, work, governor)


def with_target(
    spec: str,
    transport: TransportOptions,
    method: tuple[str, Any, str],
    folder: Path,
    work: Callable[[Target, Audit, Progress], Coroutine[Any, Any, Result]],
    governor: Governor,
) -> Result:
    """Open a target, check that it admits a method, and do ``work`` with progress bars.

    Args:
        spec: As on the command line.
        transport: Timeouts, key, concurrency.
        method: Registered name, configuration, and the auditor's own model.
        folder: Of the run.
        work: What is done with the target and the audit.
        governor: Lets queries to the target pass.
    """
    from ragwitness.cli.common import console
    from ragwitness.targets import open_target

    return driven(
        open_target(spec, transport),
        method,
        folder,
        console(),
        lambda target, audit, _, progress: work(target, audit, progress),
        governor,
    )


def driven(
    opening: Awaitable[Target],
    method: tuple[str, Any, str],
    folder: Path,
    screen: Console,
    work: Callable[[Target, Audit, str, Progress], Coroutine[Any, Any, Result]],
    governor: Governor,
    resume: str = "",
) -> Result:
    """Open a target, measure it, and do ``work`` with it, the audit and the audit's identity.

    Args:
        opening: Opens the target.
        method: Registered name, configuration, and the auditor's own model.
        folder: Where the work keeps its files.
        screen: Where progress is shown.
        work: What is done.
        governor: Lets queries to the target pass.
        resume: Command that goes on after an interruption; empty for the same one.
    """
    with leaving_resumable(screen, folder, resume):
        return asyncio.run(_drive(opening, method, folder, screen, work, governor))


@contextmanager
def leaving_resumable(screen: Console, folder: Path, resume: str = "") -> Iterator[None]:
    """Say how to go on where the user interrupts; exit with 130."""
    try:
        yield
    except KeyboardInterrupt:
        how = f": {resume}" if resume else f" with the same command and --run {folder}"
        screen.print(f"interrupted: answers so far are kept in {folder}", markup=False)
        screen.print(f"resume{how}", markup=False, soft_wrap=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


async def _drive(
    opening: Awaitable[Target],
    method: tuple[str, Any, str],
    folder: Path,
    screen: Console,
    work: Callable[[Target, Audit, str, Progress], Coroutine[Any, Any, Result]],
    governor: Governor,
) -> Result:
    from ragwitness.cli.caps import spent_so_far
    from ragwitness.cli.common import one_thread_per_answer, progress_bars
    from ragwitness.runs.order import audit_at

    one_thread_per_answer()
    target = await opening
    try:
        audit, identity = await audit_at(target, method, governor, folder)
        with progress_bars(screen, spent_so_far(governor)) as progress:
            return await work(target, audit, identity, progress)
    finally:
        await target.close()


def finish(
    result: AuditResult, folder: Path, screen: Console, outputs: Outputs | None = None
) -> None:
    """Store the result in the run folder, print it, say where the report is, and conclude."""
    from ragwitness.report import render_terminal, write_html, write_json

    write_json(result, folder / "result.json")
    page = folder / "report.html"
    write_html(result, page)
    for label in ("difficulty", "audit classifier", "shadow retrieval", "shadow generator"):
        if label in result.settings:
            screen.print(f"{label:<24}{result.settings[label]}", markup=False, soft_wrap=True)
    screen.print(render_terminal(result, where=str(page)))
    screen.print(f"report: {page}", markup=False, soft_wrap=True)
    if outputs is not None:
        outputs.conclude(result, screen)
