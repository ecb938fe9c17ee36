"""Meaning: vectors of an embedder, in a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import InputError
from ragwitness.kit.registry import Listing, Registry
from ragwitness.models.base import Embedder
from ragwitness.rag.index.base import Hit, Metric, VectorStore

_HERE = "ragwitness.rag.index"
STORES = Registry(
    "index",
    {
        "exact": Listing(f"{_HERE}.base:ExactStore"),
        "faiss-flat": Listing(f"{_HERE}.faiss:FaissFlatStore"),
        "faiss-hnsw": Listing(f"{_HERE}.faiss:FaissHnswStore"),
        "chroma": Listing(f"{_HERE}.chroma:ChromaStore"),
        "qdrant": Listing(f"{_HERE}.qdrant:QdrantStore"),
    },
)
"""What may keep the vectors of dense retrieval."""

INDEXES = Registry("index", {**STORES, "tantivy": Listing(f"{_HERE}.tantivy:TantivyIndex")})
"""What ``index`` may name: those of vectors, and that of words which lies on disk."""


_EMBED_BATCH = 64


class DenseIndex:
    """Search over the vectors of passages.

    Args:
        texts: The passages.
        embedder: Maps passages and queries to vectors.
        metric: ``"l2"`` (Euclidean distance) or ``"ip"`` (inner product).
        store: What keeps and searches the vectors, one of
            :data:`~ragwitness.rag.index.dense.STORES`.

    Raises:
        InputError: Unknown metric or store.
        MissingExtraError: The store's library is not installed.
    """

    def __init__(
        self, texts: Sequence[str], embedder: Embedder, metric: Metric = "l2", store: str = "exact"
    ) -> None:
        if metric not in get_args(Metric):
            raise InputError(f"Unknown metric {metric!r}.", "Use 'l2' or 'ip'.")
        self._embedder = embedder
        self._metric = metric
        # The store first: embedding may take minutes, and its library may be missing.
        self._store: VectorStore = STORES.load(store)(metric)
        if texts:
            self._store.add(_embed(texts, embedder))

    @property
    def name(self) -> str:
        """What is in use, for people."""
        return f"{self._store.name} {self._metric.upper()} over {self._embedder.name}"

    def __len__(self) -> int:
        return len(self._store)

    def search(self, query: str, k: int) -> list[Hit]:
        """Return at most ``k`` hits, nearest first; see :class:`~.base.Index`."""
        if not len(self) or not query.strip():
            return []
        return self.search_vector(self._embedder.embed([query])[0], k)

    def search_vector(self, vector: NDArray[np.float32], k: int) -> list[Hit]:
        """Search with a vector, shape (dim,)."""
        return self._store.search(vector, k)


def _embed(texts: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
    """Vectors in the order of the texts, shape (n, dim)."""
    # Batches of like length waste no padding; the order is restored afterwards.
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    rows: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(texts)
    # Vectors go back to the places of their texts.
    for at in range(0, len(order), _EMBED_BATCH):
        batch = order[at : at + _EMBED_BATCH]
        for i, vector in zip(batch, embedder.embed([texts[i] for i in batch]), strict=True):
            rows[i] = vector
    return np.stack(rows)
