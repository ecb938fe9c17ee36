"""What a set of documents shares: words that a neighbour of a document would say as well.

A proxy that never saw documents of one template finds the template's words hard. A system that
holds other documents of it says them all the same, of any document it is asked about.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ragwitness.text.words import Word, core, split_words
from ragwitness.types import Document

_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


@dataclass(frozen=True, slots=True, eq=False)
class Elsewhere:
    """Pairs of neighbouring words that stand in two documents of a set or more.

    It is made from the documents in question and the known ones together, so it treats them all
    alike: whoever is outside stays exchangeable with the known-outside documents, and ranks of a
    score that uses it stay exact. Making it takes 8 bytes for each word of the set.

    Attributes:
        pairs: Hashes of both words in small letters, without punctuation; sorted, shape (n,).
        digest: Hash of the pairs.
    """

    pairs: NDArray[np.uint64]
    digest: str

    @classmethod
    def among(cls, documents: Iterable[Document]) -> Elsewhere:
        """Return what documents share; a text that occurs twice counts once."""
        # 1. Every pair of every text, once for each text.
        every = array("Q")
        for text in {document.text for document in documents}:
            every.frombytes(np.unique(_pairs(split_words(text))).tobytes())
        # 2. Those that came more than once stand side by side when sorted.
        met = np.frombuffer(every, np.uint64)
        met.sort()
        pairs = np.unique(met[1:][met[1:] == met[:-1]])
        return cls(pairs, hashlib.sha256(pairs.tobytes()).hexdigest()[:16])

    def has(self, words: Sequence[Word], index: int) -> bool:
        """Whether another document has the same word behind the same word."""
        # Asking for no shared word on either side was tried too: what is left is then so rare that
        # a weak reader misses it (AUC .934 for .990 on the generated sample, .958 for .974 on
        # WikiText-2, 30 and 60 members).
        if not (index and self.pairs.size):
            return False
        pair = _pairs(words[index - 1 : index + 1])[0]
        place = min(int(np.searchsorted(self.pairs, pair)), self.pairs.size - 1)
        return bool(self.pairs[place] == pair)


def _pairs(words: Sequence[Word]) -> NDArray[np.uint64]:
    """Hash each word with the one behind it, shape (words - 1,)."""
    plain = [crc32(core(word.text).lower().encode()) for word in words]
    numbers = np.array(plain, np.uint64)
    return numbers[:-1] * _FIRST + numbers[1:] * _SECOND
