"""``ragwitness init``: the questions that an audit needs answered, and a file that runs it."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragwitness.cli.options import JsonPath, Sample
from ragwitness.core.errors import CapabilityError, InputError
from ragwitness.core.options import Part, PathRole, declared, map_paths
from ragwitness.membership.task import AuditTask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ragwitness.core.types import Audit, Document
    from ragwitness.membership.pilot import Pilot


_QUESTIONS = {
    "target": "Which system shall be audited? (URL or lab:FILE)",
    "documents": "Which documents are in question?",
    "known_out": "Which documents of the same source and kind can it not hold? (20 at least, 100"
    " are good)",
}


def init(
    given: Annotated[Mapping[str, Any], Part(AuditTask)],
    out: Annotated[Path, PathRole.WRITES] = Path("run.toml"),
    replace: bool = False,
    json_out: JsonPath = None,
    sample: Sample = None,
) -> None:
    """Prepare a first audit, and write the file that runs it.

    It asks on the terminal for what you do not give as an option, checks the documents and the
    target, and says what the audit will cost. It sends a few harmless queries to the target, as
    ragwitness doctor does. The audit itself begins with the command that it prints at the end.
    In a browser, ragwitness view asks the same questions and begins the audit.

    Args:
        out: The file of options that is written.
        replace: Replace the file if it is there already.
    """
    from ragwitness.cli.common import console, leave, print_lines, say_error, write_json_file
    from ragwitness.cli.doctor import AT_ONCE, admitted, examine
    from ragwitness.cli.plan import assumed, configs_of, counted, foresee
    from ragwitness.cli.steps import wait
    from ragwitness.core.options import write_options
    from ragwitness.membership.assumptions import likeness
    from ragwitness.membership.auto_select import AUTO, choose
    from ragwitness.membership.forecast import OutlookPlan
    from ragwitness.membership.pilot import run_pilot
    from ragwitness.membership.results.examination import RESULT_TYPE, Examination
    from ragwitness.models.model_registry import load_language_model
    from ragwitness.targets.resolve import open_target

    screen = console()
    if out.exists() and not replace:
        raise InputError(
            f"{out} is there already.", "Choose another file with --out, or add --replace."
        )
    # 1. Questions, for what no option says.
    answers: dict[str, Any] = dict(given)
    for name, question in _QUESTIONS.items():
        if answers[name] is None:
            answers[name] = _asked(f"--{name.replace('_', '-')}", question, screen)
    task = AuditTask(**answers)
    # 2. The documents: can they be read, what can so many decide, are both sets of one kind?
    order = task.order(say_error)
    plan, budget, target = order.plan, order.budget, order.target
    named = task.method if task.method != AUTO else None
    told, doubtful = order.beforehand()
    # 3. The target: what it can do, measured.
    options = dataclasses.replace(order.reach, retries=1).transport(AT_ONCE)
    found = wait(examine(target, options))
    possible, _ = admitted(found.capabilities)
    if named is not None and named.partition(":")[0] not in possible:
        raise CapabilityError(
            f"The target does not admit {named}.",
            f"It admits: {', '.join(possible) or 'no audit'}.",
        )
    # 4. The method, by the target, the documents and the caps; its price, and what it could find.
    choice = None
    tried: list[Pilot] = []
    if named is None:

        async def piloting(audit: Audit, known: Sequence[Document]) -> Pilot:
            opened = await open_target(target, options)
            try:
                tried.append(await run_pilot(opened, None, None, audit, known))
                return tried[-1]
            finally:
                await opened.close()

        own = load_language_model(order.proxy)
        try:
            choice = wait(choose(plan, found, own, budget, piloting))
        except CapabilityError:  # what was heard says why
            if json_out is not None:
                write_json_file(json_out, {"tried": _heard(tried)})
            raise
    chosen = named or (choice.method if choice else "")
    configs = {chosen: order.config} if named else configs_of([chosen], {})
    asked = OutlookPlan(plan, assumed(configs), budget=budget, **counted(sample, 1))
    outlook = foresee(asked, configs, order.proxy, found.latency)
    leave(outlook)
    why = choice.why if choice else f"{chosen} was asked for."
    screen.print(f"target admits: {', '.join(possible)}; taken: {chosen}. {why}", markup=False)
    # What so many documents decide stands with the price; here, whether both are of one kind.
    said = told[1:] or (likeness(plan.documents, plan.known_out).told,)
    for line in said:
        screen.print(line[:1].upper() + line[1:], markup=False)
    # 5. The file, and what to do with it.
    place = partial(_from, out.resolve().parent)
    options_of = dict(written(dataclasses.replace(task, method=chosen), place))
    write_options(out, options_of, "ragwitness init")
    if json_out is not None:
        checked = RESULT_TYPE.dump(Examination(found, tuple(possible), {}, outlook)) | {
            "queries_spent": choice.asked if choice else found.requests,
            "method": chosen,
            "why": why,
            "decides": told[0],
            "alike": list(said),
            "doubtful": doubtful,
            "documents": len(plan.documents),
            "known_out": len(plan.known_out),
            "known_in": len(plan.known_in),
            "tried": _heard(tried),
        }
        write_json_file(json_out, checked)
    yes = " --yes" if doubtful else ""
    print_lines(
        screen,
        f"\n{out} is written. Nothing of the audit was sent. Go on with:\n",
        f"ragwitness audit --config {out} --dry-run",
        f"ragwitness audit --config {out}{yes}",
    )


def _heard(tried: Sequence[Pilot]) -> list[dict[str, object]]:
    """What each pilot showed, with some of its questions and answers, as JSON."""
    return [
        {"method": one.method, "possible": one.possible, "told": one.told, "asked": one.heard}
        for one in tried
    ]


def _asked(option: str, question: str, screen: Console) -> str:
    """Return an answer of whoever sits at the terminal.

    Raises:
        InputError: Nobody does.
    """
    if not (sys.stdin.isatty() and screen.is_terminal):
        raise InputError(
            f"{option} is missing, and nobody can be asked.", "Give it on the command line."
        )
    answer: str = typer.prompt(question)
    return answer.strip()


def written(task: AuditTask, place: Callable[[str], str]) -> Iterator[tuple[str, object]]:
    """Yield what a file of options holds of a task: what is not as always, and the method.

    Args:
        task: What was asked for.
        place: Returns a path as the file names it.
    """
    for one in declared(AuditTask):
        value, role = getattr(task, one.name), one.mark(PathRole)
        if value == one.default and one.name not in ("method", "alpha"):
            continue
        if role is not None and value is not None:
            value = map_paths(role, str(value), place)
        yield one.option.lstrip("-"), value


def _from(folder: Path, path: str) -> str:
    """A path as a file of options in a folder names it."""
    found = Path(path).expanduser()
    return os.path.relpath(found.resolve(), folder) if found.exists() else path
