"""``ragwitness owner``: does this provider hold my collection?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ragwitness.runs import CollectionResult

__all__ = ["owner"]


def owner(
    target: Annotated[str, typer.Argument(help="lab:FILE or the base URL of an endpoint.")],
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
    concurrency: Annotated[int, typer.Option(help="Documents and requests in flight.")] = 4,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for an answer.")] = 120.0,
    key_env: Annotated[
        str | None,
        typer.Option(help="Variable with the API key; OPENAI_API_KEY for api.openai.com alone."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the order of the documents.")] = 0,
    run: Annotated[
        Path | None, typer.Option(help="Run folder; the same one resumes.", show_default="by input")
    ] = None,
    json_out: Annotated[Path | None, typer.Option("--json", help="Also write JSON here.")] = None,
) -> None:
    """Ask about a collection's documents, one by one, until the evidence suffices.

    The e-value may be looked at, and the audit stopped, at any time. It says that the collection
    is not like the documents known to be outside; not which of its documents is inside.
    """
    from ragwitness.cli.common import key_values, read_documents, run_folder
    from ragwitness.cli.finish import check_writable, with_target
    from ragwitness.membership.registry import configure
    from ragwitness.runs import AuditPlan, run_collection
    from ragwitness.targets import TransportOptions

    config = configure(method, key_values(options or ()))
    plan = AuditPlan(
        documents=read_documents(documents),
        known_out=read_documents(known_out),
        auxiliary=read_documents(auxiliary) if auxiliary is not None else (),
        alpha=alpha,
        in_flight=concurrency,
    )
    if json_out is not None:
        check_writable(json_out)
    folder = run_folder(run, "owner", target, plan, method, config, proxy, seed)
    transport = TransportOptions(read_timeout=timeout, concurrency=concurrency, key_env=key_env)
    result = with_target(
        target,
        transport,
        (method, config, proxy),
        folder,
        lambda opened, audit, progress: run_collection(
            plan, opened, audit, seed=seed, run=folder, progress=progress
        ),
    )
    _show(result, folder, json_out)


def _show(result: CollectionResult, folder: Path, json_out: Path | None) -> None:
    import json
    import math

    from ragwitness.cli.common import console

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
        "path": list(evidence.path),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for path in (folder / "result.json", json_out):
        if path is not None:
            path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
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
            f"{result.difference.p_value:.2g}"
            if result.difference
            else "only where all are asked about",
        ),
        ("asked about", f"{result.asked} of {result.documents} documents"),
        ("unscorable", str(evidence.unscorable)),
        ("known outside", str(result.known_out)),
        ("queries", f"{result.queries:,}, {result.seconds:.0f} s"),
    ):
        screen.print(f"{label:<24}{value}", markup=False, soft_wrap=True)
    screen.print(
        "It rests on the --known-out documents being of the same source, date and kind.",
        markup=False,
        soft_wrap=True,
    )
    screen.print(f"result: {folder / 'result.json'}", markup=False, soft_wrap=True)
