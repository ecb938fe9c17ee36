"""Finds the passages nearest to a query: by words (BM25) or by vectors (exact)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import InputError
from ragwitness.models.base import Embedder
from ragwitness.rag.words import index_words

__all__ = ["DenseIndex", "Hit", "Index", "LexicalIndex", "Metric"]

Metric: TypeAlias = Literal["l2", "ip"]

_EMBED_BATCH = 64


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

        A blank query finds nothing.
        """


class LexicalIndex:
    """BM25 over words (bm25s, Lucene's variant); passages that share no word are no hits.

    No stop words are taken out: their inverse document frequency makes them light, and a
    query of stop words alone still finds something.

    Args:
        texts: The passages.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        words = [index_words(text) for text in texts]
        self._size = len(words)
        # bm25s cannot index a vocabulary without words.
        self._bm25 = _build_bm25(words) if any(words) else None

    @property
    def name(self) -> str:
        """What is in use, for people."""
        return "lexical (BM25)"

    def __len__(self) -> int:
        return self._size

    def search(self, query: str, k: int) -> list[Hit]:
        """Return at most ``k`` hits, nearest first; see :class:`Index`."""
        words = index_words(query)
        if self._bm25 is None or not words:
            return []
        scores: NDArray[np.float32] = self._bm25.get_scores(words)
        return [hit for hit in _top(scores, k) if hit.score > 0]


class DenseIndex:
    """Exact search over vectors.

    Args:
        texts: The passages.
        embedder: Maps passages and queries to vectors.
        metric: ``"l2"`` (Euclidean distance) or ``"ip"`` (inner product).

    Raises:
        InputError: Unknown metric.
    """

    def __init__(self, texts: Sequence[str], embedder: Embedder, metric: Metric = "l2") -> None:
        if metric not in get_args(Metric):
            raise InputError(f"Unknown metric {metric!r}.", "Use 'l2' or 'ip'.")
        self._embedder = embedder
        self._metric = metric
        # Batches of like length waste no padding; the order is restored afterwards.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        rows: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(texts)
        for at in range(0, len(order), _EMBED_BATCH):
            batch = order[at : at + _EMBED_BATCH]
            for i, vector in zip(batch, embedder.embed([texts[i] for i in batch]), strict=True):
                rows[i] = vector
        self._vectors = np.stack(rows) if rows else np.empty((0, 0), np.float32)
        self._squares = np.einsum("nd,nd->n", self._vectors, self._vectors)

    @property
    def name(self) -> str:
        """What is in use, for people."""
        return f"exact {self._metric.upper()} over {self._embedder.name}"

    def __len__(self) -> int:
        return len(self._vectors)

    def search(self, query: str, k: int) -> list[Hit]:
        """Return at most ``k`` hits, nearest first; see :class:`Index`."""
        if not len(self) or not query.strip():
            return []
        return self.search_vector(self._embedder.embed([query])[0], k)

    def search_vector(self, vector: NDArray[np.float32], k: int) -> list[Hit]:
        """Search with a vector, shape (dim,)."""
        inner = self._vectors @ vector
        if self._metric == "ip":
            return _top(inner, k)
        squared = self._squares - 2 * inner + vector @ vector
        return _top(-np.sqrt(np.maximum(squared, 0.0)), k)


def _build_bm25(words: list[list[str]]) -> Any:
    import bm25s  # half a second of imports, paid only where it is used

    # On import it lets its debug messages through, whatever the program wants to see.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    bm25 = bm25s.BM25(method="lucene")
    bm25.index(words, show_progress=False)
    return bm25


def _top(scores: NDArray[np.float32], k: int) -> list[Hit]:
    """The ``k`` highest scores, ties by position, without sorting them all."""
    k = min(k, len(scores))
    if k < 1:
        return []
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    candidates = np.flatnonzero(scores >= least)
    order = candidates[np.argsort(-scores[candidates], kind="stable")][:k]
    return [Hit(int(i), float(scores[i])) for i in order]
