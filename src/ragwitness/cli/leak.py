"""``ragwitness leak``: what can be got out of that system, and how much of it is private?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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

__all__ = ["leak"]

_EXAMPLES = 3


def leak(
    target: Annotated[str | None, typer.Argument(help=TARGET)] = None,
    corpus: Annotated[
        str, typer.Option(help="The private records, as for ragwitness audit --documents.")
    ] = "",
    transcripts: Annotated[
        Path | None,
        typer.Option(help="Score these stored transcripts instead; nothing is asked."),
    ] = None,
    attacks: Annotated[
        str,
        typer.Option(
            help="all, or names with commas between: composite, composite-conditions,"
            " composite-contacts, pide, thief, pirates, benign, crawler."
        ),
    ] = "composite",
    target_information: Annotated[
        str | None,
        typer.Option(help="What composite prompts aim at: conditions or contacts; else nothing."),
    ] = None,
    prompts: Annotated[int, typer.Option(help="Most prompts of each attack.")] = 250,
    answer_tokens: Annotated[int, typer.Option(help="Most tokens of an answer.")] = 256,
    information: Annotated[
        str | None, typer.Option(help="Public texts to cut prompts from; default: generated.")
    ] = None,
    background: Annotated[
        str | None,
        typer.Option(help="Texts like the corpus that the target does not hold: what chance is."),
    ] = None,
    secrets: Annotated[
        Path | None, typer.Option(help='Known secrets, JSONL rows {"text", "kind", "record"}.')
    ] = None,
    decoys: Annotated[
        Path | None, typer.Option(help="Made like the secrets and put nowhere; same rows.")
    ] = None,
    contacts: Annotated[
        bool, typer.Option("--contacts", help="Contact details in the corpus are secrets too.")
    ] = False,
    embedder: Annotated[
        str | None,
        typer.Option(help="Also likeness in meaning: minilm, hf:NAME or URL#MODEL."),
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option("--set", help="ATTACK.NAME=VALUE of its configuration; may be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the prompts and the resampling.")] = 0,
    run: RunPath = None,
    json_out: JsonPath = None,
    examples: Annotated[
        bool, typer.Option(help="Show a few leaked answers in the report, behind a fold.")
    ] = True,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help='Exit with 3 where a measure is over a bound: "repeat records > 0",'
            ' "secrets >= 1%", "coverage > .05". May be repeated.',
        ),
    ] = None,
    text_field: Annotated[
        str | None, typer.Option(help="Field or column of the corpus that holds the text.")
    ] = None,
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
) -> None:
    """Attack a RAG system; measure how much of its corpus leaks.

    Published counts stand beside corrected ones, each with n, interval and what unrelated text
    gives by chance. Query only systems you are allowed to query; see RESPONSIBLE_USE.md.
    """
    from ragwitness.cli.common import read_documents, run_folder
    from ragwitness.cli.leaked import conclude
    from ragwitness.cli.leaking import (
        attacks_of,
        check_source,
        names_of,
        plan_of,
        preview_leak,
        put,
        settings_of,
    )
    from ragwitness.cli.outputs import Outputs, files_of_run
    from ragwitness.extraction.attacks import Limits
    from ragwitness.extraction.transcript import read_transcripts
    from ragwitness.rag.embedders import load_embedder
    from ragwitness.report.leak_gate import parse_leak_conditions
    from ragwitness.runs import Budget, Governor, Pace
    from ragwitness.runs.order import Reach

    wanted = parse_leak_conditions(fail_on or ())
    check_source(target, transcripts, corpus)
    names, given = names_of(attacks, target_information), sorted(options or ())
    limits = Limits(prompts, answer_tokens, seed)
    budget = Budget(max_queries, max_tokens, max_cost, price_in, price_out)
    reach = Reach(timeout, retries, key_env)
    texts = [one.text for one in read_documents(information)] if information else []
    made = [] if transcripts else attacks_of(names, limits, given, texts)
    folder = run_folder(run, "leak", target, transcripts, corpus, names, limits, given, information)
    if dry_run:
        preview_leak(made, limits, folder, budget)
        return
    files = (corpus, background, secrets, decoys, information, transcripts)
    Outputs(json_out).check([*files_of_run(folder), *files])
    plan = plan_of(
        read_documents(corpus, text_field),
        read_documents(background, text_field) if background else (),
        (secrets, decoys),
        contacts=contacts,
        seed=seed,
    )
    # Whatever cannot be loaded must be known before anything is spent.
    model = load_embedder(embedder) if embedder else None
    asked = None
    if transcripts is None:
        with Governor.of_run(folder, budget, Pace.up_to(concurrency)) as governor:
            transport = reach.transport(concurrency, governor.setback)
            asked = put(str(target), transport, made, limits, folder, governor)
    conclude(
        asked.transcripts if asked else read_transcripts(Path(str(transcripts))),
        plan,
        model,
        asked,
        settings_of(made, limits, corpus=corpus, background=background, transcripts=transcripts),
        folder,
        json_out,
        _EXAMPLES if examples else 0,
        wanted,
    )
