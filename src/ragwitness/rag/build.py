"""Builds a RAG system from documents, loading what its settings name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.models.base import Embedder, LanguageModel
from ragwitness.rag.chunk import Passage, chunk_documents
from ragwitness.rag.config import RagConfig
from ragwitness.rag.index.dense import DenseIndex
from ragwitness.rag.index.interface import Index
from ragwitness.rag.index.lexical import LexicalIndex
from ragwitness.rag.pipeline import RagSystem


def build_system(
    documents: Iterable[Document],
    config: RagConfig | None = None,
    *,
    generator: LanguageModel | None = None,
    embedder: Embedder | None = None,
    originals: Mapping[str, str] | None = None,
) -> RagSystem:
    """Chunk and index documents, and put a generator before them.

    Args:
        documents: The database.
        config: Settings; the defaults where None.
        generator: Used instead of loading ``config.generator``.
        embedder: Used instead of loading ``config.retrieval``; ignored in lexical
            retrieval.
        originals: Texts by id that documents are found by in place of their own: SAGE finds a
            record by the original's vector and shows its synthetic text (Sec. 3, "when the
            original data is identified, the corresponding synthetic data is returned"). The
            index then holds the originals.

    Raises:
        InputError: No document holds text, a setting is unusable, or an original is missing.
        MissingExtraError: A model needs an extra that is not installed.
        ModelError: A model cannot be loaded.
        TargetError: The embeddings endpoint does not answer.
    """
    config = config or RagConfig()
    # 1. Documents become passages. 2. Their keys, which are found, may differ from their text,
    # which is shown. 3. Index and generator are loaded last: a mistake above costs no model.
    passages = chunk_documents(documents, config.chunk_words, config.chunk_overlap)
    if originals is not None:
        passages = _found_by(originals, passages)
    texts = [passage.text if passage.key is None else passage.key for passage in passages]
    index: Index
    if config.retrieval == "lexical":
        index = LexicalIndex(texts)
    else:
        from ragwitness.models.model_registry import load_embedder

        embedder = embedder or load_embedder(config.retrieval)
        index = DenseIndex(texts, embedder, config.metric)
    return RagSystem(passages, index, generator or _load_generator(config.generator), config)


def _load_generator(spec: str) -> LanguageModel:
    from ragwitness.models.model_registry import load_language_model

    return load_language_model(spec)


def _found_by(originals: Mapping[str, str], passages: Sequence[Passage]) -> list[Passage]:
    """Give every passage its whole original as key."""
    if unknown := sorted({one.document for one in passages} - set(originals)):
        raise InputError(
            f"{len(unknown)} documents have no original, the first {unknown[0]!r}.",
            "Give texts under the ids of their originals, or let them be found by their own text.",
        )
    return [replace(one, key=originals[one.document]) for one in passages]
