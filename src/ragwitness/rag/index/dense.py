"""Meaning: vectors of an embedder, in a store of ours or of FAISS (Douze et al. 2024)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import import_extra
from ragwitness.kit.registry import Listing, Registry
from ragwitness.models.base import Embedder
from ragwitness.rag.index.base import Hit, Metric, best

_EMBED_BATCH = 64
# Malkov & Yashunin 2018 (arXiv 1603.09320): M links per vector, and how many candidates are kept
# while the graph is built and searched.
_LINKS = 32
_KEPT_BUILDING = 200
_KEPT_SEARCHING = 64


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


class FaissFlatStore:
    """``IndexFlat``, exact; answers as :class:`ExactStore`.

    Args:
        metric: Distance of the search.

    Raises:
        MissingExtraError: FAISS is not installed.
    """

    name = "FAISS flat"

    def __init__(self, metric: Metric) -> None:
        self._faiss = import_extra("faiss", "The FAISS index", "faiss")
        self._metric = metric
        self._index: Any = None

    def __len__(self) -> int:
        return 0 if self._index is None else int(self._index.ntotal)

    def add(self, vectors: NDArray[np.float32]) -> None:
        """Append vectors, shape (n, dim)."""
        if self._index is None:
            l2 = self._metric == "l2"
            kind = self._faiss.METRIC_L2 if l2 else self._faiss.METRIC_INNER_PRODUCT
            self._index = self._new(vectors.shape[1], kind)
        with self._one_thread():
            self._index.add(np.ascontiguousarray(vectors, np.float32))

    def search(self, vector: NDArray[np.float32], k: int) -> list[Hit]:
        """Return the ``k`` nearest that FAISS finds."""
        row = np.ascontiguousarray(vector, np.float32)[None]
        k = min(k, len(self))
        if k < 1:
            return []
        # FAISS orders ties as it likes, so more is fetched until the last tie is complete.
        asked = min(k + 1, len(self))
        while True:
            hits = sorted(self._fetch(row, asked), key=lambda hit: (-hit.score, hit.index))
            if asked == len(self) or len(hits) <= k or hits[-1].score < hits[k - 1].score:
                return hits[:k]
            asked = min(2 * asked, len(self))

    def _new(self, dim: int, metric: int) -> Any:
        """Return an empty index of FAISS."""
        return self._faiss.IndexFlat(dim, metric)

    def _look(self, row: NDArray[np.float32], k: int) -> Any:
        """FAISS's own reply: values and positions, each of shape (1, k)."""
        return self._index.search(row, k)

    def _fetch(self, row: NDArray[np.float32], k: int) -> list[Hit]:
        values, positions = self._look(row, k)
        # FAISS gives squared distances, and -1 for what it did not find.
        scores = -np.sqrt(np.maximum(values[0], 0.0)) if self._metric == "l2" else values[0]
        pairs = zip(positions[0].tolist(), scores.tolist(), strict=True)
        return [Hit(at, score) for at, score in pairs if at >= 0]

    @contextmanager
    def _one_thread(self) -> Iterator[None]:
        """Threads would link a graph in the order in which they come."""
        before = self._faiss.omp_get_max_threads()
        self._faiss.omp_set_num_threads(1)
        try:
            yield
        finally:
            self._faiss.omp_set_num_threads(before)


class FaissHnswStore(FaissFlatStore):
    """``IndexHNSWFlat``: approximate; may miss a near vector, but never mistakes a distance."""

    name = f"FAISS HNSW (M={_LINKS} efConstruction={_KEPT_BUILDING} efSearch={_KEPT_SEARCHING})"

    def _new(self, dim: int, metric: int) -> Any:
        index = self._faiss.IndexHNSWFlat(dim, _LINKS, metric)
        index.hnsw.efConstruction = _KEPT_BUILDING
        return index

    def _look(self, row: NDArray[np.float32], k: int) -> Any:
        if k == len(self):  # the graph saves nothing, and might not lead everywhere
            return self._index.storage.search(row, k)
        kept = self._faiss.SearchParametersHNSW(efSearch=max(k, _KEPT_SEARCHING))
        return self._index.search(row, k, params=kept)


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
