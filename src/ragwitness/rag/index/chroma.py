"""Chroma in this process: an HNSW graph in memory, nothing on disk, nothing sent anywhere."""

from __future__ import annotations

import uuid
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import import_extra
from ragwitness.rag.index.base import Hit, Metric, settled

# As for FAISS, so that the two differ in nothing but the library (Chroma's own: 16, 100, 100).
_LINKS = 32
_KEPT_BUILDING = 200
_KEPT_SEARCHING = 64


class ChromaStore:
    """A collection in memory, approximate; see :class:`~.base.VectorStore`.

    Vectors are always given, so Chroma never loads an embedding model of its own.

    Args:
        metric: Distance of the search.

    Raises:
        MissingExtraError: Chroma is not installed.
    """

    name = f"Chroma HNSW (M={_LINKS} efConstruction={_KEPT_BUILDING} efSearch={_KEPT_SEARCHING})"

    def __init__(self, metric: Metric) -> None:
        chromadb = import_extra("chromadb", "The Chroma index", "chroma")
        # In memory, whatever a ``.env`` file nearby says.
        settings = chromadb.config.Settings(
            _env_file=None, anonymized_telemetry=False, chroma_otel_collection_endpoint=""
        )
        self._client = chromadb.EphemeralClient(settings)
        self._metric = metric
        self._size = 0
        # All in-memory clients of a process share their collections.
        name = f"ragwitness-{uuid.uuid4().hex}"
        graph = {
            "space": metric,
            "max_neighbors": _LINKS,
            "ef_construction": _KEPT_BUILDING,
            "ef_search": _KEPT_SEARCHING,
            "num_threads": 1,  # more would link the graph in the order in which they come
        }
        self._collection: Any = self._client.create_collection(
            name, embedding_function=None, configuration={"hnsw": graph}
        )
        weakref.finalize(self, self._client.delete_collection, name)

    def __len__(self) -> int:
        return self._size

    def add(self, vectors: NDArray[np.float32]) -> None:
        """Append vectors, shape (n, dim)."""
        most = self._client.get_max_batch_size()
        for at in range(0, len(vectors), most):
            batch = vectors[at : at + most]
            ids = [str(self._size + i) for i in range(len(batch))]
            self._collection.add(ids=ids, embeddings=batch)
            self._size += len(batch)

    def search(self, vector: NDArray[np.float32], k: int) -> list[Hit]:
        """Return the ``k`` nearest that Chroma finds."""
        return settled(lambda asked: self._fetch(vector, asked), k, self._size)

    def _fetch(self, vector: NDArray[np.float32], k: int) -> list[Hit]:
        reply = self._collection.query(
            query_embeddings=vector[None], n_results=k, include=["distances"]
        )
        distances = np.asarray(reply["distances"][0])
        # Chroma's "l2" is the square, its "ip" one minus the product.
        scores = -np.sqrt(np.maximum(distances, 0.0)) if self._metric == "l2" else 1 - distances
        return [
            Hit(int(at), score) for at, score in zip(reply["ids"][0], scores.tolist(), strict=True)
        ]
