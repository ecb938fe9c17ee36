"""Stores by name; each is imported when it is opened."""

from __future__ import annotations

from ragwitness.errors import InputError
from ragwitness.rag.index.base import Metric, VectorStore

__all__ = ["STORES", "check_store", "open_store"]

STORES = ("exact", "faiss-flat", "faiss-hnsw", "chroma", "qdrant")
"""What may keep the vectors of dense retrieval."""


def check_store(name: str) -> None:
    """Refuse a name that no store has.

    Raises:
        InputError: There is no such store.
    """
    if name not in STORES:
        raise InputError(f"There is no index {name!r}.", f"Use one of: {', '.join(STORES)}.")


def open_store(name: str, metric: Metric) -> VectorStore:
    """Return an empty store.

    Args:
        name: One of :data:`STORES`.
        metric: Distance of its searches.

    Raises:
        InputError: There is no such store.
        MissingExtraError: Its library is not installed.
    """
    check_store(name)
    if name == "chroma":
        from ragwitness.rag.index.chroma import ChromaStore

        return ChromaStore(metric)
    if name == "qdrant":
        from ragwitness.rag.index.qdrant import QdrantStore

        return QdrantStore(metric)
    if name.startswith("faiss"):
        from ragwitness.rag.index.faiss import FaissFlatStore, FaissHnswStore

        return FaissFlatStore(metric) if name == "faiss-flat" else FaissHnswStore(metric)
    from ragwitness.rag.index.exact import ExactStore

    return ExactStore(metric)
