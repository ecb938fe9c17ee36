"""``ragwitness compare``: what other data in a corpus's place buys in privacy and costs in use."""

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
from ragwitness.cli.outputs import JsonPath

__all__ = ["compare"]


def compare(
    corpus: Annotated[
        str, typer.Argument(help="The private records, as for ragwitness audit --documents.")
    ],
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="NAME=FILE",
            help="Texts that stand for the records, under their ids; may be repeated.",
        ),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            help="Make them on the spot: redact, keywords[:K], with --model any method of"
            " ragwitness synthesize; or zero-shot, no texts at all. May be repeated.",
        ),
    ] = None,
    defenses: Annotated[
        list[str] | None,
        typer.Option("--defense", help="The records behind a defense; see ragwitness lab serve."),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            help='JSONL rows {"question", "answer": text or list}, about nothing private; default:'
            " the fields question and answer of records held out."
        ),
    ] = None,
    held_out: Annotated[
        int | None,
        typer.Option(
            help="Records in no index: background, and questions. Default: a tenth, at most 100;"
            " none with --questions and --background."
        ),
    ] = None,
    utility: Annotated[bool, typer.Option(help="--no-utility measures privacy alone.")] = True,
    judge: Annotated[
        str | None,
        typer.Option(help="Chat model of yours that judges answers, addressed like a target."),
    ] = None,
    attacks: Annotated[
        str, typer.Option(help="all, or names with commas between; see ragwitness leak.")
    ] = "composite",
    prompts: Annotated[int, typer.Option(help="Most prompts of each attack.")] = 100,
    answer_tokens: Annotated[int, typer.Option(help="Most tokens of an answer.")] = 256,
    information: Annotated[
        str | None, typer.Option(help="Public texts to cut prompts from; default: generated.")
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option("--set", help="ATTACK.NAME=VALUE of its configuration; may be repeated."),
    ] = None,
    background: Annotated[
        str | None,
        typer.Option(help="Texts like the corpus that no index holds; default: the held out."),
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
    retrieval: Annotated[
        str, typer.Option(help="lexical, minilm, hf:NAME or URL#MODEL (embeddings endpoint).")
    ] = "lexical",
    retrieve_by: Annotated[
        str,
        typer.Option(
            help="own: a text is found by itself; original: by the private record, as in SAGE."
        ),
    ] = "own",
    generator: Annotated[str, typer.Option(help="reader or hf:NAME.")] = "reader",
    k: Annotated[int, typer.Option(help="Passages per query; 1 in SAGE.")] = 1,
    template: Annotated[
        str, typer.Option(help="How passages are shown; see ragwitness lab serve.")
    ] = "plain",
    embedder: Annotated[
        str | None,
        typer.Option(help="Also likeness in meaning; the judge's too (minilm if not given)."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Chat model of methods that ask one. It sees the records.")
    ] = None,
    domain: Annotated[
        str, typer.Option(help="What the records are: auto, medical, wiki or a .toml file.")
    ] = "auto",
    rounds: Annotated[int, typer.Option(help="Most versions of a record that are judged.")] = 3,
    pii: Annotated[
        str, typer.Option(help="Who finds contact details: presidio, contacts, none, or auto.")
    ] = "auto",
    seed: Annotated[int, typer.Option(help="Of the split, the prompts and the resampling.")] = 0,
    text_field: Annotated[
        str | None, typer.Option(help="Field or column that holds the text.")
    ] = None,
    run: RunPath = None,
    json_out: JsonPath = None,
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
    """Show privacy against usefulness of a corpus's substitutes.

    Each is indexed in a RAG system in this process, attacked with the same prompts and asked the
    same questions; leaks are counted against the original records. Caps and prices are those of
    the chat models (--model, --judge).
    """
    from ragwitness.cli.common import rag_config, read_documents, run_folder
    from ragwitness.cli.compare_plan import Making, chosen, material_of, preview
    from ragwitness.cli.compare_run import ask, show
    from ragwitness.cli.leaking import attacks_of, names_of
    from ragwitness.cli.outputs import Outputs, files_of_run
    from ragwitness.extraction.attacks import Limits
    from ragwitness.rag.embedders import load_embedder
    from ragwitness.runs import Budget
    from ragwitness.runs.comparison import ComparisonPlan
    from ragwitness.runs.order import Reach

    wanted = chosen(given or (), methods or (), defenses or (), model, retrieve_by)
    budget = Budget(max_queries, max_tokens, max_cost, price_in, price_out)
    reach = Reach(timeout, retries, key_env)
    limits = Limits(prompts, answer_tokens, seed)
    material = material_of(
        corpus,
        text_field,
        held_out,
        seed,
        questions,
        background,
        (secrets, decoys),
        contacts=contacts,
        utility=utility,
    )
    public = [one.text for one in read_documents(information)] if information else []
    made = attacks_of(names_of(attacks, None), limits, sorted(options or ()), public)
    rag = rag_config(k=k, retrieval=retrieval, generator=generator, template=template)
    making = Making(model, domain, rounds, pii, seed, concurrency, reach)
    given_too = (attacks, sorted(options or ()), public, model, domain, rounds, pii, judge)
    folder = run_folder(run, "compare", corpus, material, wanted, limits, rag, given_too)
    if dry_run:
        preview(wanted, material, made, limits, judge, making, folder, budget)
        return
    files = [path for _, path in wanted.files]
    Outputs(json_out).check([*files_of_run(folder), corpus, secrets, decoys, questions, *files])
    # Whatever cannot be loaded must be known before anything is spent.
    named = load_embedder(embedder) if embedder else None
    plan = ComparisonPlan(
        material, made, prompts, answer_tokens, rag, wanted.by_original, seed, named
    )
    judging = None if judge is None else (judge, named or load_embedder("minilm"))
    result = ask(plan, wanted, making, judging, folder, budget)
    show(result, folder / "report.html", [folder / "result.json", json_out])
