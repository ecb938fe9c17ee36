"""Builds a RAG system from documents, loading what its settings name."""

from __future__ import annotations

from collections.abc import Iterable

from ragwitness.models.base import Embedder, LanguageModel
from ragwitness.rag.chunk import chunk_documents
from ragwitness.rag.config import RagConfig
from ragwitness.rag.index import DenseIndex, Index, LexicalIndex
from ragwitness.rag.pipeline import RagSystem
from ragwitness.types import Document

__all__ = ["build_system"]


def build_system(
    documents: Iterable[Document],
    config: RagConfig | None = None,
    *,
    generator: LanguageModel | None = None,
    embedder: Embedder | None = None,
) -> RagSystem:
    """Chunk and index documents, and put a generator before them.

    Args:
        documents: The database.
        config: Settings; the defaults where None.
        generator: Used instead of loading ``config.generator``.
        embedder: Used instead of loading ``config.retrieval``; ignored in lexical
            retrieval.

    Raises:
        InputError: No document holds text, or a setting is unusable.
        MissingExtraError: The index or a model needs an extra that is not installed.
        ModelError: A model cannot be loaded.
        TargetError: The embeddings endpoint does not answer.
    """
    config = config or RagConfig()
    passages = chunk_documents(documents, config.chunk_words, config.chunk_overlap)
    texts = [passage.text for passage in passages]
    index: Index
    if config.retrieval == "lexical":
        index = LexicalIndex(texts)
    else:
        embedder = embedder or _load_embedder(config.retrieval)
        index = DenseIndex(texts, embedder, config.metric, config.index)
    return RagSystem(passages, index, generator or _load_generator(config.generator), config)


def _load_embedder(spec: str) -> Embedder:
    from ragwitness.rag.embedders import load_embedder

    return load_embedder(spec)


def _load_generator(spec: str) -> LanguageModel:
    from ragwitness.models.registry import load_language_model

    return load_language_model(spec)
