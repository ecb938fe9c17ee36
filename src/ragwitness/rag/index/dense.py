"""Meaning: vectors of an embedder, every one compared, in numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragwitness.models.base import Embedder
from ragwitness.rag.index.interface import Hit, Metric, best

_EMBED_BATCH = 64


class DenseIndex:
    """Search over the vectors of passages, all in one matrix; several threads may search.

    A hit's score is the inner product (``"ip"``) or the negative Euclidean distance (``"l2"``,
    not squared).

    Args:
        texts: The passages.
        embedder: Maps passages and queries to vectors.
        metric: ``"l2"`` (Euclidean distance) or ``"ip"`` (inner product).
    """

    def __init__(self, texts: Sequence[str], embedder: Embedder, metric: Metric = "l2") -> None:
        self._embedder, self._metric = embedder, metric
        self._vectors = _embed(texts, embedder) if texts else np.empty((0, 0), np.float32)
        self._squares = np.einsum("nd,nd->n", self._vectors, self._vectors)

    @property
    def name(self) -> str:
        """What is in use, for people."""
        return f"exact {self._metric.upper()} over {self._embedder.name}"

    def __len__(self) -> int:
        return len(self._vectors)

    def search(self, query: str, k: int) -> list[Hit]:
        """Return at most ``k`` hits, nearest first; see :class:`~.base.Index`."""
        if not len(self) or not query.strip():
            return []
        vector = self._embedder.embed([query])[0]
        inner = self._vectors @ vector
        if self._metric == "ip":
            return best(inner, k)
        # |a - b|^2 = |a|^2 - 2 a.b + |b|^2; rounding may push it below 0.
        squared = self._squares - 2 * inner + vector @ vector
        return best(-np.sqrt(np.maximum(squared, 0.0)), k)


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
