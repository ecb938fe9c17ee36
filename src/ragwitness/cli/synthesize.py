"""``ragwitness synthesize``: data that may stand in a private corpus's place."""

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

__all__ = ["synthesize"]


def synthesize(
    corpus: Annotated[
        str, typer.Argument(help="The private records, as for ragwitness audit --documents.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where the synthetic records go, as JSONL.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="sage, stage-1, paraphrase, paraphrase-checklist, zerogen, attrprompt; without a"
            " model: redact, keywords; with or without: private-evolution, which is differentially"
            " private."
        ),
    ] = "sage",
    model: Annotated[
        str | None,
        typer.Option(
            help="Chat model that writes, addressed like a target, e.g. openai/MODEL or"
            " http://host:port/v1#MODEL. It is shown the records, except by private-evolution."
        ),
    ] = None,
    domain: Annotated[
        str, typer.Option(help="What the records are: auto, medical, wiki or a .toml file.")
    ] = "auto",
    rounds: Annotated[
        int,
        typer.Option(
            help="Most versions of a record that are judged; private-evolution: rounds of votes."
        ),
    ] = 3,
    epsilon: Annotated[
        float | None,
        typer.Option(help="private-evolution: of the whole output, for one record more or less."),
    ] = None,
    delta: Annotated[
        float, typer.Option(help="private-evolution: far below 1 / number of records.")
    ] = 1e-6,
    public: Annotated[
        Path | None,
        typer.Option(help="private-evolution: texts that are no secret, to choose from or vary."),
    ] = None,
    texts: Annotated[int, typer.Option(help="private-evolution: most texts to make.")] = 50,
    secrets: Annotated[
        Path | None, typer.Option(help='Known secrets, JSONL rows {"text", "kind", "record"}.')
    ] = None,
    contacts: Annotated[
        bool, typer.Option("--contacts", help="Contact details in the corpus are secrets too.")
    ] = False,
    longest_run: Annotated[
        int, typer.Option(help="Withhold a text with so many tokens in a row of any record.")
    ] = 8,
    common: Annotated[
        int, typer.Option(help="Runs in so many records may be shared; 0: none may.")
    ] = 0,
    rouge: Annotated[float, typer.Option(help="Highest ROUGE-L F1 with any record.")] = 0.5,
    cosine: Annotated[
        float | None, typer.Option(help="Highest cosine with any record, by --embedder.")
    ] = None,
    embedder: Annotated[
        str,
        typer.Option(help="minilm, hf:NAME or URL#MODEL; private-evolution also words, no model."),
    ] = "minilm",
    pii: Annotated[
        str,
        typer.Option(help="Who finds contact details: presidio, contacts, none, or auto."),
    ] = "auto",
    k: Annotated[int, typer.Option(help="keywords: records that a word must stand in.")] = 10,
    answer_tokens: Annotated[int, typer.Option(help="Most tokens of an answer.")] = 1024,
    temperature: Annotated[float, typer.Option(help="Of the model.")] = 0.6,
    attempts: Annotated[
        int, typer.Option(help="Times a question is asked while no answer can be used.")
    ] = 2,
    seed: Annotated[int, typer.Option(help="Of the model, and of what is drawn.")] = 0,
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
    """Make synthetic records from a private corpus. What breaks a condition is withheld.

    Each record that passes shares no long run of words with any record (redact copies), no known
    secret and no contact detail. It may still tell a fact in other words: measure with
    ragwitness leak. private-evolution looks at no condition on the records; its output depends on
    them by noisy votes alone, within --epsilon and --delta.
    """
    from ragwitness.cli.common import load_saying, run_folder
    from ragwitness.cli.outputs import Outputs, files_of_run
    from ragwitness.cli.privately import check_options, only_run, private_of
    from ragwitness.cli.synthesizing import (
        conclude,
        guard_of,
        make,
        method_of,
        preview,
        secrets_of,
    )
    from ragwitness.defenses.synthetic.asking import Asking
    from ragwitness.defenses.synthetic.guard import GuardConfig
    from ragwitness.errors import InputError
    from ragwitness.runs import Budget, Governor, Pace
    from ragwitness.runs.order import Reach

    budget = Budget(max_queries, max_tokens, max_cost, price_in, price_out)
    reach = Reach(timeout, retries, key_env)
    asking = Asking(answer_tokens, temperature, attempts, seed)
    conditions = GuardConfig(longest_run, common, rouge, cosine, pii)
    check_options(method, corpus, epsilon, public, looks=contacts or secrets is not None)
    loaded = load_saying(corpus, text_field)
    known = secrets_of(secrets, loaded.documents, contacts=contacts)
    private = private_of(epsilon, delta, texts, rounds, public, embedder, text_field, model)
    chosen = method_of(method, domain, rounds, asking, known, pii, k, model, private)
    folder = run_folder(
        run, "synthesize", loaded.documents, chosen.describe(), model, conditions, known
    )
    if run is None and private is not None:
        folder = only_run(folder)
    if dry_run:
        preview(chosen, len(loaded.documents), folder, budget)
        return
    Outputs(json_out).check([*files_of_run(folder), corpus, secrets, public], out=out)
    if out is not None and out.exists() and not out.is_file():
        raise InputError(f"--out {out} is a device, not a file.", "Choose another.")
    with Governor.of_run(folder, budget, Pace.up_to(concurrency)) as governor:
        guard = guard_of(method, loaded.documents, known, conditions, embedder)
        transport = reach.transport(concurrency, governor.setback)
        result = make(loaded.documents, chosen, guard, model, transport, folder, governor)
    conclude(result, loaded.skipped, folder, out, json_out)
