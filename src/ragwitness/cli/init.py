"""``ragwitness init``: the questions that an audit needs answered, and a file that runs it."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwitness.cli.options import (
    Caps,
    ConcurrencyIfAny,
    Headers,
    HowRead,
    JsonPath,
    KeyEnv,
    Paragraphs,
    Sample,
    Timeout,
)
from ragwitness.cli.paths import map_paths
from ragwitness.errors import CapabilityError, InputError
from ragwitness.kit.options import Opt, PathRole
from ragwitness.types import ANSWER_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ragwitness.audits.pilot import Pilot
    from ragwitness.types import Audit, Document


def init(
    target: Annotated[str | None, PathRole.ADDRESS] = None,
    documents: Annotated[str | None, PathRole.DOCUMENTS] = None,
    known_out: Annotated[str | None, PathRole.DOCUMENTS] = None,
    method: Annotated[
        str | None,
        Opt(shown="auto, which chooses by what the target, the documents and the caps admit"),
    ] = None,
    alpha: float = 0.05,
    *,
    caps: Caps,
    concurrency: ConcurrencyIfAny = None,
    out: Annotated[Path, PathRole.WRITES] = Path("run.toml"),
    replace: bool = False,
    json_out: JsonPath = None,
    sample: Sample = None,
    timeout: Timeout = ANSWER_SECONDS,
    key_env: KeyEnv = None,
    header: Headers = None,
    how: HowRead,
    paragraphs: Paragraphs = False,
) -> None:
    """Prepare a first audit, and write the file that runs it.

    It asks on the terminal for what you do not give as an option, checks the documents and the
    target, and says what the audit will cost. It sends a few harmless queries to the target, as
    ragwitness doctor does. The audit itself begins with the command that it prints at the end.
    In a browser, ragwitness view asks the same questions and begins the audit.

    Args:
        target: The system to audit: a URL, lab:FILE, or another address.
        documents: The documents in question.
        known_out: Documents like those, which the system cannot hold.
        method: The audit.
        alpha: The share of wrong accusations that is accepted.
        out: The file of options that is written.
        replace: Replace the file if it is there already.
    """
    from ragwitness.audits.assumptions import likeness
    from ragwitness.audits.choice import AUTO, USUAL, choose
    from ragwitness.audits.forecast import OutlookPlan
    from ragwitness.audits.order import Order, Reach
    from ragwitness.audits.pilot import run_pilot
    from ragwitness.audits.plan import AuditPlan
    from ragwitness.cli.common import console, print_lines, read_documents, write_json_file
    from ragwitness.cli.doctor import AT_ONCE, admitted, examine
    from ragwitness.cli.plan import assumed, configs_of, counted, foresee
    from ragwitness.cli.steps import wait
    from ragwitness.kit.option_file import write_options
    from ragwitness.models.registry import load_language_model
    from ragwitness.report.forecast import forecast_json, forecast_terminal
    from ragwitness.targets.resolve import open_target

    screen = console()
    if out.exists() and not replace:
        raise InputError(
            f"{out} is there already.", "Choose another file with --out, or add --replace."
        )
    # 1. Questions, for what no option says.
    target = _asked(target, "--target", "Which system shall be audited? (URL or lab:FILE)", screen)
    documents = _asked(documents, "--documents", "Which documents are in question?", screen)
    known_out = _asked(
        known_out,
        "--known-out",
        "Which documents of the same source and kind can it not hold? (20 at least, 100 are good)",
        screen,
    )
    # 2. The documents: can they be read, what can so many decide, are both sets of one kind?
    mine, known = (
        read_documents(source, how, paragraphs=paragraphs) for source in (documents, known_out)
    )
    plan = AuditPlan(mine, known, alpha=alpha)
    budget = caps.budget()
    named = method if method != AUTO else None
    wanted = configs_of([named or USUAL[0]], {})
    told, doubtful = Order(target, plan, *next(iter(wanted.items()))).beforehand()
    # 3. The target: what it can do, measured.
    options = Reach(timeout, 1, key_env, tuple(header or ())).transport(AT_ONCE)
    found = wait(examine(target, options))
    possible, _ = admitted(found.capabilities)
    if named is not None and named.partition(":")[0] not in possible:
        raise CapabilityError(
            f"The target does not admit {named}.",
            f"It admits: {', '.join(possible) or 'no audit'}.",
        )
    # 4. The method, by the target, the documents and the caps; its price, and what it could find.
    choice = None
    if named is None:

        async def piloting(audit: Audit, known: Sequence[Document]) -> Pilot:
            opened = await open_target(target, options)
            try:
                return await run_pilot(opened, None, None, audit, known)
            finally:
                await opened.close()

        own = load_language_model("reader")
        choice = wait(choose(plan, found, own, budget, piloting))
    chosen = named or (choice.method if choice else "")
    configs = configs_of([chosen], {})
    asked = OutlookPlan(plan, assumed(configs), budget=budget, **counted(sample, 1))
    outlook = foresee(asked, configs, "reader", found.latency)
    screen.print(forecast_terminal(outlook))
    why = choice.why if choice else f"{chosen} was asked for."
    screen.print(f"target admits: {', '.join(possible)}; taken: {chosen}. {why}", markup=False)
    # What so many documents decide stands with the price; here, whether both are of one kind.
    said = told[1:] or (likeness(mine, known).told,)
    for line in said:
        screen.print(line[:1].upper() + line[1:], markup=False)
    # 5. The file, and what to do with it.
    place = partial(_from, out.resolve().parent)
    options_of = {
        "target": map_paths(PathRole.ADDRESS, target, place),
        "documents": map_paths(PathRole.DOCUMENTS, documents, place),
        "known-out": map_paths(PathRole.DOCUMENTS, known_out, place),
        "method": chosen,
        "alpha": alpha,
        "max-queries": caps.max_queries,
        "max-tokens": caps.max_tokens,
        "max-cost": caps.max_cost,
        "price-in": caps.price_in,
        "price-out": caps.price_out,
        "concurrency": concurrency,
        "key-env": key_env,
        "header": header,
        "text-field": how.text_field,
        "encoding": how.encoding,
        "paragraphs": paragraphs or None,
    }
    write_options(out, options_of, "ragwitness init")
    if json_out is not None:
        checked = {
            "target": found.target,
            "capabilities": sorted(found.capabilities),
            "seconds_per_answer": found.latency,
            "queries_spent": choice.asked if choice else found.requests,
            "notes": list(found.notes),
            "audits": possible,
            "method": chosen,
            "why": why,
            "decides": told[0],
            "alike": list(said),
            "doubtful": doubtful,
            "documents": len(mine),
            "known_out": len(known),
            "forecast": forecast_json(outlook),
        }
        write_json_file(json_out, checked)
    yes = " --yes" if doubtful else ""
    print_lines(
        screen,
        f"\n{out} is written. Nothing of the audit was sent. Go on with:\n",
        f"ragwitness audit --config {out} --dry-run",
        f"ragwitness audit --config {out}{yes}",
    )


def _asked(given: str | None, option: str, question: str, screen: Console) -> str:
    """Return an answer from the command line, else from whoever sits at the terminal.

    Raises:
        InputError: There is neither.
    """
    if given is not None:
        return given
    if not (sys.stdin.isatty() and screen.is_terminal):
        raise InputError(
            f"{option} is missing, and nobody can be asked.", "Give it on the command line."
        )
    answer: str = typer.prompt(question)
    return answer.strip()


def _from(folder: Path, path: str) -> str:
    """A path as a file of options in a folder names it."""
    found = Path(path).expanduser()
    return os.path.relpath(found.resolve(), folder) if found.exists() else path
