"""``ragwitness owner``: does this provider hold my collection?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragwitness.cli.caps import (
    Concurrency,
    DryRun,
    KeyEnv,
    MaxCost,
    MaxQueries,
    MaxTokens,
    PriceIn,
    PriceOut,
    Retries,
    RunPath,
    Timeout,
)
from ragwitness.cli.common import TARGET
from ragwitness.cli.outputs import JsonPath

if TYPE_CHECKING:
    from ragwitness.runs import CollectionResult

__all__ = ["owner"]


def owner(
    target: Annotated[str, typer.Argument(help=TARGET)],
    documents: Annotated[str, typer.Option(help="The collection.")],
    known_out: Annotated[
        str, typer.Option(help="Documents known to be outside, of the same source and kind.")
    ],
    method: Annotated[str, typer.Option(help="As in ragwitness audit --method.")] = "mba",
    options: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE of the method's configuration; may be repeated."),
    ] = None,
    alpha: Annotated[float, typer.Option(help="Level of the statement.")] = 0.05,
    auxiliary: Annotated[
        str | None, typer.Option(help="Documents for the shadow system, where there is one.")
    ] = None,
    proxy: Annotated[str, typer.Option(help="The auditor's own model.")] = "reader",
    concurrency: Concurrency = 4,
    max_queries: MaxQueries = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    dry_run: DryRun = False,
    timeout: Timeout = 120.0,
    retries: Retries = 5,
    key_env: KeyEnv = None,
    seed: Annotated[int, typer.Option(help="Of the order of the documents.")] = 0,
    run: RunPath = None,
    json_out: JsonPath = None,
    text_field: Annotated[
        str | None, typer.Option(help="Field or column that holds the text.")
    ] = None,
    paragraphs: Annotated[
        bool, typer.Option("--paragraphs", help="Each paragraph of a text file is a document.")
    ] = False,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Exit with 3 where the collection is in, or inconclusive. May be repeated.",
        ),
    ] = None,
) -> None:
    """Ask about a whole collection until the evidence suffices.

    Its documents are asked about one by one. The e-value may be looked at, and the audit stopped,
    at any time. It says that the collection is not like the documents known to be outside; not
    which of its documents is inside.
    """
    from dataclasses import replace

    from ragwitness.cli.caps import preview
    from ragwitness.cli.common import console, key_values, read_documents, run_folder
    from ragwitness.cli.finish import with_target
    from ragwitness.cli.outputs import Outputs, files_of_run, leave
    from ragwitness.membership.registry import configure
    from ragwitness.report.gate import parse_collection_conditions, rule_collection
    from ragwitness.runs import AuditPlan, Budget, Governor, Pace, run_collection
    from ragwitness.runs.order import Reach

    wanted = parse_collection_conditions(fail_on or ())
    budget = Budget(max_queries, max_tokens, max_cost, price_in, price_out)
    pace, reach = Pace.up_to(concurrency), Reach(timeout, retries, key_env)
    config = configure(method, key_values(options or ()))
    plan = AuditPlan(
        documents=read_documents(documents, text_field, paragraphs=paragraphs),
        known_out=read_documents(known_out, text_field, paragraphs=paragraphs),
        auxiliary=read_documents(auxiliary) if auxiliary is not None else (),
        alpha=alpha,
        in_flight=concurrency,
    )
    same = replace(plan, in_flight=1)  # another --concurrency resumes the same run
    folder = run_folder(run, "owner", target, same, method, config, proxy, seed)
    if dry_run:
        preview(plan, method, config, proxy, folder, budget)
        return
    Outputs(json_out).check([*files_of_run(folder), documents, known_out, auxiliary])
    with Governor.of_run(folder, budget, pace) as governor:
        result = with_target(
            target,
            reach.transport(concurrency, governor.setback),
            (method, config, proxy),
            folder,
            lambda opened, audit, progress: run_collection(
                plan, opened, audit, seed=seed, run=folder, progress=progress, governor=governor
            ),
            governor,
        )
    _show(result, folder, json_out)
    leave(rule_collection(result.decided, wanted), console())


def _show(result: CollectionResult, folder: Path, json_out: Path | None) -> None:
    import json
    import math
    from dataclasses import asdict

    from ragwitness.cli.common import console
    from ragwitness.report.view import spent_text
    from ragwitness.report.writing import write_text

    evidence = result.evidence
    data = {
        "method": result.method,
        "target": result.target,
        "alpha": result.alpha,
        "decided": result.decided,
        "e_value": evidence.e_value if math.isfinite(evidence.e_value) else None,
        "log10_e": evidence.log10_e,
        "p_value": evidence.p_value,
        "permutation_p_value": result.difference.p_value if result.difference else None,
        "documents_asked": result.asked,
        "documents": result.documents,
        "unscorable": evidence.unscorable,
        "known_out": result.known_out,
        "queries": result.queries,
        "seconds": result.seconds,
        "spent": asdict(result.spent),
        "path": list(evidence.path),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for path in (folder / "result.json", json_out):
        if path is not None:
            write_text(path, json.dumps(data, indent=1) + "\n")
    verdict = (
        f"The collection is not like documents outside (level {result.alpha:g})."
        if result.decided
        else "Not decided: the collection may be outside, or more documents are needed."
    )
    screen = console()
    screen.print(verdict, markup=False, soft_wrap=True)
    for label, value in (
        ("e-value", f"10^{evidence.log10_e:.1f} (decides at {1 / result.alpha:g})"),
        ("anytime-valid p", f"{evidence.p_value:.2g}"),
        (
            "permutation p",
            f"{result.difference.p_value:.2g} (says no more; the e-value alone decides)"
            if result.difference
            else "only where all are asked about",
        ),
        ("asked about", f"{result.asked} of {result.documents} documents"),
        ("unscorable", str(evidence.unscorable)),
        ("known outside", str(result.known_out)),
        ("queries", f"{result.queries:,}, {result.seconds:.0f} s"),
        ("spent", spent_text(result.spent)),
        *((("stopped", _stopped(result)),) if result.spent.stopped_by else ()),
    ):
        screen.print(f"{label:<24}{value}", markup=False, soft_wrap=True)
    screen.print(
        "It rests on the --known-out documents being of the same source, date and kind.",
        markup=False,
        soft_wrap=True,
    )
    screen.print(f"result: {folder / 'result.json'}", markup=False, soft_wrap=True)


def _stopped(result: CollectionResult) -> str:
    from ragwitness.runs.budget import OPTIONS

    cap = result.spent.stopped_by or ""
    return f"{cap} cap reached; the same command with a higher {OPTIONS[cap]} resumes"
