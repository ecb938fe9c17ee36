"""``ragwitness audit``: are these documents in that system's database?"""

from __future__ import annotations

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
from ragwitness.cli.outputs import FailOn, JsonlPath, JsonPath, JUnitPath, ParquetPath
from ragwitness.cli.spread import EngineName, Gpus, Prepare, RayAddress, Workers

__all__ = ["audit"]


def audit(
    target: Annotated[str, typer.Argument(help=TARGET)],
    documents: Annotated[
        str,
        typer.Option(help="Documents in question: JSONL, CSV, a folder of text, or pasted text."),
    ],
    method: Annotated[
        str,
        typer.Option(
            help="s-rag, mba, rag-mia, s2mia, min-k, min-k++, interrogation, dcmi, menta or twin."
        ),
    ] = "s-rag",
    mode: Annotated[
        str | None,
        typer.Option(help="s-rag: single, one query per passage; probing, one per probe word."),
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE of the method's configuration; may be repeated."),
    ] = None,
    known_out: Annotated[
        str | None, typer.Option(help="Documents known to be outside, like those in question.")
    ] = None,
    known_in: Annotated[
        str | None, typer.Option(help="Documents known to be inside; without them few say out.")
    ] = None,
    auxiliary: Annotated[
        str | None, typer.Option(help="Documents for the shadow system; default: generated.")
    ] = None,
    alpha: Annotated[float, typer.Option(help="Level of the verdicts.")] = 0.05,
    run: RunPath = None,
    json_out: JsonPath = None,
    jsonl_out: JsonlPath = None,
    parquet_out: ParquetPath = None,
    junit_out: JUnitPath = None,
    fail_on: FailOn = None,
    text_field: Annotated[
        str | None, typer.Option(help="Field or column that holds the text.")
    ] = None,
    paragraphs: Annotated[
        bool, typer.Option("--paragraphs", help="Each paragraph of a text file is a document.")
    ] = False,
    retrieval: Annotated[
        str, typer.Option(help="Shadow retrieval: lexical, minilm or hf:NAME.")
    ] = "lexical",
    generator: Annotated[str, typer.Option(help="Shadow generator: reader or hf:NAME.")] = "reader",
    k: Annotated[int, typer.Option(help="Passages per query in the shadow system.")] = 4,
    proxy: Annotated[str, typer.Option(help="Model that ranks words by difficulty.")] = "reader",
    features: Annotated[
        str | None, typer.Option(help="s-rag: frequencies (ours) or counts (as published).")
    ] = None,
    automl: Annotated[bool, typer.Option(help="Train the classifier with AutoGluon.")] = False,
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
    seed: Annotated[int, typer.Option(help="Of the auxiliary split.")] = 0,
    engine: EngineName = "local",
    workers: Workers = 4,
    worker_gpus: Gpus = 0.0,
    ray_address: RayAddress = None,
    prepare_only: Prepare = False,
) -> None:
    """Audit documents against a RAG system. Prints verdicts, writes an HTML report.

    Query only systems you are allowed to query; see RESPONSIBLE_USE.md.
    """
    from dataclasses import replace

    from ragwitness.cli.caps import preview
    from ragwitness.cli.common import (
        console,
        key_values,
        rag_config,
        read_documents,
        run_folder,
    )
    from ragwitness.cli.finish import finish, perform
    from ragwitness.cli.outputs import Outputs, files_of_run
    from ragwitness.cli.spread import Engine, prepare, spread
    from ragwitness.membership.registry import configure
    from ragwitness.membership.srag import ShadowConfig
    from ragwitness.report.gate import parse_conditions
    from ragwitness.runs import AuditPlan, Budget, Governor, Pace
    from ragwitness.runs.order import Order, Reach
    from ragwitness.targets import open_target
    from ragwitness.types import Document

    wanted = parse_conditions(fail_on or ())
    outputs = Outputs(json_out, jsonl_out, parquet_out, junit_out, wanted)
    named = {"mode": mode, "features": features}
    chosen = {key: value for key, value in named.items() if value is not None}
    by = Engine(engine, workers, worker_gpus, ray_address)
    budget = Budget(max_queries, max_tokens, max_cost, price_in, price_out)
    pace = Pace.up_to(concurrency)
    config = configure(method, {**chosen, **key_values(options or ())})

    def read(source: str | None) -> tuple[Document, ...]:
        return (
            read_documents(source, text_field, paragraphs=paragraphs) if source is not None else ()
        )

    plan = AuditPlan(
        documents=read(documents),
        known_out=read(known_out),
        known_in=read(known_in),
        auxiliary=read(auxiliary),
        alpha=alpha,
        shadow=ShadowConfig(
            rag=rag_config(k=k, retrieval=retrieval, generator=generator), seed=seed
        ),
        automl=automl,
        in_flight=concurrency,
    )
    # How many at a time decides no answer: another --concurrency resumes the same run.
    folder = run_folder(run, target, replace(plan, in_flight=1), method, config, proxy)
    if dry_run:
        preview(plan, method, config, proxy, folder, budget)
        return
    outputs.check([*files_of_run(folder), documents, known_out, known_in, auxiliary])
    screen = console()
    reach = Reach(timeout, retries, key_env)
    order = Order(target, plan, method, config, proxy, reach, budget)
    if prepare_only:
        prepare(order, folder, screen)
        return
    if by.name != "local":
        finish(spread(order, folder, by, screen), folder, screen, outputs)
        return
    with Governor.of_run(folder, budget, pace) as governor:
        opening = open_target(target, reach.transport(concurrency, governor.setback))
        result = perform(plan, opening, method, config, proxy, folder, screen, governor)
    finish(result, folder, screen, outputs)
