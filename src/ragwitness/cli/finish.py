"""The end of every audit: check the target, run, store, show."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from ragwitness.runs import AuditPlan, AuditResult, Progress
    from ragwitness.targets import TransportOptions
    from ragwitness.types import Audit, Target

__all__ = ["check_writable", "finish", "perform", "with_target"]

Result = TypeVar("Result")


def perform(
    plan: AuditPlan,
    opening: Awaitable[Target],
    method: str,
    config: Any,
    proxy: str,
    folder: Path,
    screen: Console,
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
            plan, target, audit, run=folder, progress=progress
        ),
    )


def with_target(
    spec: str,
    transport: TransportOptions,
    method: tuple[str, Any, str],
    folder: Path,
    work: Callable[[Target, Audit, Progress], Coroutine[Any, Any, Result]],
) -> Result:
    """Open a target, check that it admits a method, and do ``work`` with progress bars.

    Args:
        spec: As on the command line.
        transport: Timeouts, key, concurrency.
        method: Registered name, configuration, and the auditor's own model.
        folder: Of the run.
        work: What is done with the target and the audit.
    """
    from ragwitness.cli.common import console, resolve

    return _driven(resolve(spec, transport), method, folder, console(), work)


def _driven(
    opening: Awaitable[Target],
    method: tuple[str, Any, str],
    folder: Path,
    screen: Console,
    work: Callable[[Target, Audit, Progress], Coroutine[Any, Any, Result]],
) -> Result:
    try:
        return asyncio.run(_drive(opening, method, screen, work))
    except KeyboardInterrupt:
        screen.print(f"interrupted: answers so far are kept in {folder}", markup=False)
        screen.print(f"resume with the same command and --run {folder}", markup=False)
        raise typer.Exit(130) from None


async def _drive(
    opening: Awaitable[Target],
    method: tuple[str, Any, str],
    screen: Console,
    work: Callable[[Target, Audit, Progress], Coroutine[Any, Any, Result]],
) -> Result:
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
        found = await require_capabilities(target, audit)
        # A text-only target lists none, and an audit of text asks for none.
        if 1 <= found.alternatives < getattr(config, "top_logprobs", 0):
            audit = build_audit(name, model, replace(config, top_logprobs=found.alternatives))
        with progress_bars(screen) as progress:
            return await work(target, audit, progress)
    finally:
        await target.close()


def check_writable(path: Path) -> None:
    """Find out before anything is spent whether a result can be written.

    Raises:
        InputError: It cannot.
    """
    from ragwitness.errors import InputError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror}.", "Choose another.") from error
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"Cannot write {path}: no permission, or a folder.", "Choose another.")


def _write_json(path: Path, result: AuditResult) -> None:
    """Write a result as JSON.

    Raises:
        InputError: The file cannot be written.
    """
    from ragwitness.errors import InputError
    from ragwitness.report import to_json

    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(to_json(result), indent=1, ensure_ascii=False, allow_nan=False)
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror}.") from error


def finish(
    result: AuditResult, folder: Path, screen: Console, json_out: Path | None = None
) -> None:
    """Store the result in the run folder, print it and say where the report is."""
    from ragwitness.report import render_terminal, write_html

    _write_json(folder / "result.json", result)
    if json_out is not None:
        _write_json(json_out, result)
    page = folder / "report.html"
    write_html(result, page)
    for label in ("difficulty", "audit classifier", "shadow retrieval", "shadow generator"):
        if label in result.settings:
            screen.print(f"{label:<24}{result.settings[label]}", markup=False, soft_wrap=True)
    screen.print(render_terminal(result, where=str(page)))
    screen.print(f"report: {page}", markup=False, soft_wrap=True)
