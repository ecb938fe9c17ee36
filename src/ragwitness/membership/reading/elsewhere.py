"""What a set of documents shares: words that a neighbour of a document would say as well.

A proxy that never saw documents of one template finds the template's words hard. A system that
holds other documents of it says them all the same, of any document it is asked about.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ragwitness.text.words import Word, core, split_words
from ragwitness.types import Document


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Pairs of neighbouring words that stand in two documents of a set or more.

    It is made from the documents in question and the known ones together, so it treats them all
    alike: whoever is outside stays exchangeable with the known-outside documents, and ranks of a
    score that uses it stay exact.

    Attributes:
        pairs: Both words in small letters, without punctuation.
        digest: Hash of the pairs.
    """

    pairs: frozenset[tuple[str, str]]
    digest: str

    @classmethod
    def among(cls, documents: Iterable[Document]) -> Elsewhere:
        """Return what documents share; a text that occurs twice counts once."""
        counted = Counter(
            pair
            for text in sorted({document.text for document in documents})
            for pair in _pairs(split_words(text))
        )
        pairs = frozenset(pair for pair, documents_with in counted.items() if documents_with > 1)
        written = "\n".join(" ".join(pair) for pair in sorted(pairs))
        return cls(pairs, hashlib.sha256(written.encode()).hexdigest()[:16])

    def has(self, words: Sequence[Word], index: int) -> bool:
        """Whether another document has the same word behind the same word."""
        # Asking for no shared word on either side was tried too: what is left is then so rare that
        # a weak reader misses it (AUC .934 for .990 on the generated sample, .958 for .974 on
        # WikiText-2, 30 and 60 members).
        return index > 0 and (_plain(words[index - 1]), _plain(words[index])) in self.pairs


def _plain(word: Word) -> str:
    return core(word.text).lower()


def _pairs(words: Sequence[Word]) -> set[tuple[str, str]]:
    plain = [_plain(word) for word in words]
    return set(pairwise(plain))
