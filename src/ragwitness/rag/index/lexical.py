"""Words: BM25."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.rag.index.interface import Hit, best

# Words as the lexical index sees them: any script, numbers kept, no stemming.

# Numbers stay whole (3.5, 2024-03-01, 10:30): they tell documents apart best.
_NUMBER = r"\d+(?:[.,:/-]\d+)*(?!\w)"
# Han, Hiragana and Katakana are written without spaces: pairs of neighbours stand for words.
_UNSPACED = r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]+"
# Combining marks belong to their word (Devanagari, Thai and others).
_OTHER = r"(?:(?!{unspaced})[\w\u0300-\u036f\u0900-\u0dff\u0e30-\u0e4e\u0eb0-\u0ecd])+"
_TOKEN = re.compile(f"({_NUMBER})|({_UNSPACED})|({_OTHER.format(unspaced=_UNSPACED)})")


def index_words(text: str) -> list[str]:
    """Return the words of a text in order, case-folded, compatibility forms unified."""
    words: list[str] = []
    for match in _TOKEN.finditer(unicodedata.normalize("NFKC", text).casefold()):
        run = match.group(2)
        if run and len(run) > 1:
            words += [run[i : i + 2] for i in range(len(run) - 1)]
        else:
            words.append(match.group())
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
