"""Qdrant in this process, without a server: its local mode compares every vector."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import import_extra
from ragwitness.rag.index.base import Hit, Metric, settled

_COLLECTION = "passages"


class QdrantStore:
    """A collection in memory; see :class:`~.base.VectorStore`.

    Args:
        metric: Distance of the search.

    Raises:
        MissingExtraError: The client is not installed.
    """

    name = "Qdrant (local)"

    def __init__(self, metric: Metric) -> None:
        self._qdrant = import_extra("qdrant_client", "The Qdrant index", "qdrant")
        self._metric = metric
        self._client: Any = self._qdrant.QdrantClient(":memory:")
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, vectors: NDArray[np.float32]) -> None:
        """Append vectors, shape (n, dim)."""
        if not self._size:
            self._create(vectors.shape[1])
        ids = range(self._size, self._size + len(vectors))
        # Ids are places in the list of passages, so that a hit needs no payload.
        self._client.upload_collection(_COLLECTION, vectors=vectors, ids=ids, wait=True)
        self._size += len(vectors)

    def search(self, vector: NDArray[np.float32], k: int) -> list[Hit]:
        """Return the ``k`` nearest of all."""
        return settled(lambda asked: self._fetch(vector, asked), k, self._size)

    def _create(self, dim: int) -> None:
        distances = self._qdrant.models.Distance
        distance = distances.EUCLID if self._metric == "l2" else distances.DOT
        # The collection is made with the first vectors, which tell the dimension.
        params = self._qdrant.models.VectorParams(size=dim, distance=distance)
        self._client.create_collection(_COLLECTION, vectors_config=params)

    def _fetch(self, vector: NDArray[np.float32], k: int) -> list[Hit]:
        reply = self._client.query_points(_COLLECTION, query=vector, limit=k, with_payload=False)
        # Higher is nearer everywhere in this package; a distance says it the other way round.
        sign = -1.0 if self._metric == "l2" else 1.0  # Qdrant's score is the distance itself
        return [Hit(int(point.id), sign * point.score) for point in reply.points]
