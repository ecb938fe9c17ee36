"""``ragwitness init``: asks for what an audit needs, and writes the file that runs it."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwitness.cli.options import JsonPath
from ragwitness.core.errors import CapabilityError, InputError
from ragwitness.core.options import Part, PathRole, declared, map_paths
from ragwitness.membership.task import AuditTask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ragwitness.core.types import Audit
    from ragwitness.membership.auto_select import Pilot


_QUESTIONS = {
    "target": "Which system shall be audited? (URL or lab:FILE)",
    "documents": "Which documents are in question?",
    "known_out": "Which documents can it not hold? (none are needed; 10 of any kind test the odds,"
    " 40 or more like yours add ranks)",
    "public": "Are your documents published? Then which other published texts can it not hold?"
    " (none: leave it empty)",
}


def init(
    given: Annotated[Mapping[str, Any], Part(AuditTask)],
    out: Annotated[Path, PathRole.WRITES] = Path("run.toml"),
    replace: bool = False,
    json_out: JsonPath = None,
) -> None:
    """Prepare a first audit, and write the file that runs it.

    It asks on the terminal for what you do not give as an option, checks the documents and the
    target, and says what the audit will cost. It sends a few harmless queries to the target, as
    ragwitness doctor does. At a terminal it then offers to begin the audit; elsewhere, the audit
    begins with the command that it prints at the end. In a browser, ragwitness view asks the same
    questions.

    Args:
        out: The file of options that is written.
        replace: Replace the file if it is there already.
    """
    from ragwitness.cli.common import console, leave, print_lines, say_error, write_json_file
    from ragwitness.cli.doctor import AT_ONCE, admitted, examine
    from ragwitness.cli.plan import foresee
    from ragwitness.cli.steps import wait
    from ragwitness.core.options import write_options
    from ragwitness.membership.assumptions import likeness
    from ragwitness.membership.auto_select import AUTO, choose, run_pilot
    from ragwitness.membership.results import examination, forecast
    from ragwitness.models.model_registry import load_language_model
    from ragwitness.targets.resolve import open_target

    screen = console()
    if out.exists() and not replace:
        raise InputError(
            f"{out} is there already.", "Choose another file with --out, or add --replace."
        )
    # 1. Ask for every value that no option gives.
    answers: dict[str, Any] = dict(given)
    for name, question in _QUESTIONS.items():
        if not answers[name]:
            answers[name] = _prompt(name, question, screen) or None
    task = AuditTask(**answers)
    # 2. The documents: can they be read, are they enough, are both sets of one kind?
    order = task.order(say_error)
    plan, budget = order.plan, order.budget
    named = task.method if task.method != AUTO else None
    remarks, doubtful = order.beforehand()
    # 3. The target's abilities, measured.
    options = dataclasses.replace(task, retries=1).transport(AT_ONCE)
    report = wait(examine(order.target, options))
    possible, _ = admitted(report.capabilities)
    if named is not None and named.partition(":")[0] not in possible:
        raise CapabilityError(
            f"The target does not admit {named}.",
            f"It admits: {', '.join(possible) or 'no audit'}.",
        )
    # 4. The method, by the target, the documents and the caps; its cost and expected verdicts.
    chosen, config, reason, spent = named, order.config, f"{named} was asked for.", report.requests
    tried: list[Pilot] = []
    if chosen is None:

        async def piloting(audit: Audit) -> Pilot:
            opened = await open_target(order.target, options)
            try:
                tried.append(await run_pilot(opened, None, None, audit))
                return tried[-1]
            finally:
                await opened.close()

        proxy = load_language_model(order.proxy)
        try:
            choice = wait(choose(plan, report, proxy, budget, piloting))
        except CapabilityError:  # the answers in the file say why
            if json_out is not None:
                write_json_file(json_out, {"tried": _pilot_rows(tried)})
            raise
        chosen, config = choice.method, choice.config
        reason, spent = choice.why, choice.asked
    outlook = foresee(plan, {chosen: config}, order.proxy, budget, report.latency)
    leave(outlook)
    screen.print(f"target admits: {', '.join(possible)}; taken: {chosen}. {reason}", markup=False)
    # The forecast says whether the documents suffice; here, whether both sets are of one kind.
    compared = [likeness(plan.documents, plan.known_out).told] if plan.known_out else []
    alike = remarks[1:] or compared
    for line in alike:
        screen.print(line[:1].upper() + line[1:], markup=False)
    # 5. The file, and the next commands.
    relative = partial(_relative, out.resolve().parent)
    # A method that auto chose is chosen again by the audit, with settings that no name has.
    write_options(out, dict(written(task, relative)), "ragwitness init")
    if json_out is not None:
        examined = examination.Examination(report, tuple(possible), {})
        checked = examination.RESULT_TYPE.dump(examined) | {
            "forecast": forecast.dump(outlook),
            "queries_spent": spent,
            "method": chosen,
            "why": reason,
            "decides": remarks[0],
            "alike": list(alike),
            "doubtful": doubtful,
            "documents": len(plan.documents),
            "known_out": len(plan.known_out),
            "known_in": len(plan.known_in),
            "tried": _pilot_rows(tried),
        }
        write_json_file(json_out, checked)
    yes = " --yes" if doubtful else ""
    print_lines(
        screen,
        f"\n{out} is written. Nothing of the audit was sent. The audit begins with:\n",
        f"ragwitness audit --config {out} --dry-run",
        f"ragwitness audit --config {out}{yes}",
    )
    # 6. The fifth question.
    if _at_terminal(screen) and typer.confirm("\nBegin the audit now?", default=False):
        audit = [sys.executable, "-P", "-m", "ragwitness", "audit", "--config", str(out), "--yes"]
        raise typer.Exit(subprocess.call(audit))  # noqa: S603  # our own verb


def _pilot_rows(tried: Sequence[Pilot]) -> list[dict[str, object]]:
    """Return the outcome of each pilot, with some of its questions and answers, as JSON."""
    return [
        {
            "method": pilot.method,
            "possible": pilot.possible,
            "told": pilot.told,
            "asked": pilot.examples,
        }
        for pilot in tried
    ]


def _prompt(name: str, question: str, screen: Console) -> str:
    """Ask the user at the terminal.

    Raises:
        InputError: There is no terminal, and an answer is needed.
    """
    default = "" if name in ("known_out", "public") else None
    if not _at_terminal(screen):
        if default is not None:
            return default
        raise InputError(
            f"--{name} is missing, and there is no terminal to ask at.",
            "Give it on the command line.",
        )
    answer: str = typer.prompt(question, default=default, show_default=False)
    return answer.strip()


def _at_terminal(screen: Console) -> bool:
    return sys.stdin.isatty() and screen.is_terminal


def written(task: AuditTask, place: Callable[[str], str]) -> Iterator[tuple[str, object]]:
    """Yield the options of a task that differ from their defaults, and method and alpha.

    Args:
        task: The task.
        place: Returns a path as the file of options names it.
    """
    for option in declared(AuditTask):
        value, role = getattr(task, option.name), option.mark(PathRole)
        if value == option.default and option.name not in ("method", "alpha"):
            continue
        if role is not None and value is not None:
            value = map_paths(role, str(value), place)
        yield option.option.lstrip("-"), value


def _relative(folder: Path, path: str) -> str:
    """Return a path as a file of options in a folder names it."""
    absolute = Path(path).expanduser()
    return os.path.relpath(absolute.resolve(), folder) if absolute.exists() else path
