"""Finds the passages nearest to a query: by words (BM25) or by vectors, every one compared."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ragwitness.models.base import Embedder
from ragwitness.rag.config import Metric
from ragwitness.text.words import LETTER, UNIT, UNSPACED, script_pattern


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved passage.

    Attributes:
        index: Position of the passage among those that the index was built from.
        score: Higher is nearer: BM25, inner product, or negative L2 distance.
    """

    index: int
    score: float


class Index(Protocol):
    """Retrieval over a fixed list of passages."""

    @property
    def name(self) -> str:
        """The kind of search, for people."""

    def __len__(self) -> int: ...

    def search(self, query: str, k: int) -> list[Hit]:
        """Return at most ``k`` hits, nearest first, ties in order of the passages.

        A blank query finds nothing.
        """


def best(scores: NDArray[np.float32], k: int) -> list[Hit]:
    """Return the ``k`` highest scores, ties by position, without sorting them all.

    Args:
        scores: Scores of all passages, shape (n,).
        k: Number of hits wanted; there are fewer where there are fewer scores.
    """
    k = min(k, len(scores))
    if k < 1:
        return []
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    candidates = np.flatnonzero(scores >= least)
    order = candidates[np.argsort(-scores[candidates], kind="stable")][:k]
    return [Hit(int(i), float(scores[i])) for i in order]


# Meaning: vectors of an embedder, every one compared, in numpy.


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
        """The kind of search, for people."""
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


# Words: BM25.


# Words as the lexical index sees them: any script, numbers kept, no stemming.

# Numbers stay whole (3.5, 2024-03-01, 10:30): they tell documents apart best.
_NUMBER = r"\d+(?:[.,:/-]\d+)*(?!\w)"
# In scripts written without spaces, pairs of neighbours stand for words.
_TOKEN = script_pattern(rf"({_NUMBER})|((?:{UNIT})+)|[[{LETTER}]--{UNSPACED}]+")
_NEIGHBOURS = script_pattern(UNIT)


def index_words(text: str) -> list[str]:
    """Return the words of a text in order, case-folded, compatibility forms unified."""
    words: list[str] = []
    for match in _TOKEN.finditer(unicodedata.normalize("NFKC", text).casefold()):
        units = _NEIGHBOURS.findall(match[2] or "")
        words += map("".join, pairwise(units)) if units[1:] else [match[0]]
    return words


class LexicalIndex:
    """BM25 over words (bm25s, Lucene's variant); passages that share no word are not hits.

    No stop words are taken out: their inverse document frequency makes them light, and a
    query of stop words alone still finds something.

    Args:
        texts: The passages.
    """

    name = "lexical (BM25)"

    def __init__(self, texts: Sequence[str]) -> None:
        words = [index_words(text) for text in texts]
        self._size = len(words)
        # bm25s cannot index a vocabulary without words.
        self._bm25 = _build_bm25(words) if any(words) else None

    def __len__(self) -> int:
        return self._size

    def search(self, query: str, k: int) -> list[Hit]:
        """Return at most ``k`` hits, nearest first; see :class:`~.base.Index`."""
        words = index_words(query)
        if self._bm25 is None or not words:
            return []
        scores: NDArray[np.float32] = self._bm25.get_scores(words)
        return [hit for hit in best(scores, k) if hit.score > 0]


def _build_bm25(words: list[list[str]]) -> Any:
    import bm25s  # half a second of imports, paid only where it is used

    # On import it lets its debug messages through, whatever the program wants to see.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    bm25 = bm25s.BM25(method="lucene")
    bm25.index(words, show_progress=False)
    return bm25
