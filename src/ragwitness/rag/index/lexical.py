"""Words: BM25."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.rag.index.base import Hit, best
from ragwitness.rag.words import index_words

__all__ = ["LexicalIndex"]


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
