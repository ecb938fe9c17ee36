"""``ragwitness lab``: a RAG system of your own to audit."""

from __future__ import annotations

from typing import Annotated

from ragwitness.core.options import PathRole
from ragwitness.runner.task_options import (
    Generator,
    HowRead,
    Paragraphs,
    PassagesPerQuery,
    Retrieval,
    Template,
)


def serve(
    corpus: Annotated[str | None, PathRole.DOCUMENTS] = None,
    port: int = 8000,
    host: str = "127.0.0.1",
    retrieval: Retrieval = "lexical",
    metric: str = "l2",
    generator: Generator = "reader",
    template: Template = "plain",
    k: PassagesPerQuery = 4,
    chunk_words: int = 200,
    retrieve: bool = True,
    defense: str = "none",
    originals: Annotated[str | None, PathRole.DOCUMENTS] = None,
    paragraphs: Paragraphs = False,
    *,
    how: HowRead,
) -> None:
    """Serve a RAG system over a corpus.

    It answers as an OpenAI-compatible endpoint, which any verb can audit.

    Args:
        corpus: The documents of the system: a JSONL or CSV file, or a folder of text files. With
            --no-retrieve it may be left out; then the generator is served alone.
        port: The port; 0 takes a free one and prints it.
        host: The address to listen on.
        metric: The metric of dense retrieval: l2 or ip.
        chunk_words: The number of words of the longest passage.
        retrieve: Show passages to the generator, or let it answer without any.
        defense: The defense before the system: none, prompt, paraphrase or mirabel[:RHO]; several
            are joined by +.
        originals: Other texts with the ids of the documents: each document is found by the text
            with its id here, and shown as it is.
    """
    from dataclasses import asdict

    from ragwitness.cli.common import console, one_thread_per_answer, say_error
    from ragwitness.core.errors import InputError
    from ragwitness.rag.lab import bare_target, lab_target, originals_of, rag_config
    from ragwitness.rag.server import serve as serve_lab
    from ragwitness.runner.task_runtime import as_documents

    # Options that exclude each other are refused before a model is loaded.
    if corpus is None and retrieve:
        raise InputError("There is no corpus to retrieve from.", "Give --corpus or --no-retrieve.")
    if corpus is None and (defense != "none" or template != "plain"):
        raise InputError("A model served alone has no template and no defense.", "Give --corpus.")
    config = rag_config(
        k=k,
        retrieval=retrieval,
        metric=metric,
        generator=generator,
        template=template,
        retrieve=retrieve,
        chunk_words=chunk_words,
    )
    one_thread_per_answer()
    # A model alone: the target for audits of a model without an index.
    if corpus is None:
        system = bare_target(generator).system
    else:
        documents = as_documents(corpus, how, note=say_error, paragraphs=paragraphs)
        # Substitutes found by their originals: usefulness and leaks of texts, with retrieval held
        # equal.
        found_by = None if originals is None else originals_of(originals, **asdict(how))
        system = lab_target(documents, config, defense, found_by).system
    screen = console()
    for label, value in system.describe().items():
        screen.print(f"{label:<24}{value}", markup=False)
    serve_lab(system, host=host, port=port)
