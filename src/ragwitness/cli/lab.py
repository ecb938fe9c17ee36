"""``ragwitness lab``: a RAG system of your own to audit."""

from __future__ import annotations

from typing import Annotated

import typer

from ragwitness.cli.config import Configurable

__all__ = ["app"]

app = typer.Typer(
    help="A RAG system of your own to audit.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def _lab() -> None:
    """Keep ``serve`` a verb of its own."""


@app.command("serve", cls=Configurable)
def serve(
    corpus: Annotated[
        str | None,
        typer.Option(
            help="Its database: JSONL, CSV or a folder of text. With --no-retrieve it may be left"
            " out: then the generator hf:NAME is served alone."
        ),
    ] = None,
    port: Annotated[int, typer.Option(help="0 takes a free one and prints it.")] = 8000,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    retrieval: Annotated[
        str, typer.Option(help="lexical, minilm, hf:NAME or URL#MODEL (embeddings endpoint).")
    ] = "lexical",
    metric: Annotated[str, typer.Option(help="Of dense retrieval: l2 or ip.")] = "l2",
    index: Annotated[
        str,
        typer.Option(help="Of dense retrieval: exact, faiss-flat, faiss-hnsw, chroma or qdrant."),
    ] = "exact",
    generator: Annotated[str, typer.Option(help="reader or hf:NAME.")] = "reader",
    template: Annotated[
        str, typer.Option(help="plain, defended (S-RAG, Fig. 3), … or FILE.toml.")
    ] = "plain",
    k: Annotated[int, typer.Option(help="Passages per query.")] = 4,
    chunk_words: Annotated[int, typer.Option(help="Longest passage in words.")] = 200,
    retrieve: Annotated[bool, typer.Option(help="--no-retrieve answers without passages.")] = True,
    defense: Annotated[
        str,
        typer.Option(
            help="none, prompt, paraphrase, rewrite, rerank, summarize, threshold:X,"
            " mirabel[:RHO]; several joined by +."
        ),
    ] = "none",
    originals: Annotated[
        str | None,
        typer.Option(help="Find each document by the text with its id here, and show its own."),
    ] = None,
    paragraphs: Annotated[
        bool, typer.Option("--paragraphs", help="Each paragraph of a text file is a document.")
    ] = False,
    text_field: Annotated[
        str | None, typer.Option(help="Field or column that holds the text.")
    ] = None,
) -> None:
    """Serve a RAG system over CORPUS as an OpenAI-compatible endpoint."""
    from ragwitness.cli.common import (
        console,
        lab_target,
        one_thread_per_answer,
        rag_config,
        read_documents,
    )
    from ragwitness.errors import InputError
    from ragwitness.lab import bare_target, originals_of
    from ragwitness.rag.serve import serve as serve_lab

    if corpus is None and retrieve:
        raise InputError("There is no corpus to retrieve from.", "Give --corpus or --no-retrieve.")
    if corpus is None and (defense != "none" or template != "plain"):
        raise InputError("A model served alone has no template and no defense.", "Give --corpus.")
    config = rag_config(
        k=k,
        retrieval=retrieval,
        metric=metric,
        index=index,
        generator=generator,
        template=template,
        retrieve=retrieve,
        chunk_words=chunk_words,
    )
    one_thread_per_answer()
    if corpus is None:
        system = bare_target(generator).system
    else:
        documents = read_documents(corpus, text_field, paragraphs=paragraphs)
        found_by = None if originals is None else originals_of(originals, text_field)
        system = lab_target(documents, config, defense, found_by).system
    screen = console()
    for label, value in system.describe().items():
        screen.print(f"{label:<24}{value}", markup=False)
    serve_lab(system, host=host, port=port)
