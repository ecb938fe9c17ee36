"""What every index offers, and the order of hits that all of them keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Metric: TypeAlias = Literal["l2", "ip"]


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved passage.

    Attributes:
        index: Its position among the passages the index was built from.
        score: Higher is nearer: BM25, inner product, or negative L2 distance.
    """

    index: int
    score: float


class Index(Protocol):
    """Retrieval over a fixed list of passages."""

    @property
    def name(self) -> str:
        """What is in use, for people."""

    def __len__(self) -> int: ...

    def search(self, query: str, k: int) -> list[Hit]:
        """Return at most ``k`` hits, nearest first, ties in order of the passages.

        A blank query finds nothing; an approximate index may miss a hit.
        """


class VectorStore(Protocol):
    """Vectors in order of arrival, searched by a metric that is fixed when it is made.

    Whatever the library behind it calls a score, a hit's is the inner product (``"ip"``) or the
    negative Euclidean distance (``"l2"``, not squared). Searches may run side by side.
    """

    @property
    def name(self) -> str:
        """The kind with every parameter that decides what is found, without the metric."""

    def __len__(self) -> int: ...

    def add(self, vectors: NDArray[np.float32]) -> None:
        """Append vectors, shape (n, dim); their positions go on from those before."""

    def search(self, vector: NDArray[np.float32], k: int) -> list[Hit]:
        """Return at most ``k`` hits, nearest first, ties by position.

        An exact store misses none; an approximate one may, but its scores are exact.

        Args:
            vector: What is searched for, shape (dim,).
            k: Hits wanted.
        """


def best(scores: NDArray[np.float32], k: int) -> list[Hit]:
    """Return the ``k`` highest scores, ties by position, without sorting them all.

    Args:
        scores: One per passage, shape (n,).
        k: Hits wanted; fewer where there are fewer scores.
    """
    k = min(k, len(scores))
    if k < 1:
        return []
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    candidates = np.flatnonzero(scores >= least)
    order = candidates[np.argsort(-scores[candidates], kind="stable")][:k]
    return [Hit(int(i), float(scores[i])) for i in order]


def settled(fetch: Callable[[int], list[Hit]], k: int, size: int) -> list[Hit]:
    """Return the ``k`` nearest in the order the protocol promises.

    Libraries order ties as they like, so more is fetched until the last tie is complete.

    Args:
        fetch: Asks the library for so many hits, at most ``size``.
        k: Hits wanted.
        size: Vectors stored.
    """
    k = min(k, size)
    if k < 1:
        return []
    asked = min(k + 1, size)
    while True:
        hits = sorted(fetch(asked), key=lambda hit: (-hit.score, hit.index))
        if asked == size or len(hits) <= k or hits[-1].score < hits[k - 1].score:
            return hits[:k]
        asked = min(2 * asked, size)


# The default: every vector is compared, in numpy.


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
        # |a - b|^2 = |a|^2 - 2 a.b + |b|^2; rounding may push it below 0.
        squared = self._squares - 2 * inner + vector @ vector
        return best(-np.sqrt(np.maximum(squared, 0.0)), k)
