"""The default: every vector is compared, in numpy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ragwitness.rag.index.base import Hit, Metric, best

__all__ = ["ExactStore"]


class ExactStore:
    """All vectors in one matrix; see :class:`~.base.VectorStore`.

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
        """Append vectors, shape (n, dim)."""
        self._vectors = np.concatenate([self._vectors, vectors]) if len(self) else vectors
        self._squares = np.einsum("nd,nd->n", self._vectors, self._vectors)

    def search(self, vector: NDArray[np.float32], k: int) -> list[Hit]:
        """Return the ``k`` nearest of all."""
        if not len(self):
            return []
        inner = self._vectors @ vector
        if self._metric == "ip":
            return best(inner, k)
        squared = self._squares - 2 * inner + vector @ vector
        return best(-np.sqrt(np.maximum(squared, 0.0)), k)
