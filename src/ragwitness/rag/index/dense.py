"""Meaning: vectors of an embedder, in a store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragwitness.kit.registry import Listing, Registry
from ragwitness.models.base import Embedder
from ragwitness.rag.index.base import Hit, Metric, best
from ragwitness.rag.index.faiss import FaissFlatStore, FaissHnswStore

_EMBED_BATCH = 64


class ExactStore:
    """All vectors in one matrix, every one compared, in numpy: the default.

    Whatever a library calls a score, a hit's is the inner product (``"ip"``) or the negative
    Euclidean distance (``"l2"``, not squared). Every store may be searched by several threads.

    Args:
        metric: Distance of the search.
    """

    name = "exact"

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._vectors = np.empty((0, 0), np.float32)
        self._squares = np.empty(0, np.float32)

    def __len__(self) -> int:
        return len(self._vectors)

    def add(self, vectors: NDArray[np.float32]) -> None:
        """Append vectors, shape (n, dim); their positions go on from those before."""
        self._vectors = np.concatenate([self._vectors, vectors]) if len(self) else vectors
        self._squares = np.einsum("nd,nd->n", self._vectors, self._vectors)

    def search(self, vector: NDArray[np.float32], k: int) -> list[Hit]:
        """Return at most ``k`` hits, nearest first, ties by position.

        Args:
            vector: What is searched for, shape (dim,).
            k: Hits wanted.
        """
        if not len(self):
            return []
        inner = self._vectors @ vector
        if self._metric == "ip":
            return best(inner, k)
        # |a - b|^2 = |a|^2 - 2 a.b + |b|^2; rounding may push it below 0.
        squared = self._squares - 2 * inner + vector @ vector
        return best(-np.sqrt(np.maximum(squared, 0.0)), k)


STORES = Registry(
    "index",
    {
        "exact": Listing(ExactStore),
        "faiss-flat": Listing(FaissFlatStore),
        "faiss-hnsw": Listing(FaissHnswStore),
    },
)
"""What may keep the vectors of dense retrieval."""


class DenseIndex:
    """Search over the vectors of passages.

    Args:
        texts: The passages.
        embedder: Maps passages and queries to vectors.
        metric: ``"l2"`` (Euclidean distance) or ``"ip"`` (inner product).
        store: What keeps and searches the vectors, one of
            :data:`~ragwitness.rag.index.dense.STORES`.

    Raises:
        InputError: Unknown store.
        MissingExtraError: FAISS is not installed.
    """

    def __init__(
        self, texts: Sequence[str], embedder: Embedder, metric: Metric = "l2", store: str = "exact"
    ) -> None:
        self._embedder = embedder
        self._metric = metric
        # The store first: embedding may take minutes, and its library may be missing.
        self._store: ExactStore | FaissFlatStore = STORES.load(store)(metric)
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
        return self._store.search(self._embedder.embed([query])[0], k)


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
