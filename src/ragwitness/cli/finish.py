"""The end of every audit: check the target, run, store, show."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
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

__all__ = ["finish", "perform", "with_target"]

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

    return _driven(
        opening,
        (method, config, proxy),
        folder,
        screen,
        lambda target, audit, progress: run_audit(
            plan, target, audit, run=folder, progress=progress, governor=governor
        ),
        governor,
    )


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

    return _driven(open_target(spec, transport), method, folder, console(), work, governor)


def _driven(
    opening: Awaitable[Target],
    method: tuple[str, Any, str],
    folder: Path,
    screen: Console,
    work: Callable[[Target, Audit, Progress], Coroutine[Any, Any, Result]],
    governor: Governor,
) -> Result:
    try:
        return asyncio.run(_drive(opening, method, folder, screen, work, governor))
    except KeyboardInterrupt:
        screen.print(f"interrupted: answers so far are kept in {folder}", markup=False)
        screen.print(f"resume with the same command and --run {folder}", markup=False)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


async def _drive(
    opening: Awaitable[Target],
    method: tuple[str, Any, str],
    folder: Path,
    screen: Console,
    work: Callable[[Target, Audit, Progress], Coroutine[Any, Any, Result]],
    governor: Governor,
) -> Result:
    from ragwitness.cli.caps import spent_so_far
    from ragwitness.cli.common import one_thread_per_answer, progress_bars
    from ragwitness.membership.registry import build_audit
    from ragwitness.models import load_language_model
    from ragwitness.runs import require_capabilities

    one_thread_per_answer()
    name, config, proxy = method
    target = await opening
    try:
        model = load_language_model(proxy)
        audit = build_audit(name, model, config)
        found = await require_capabilities(target, audit, governor, folder)
        # A text-only target lists none, and an audit of text asks for none.
        if 1 <= found.alternatives < getattr(config, "top_logprobs", 0):
            audit = build_audit(name, model, replace(config, top_logprobs=found.alternatives))
        with progress_bars(screen, spent_so_far(governor)) as progress:
            return await work(target, audit, progress)
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
