"""Longest common subsequences (ROUGE-L) of every output with every record, exactly.

The tokens that two texts share in any order bound their longest common subsequence from above:
LCS(a, b) <= sum over tokens of min(count in a, count in b). That overlap is had for one output and
all records at once from an inverted index; only the pairs it cannot rule out are computed. So the
pairs above a threshold are the same as a loop over all pairs finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.text.overlap import Tokenized

Ints = NDArray[np.int64]
_NOTHING = np.empty(0, np.int32)
_FREQUENT = 16  # a token in one of so many records, or more, is kept as a row of flags
_GROUP = 255  # rows of flags that fit one byte


@dataclass(frozen=True, slots=True)
class SubsequencePair:
    """An output and a record with the length of their longest common subsequence.

    Attributes:
        record: Place of the record.
        lcs: Tokens.
        output_size: Tokens of the output.
        record_size: Tokens of the record.
    """

    record: int
    lcs: int
    output_size: int
    record_size: int

    @property
    def recall(self) -> float:
        """Share of the record's tokens (ROUGE-L recall, the record as reference)."""
        return self.lcs / self.record_size if self.record_size else 0.0

    @property
    def precision(self) -> float:
        """Share of the output's tokens."""
        return self.lcs / self.output_size if self.output_size else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of both."""
        sizes = self.output_size + self.record_size
        return 2 * self.lcs / sizes if sizes else 0.0


def lcs_length(first: NDArray[np.int32], second: NDArray[np.int32]) -> int:
    """Return the length of the longest common subsequence of two token sequences."""
    from rapidfuzz.distance import LCSseq

    return LCSseq.similarity(first.tolist(), second.tolist())


class SubsequenceIndex:
    """Finds the records whose longest common subsequence with an output is long.

    Args:
        records: Tokenized texts.
    """

    def __init__(self, records: Tokenized) -> None:
        self.records = records
        self.sizes = records.sizes
        self._index()

    def _index(self) -> None:
        """Postings of (token, occurrence): the n-th "the" of a text matches another's n-th."""
        records = self.records
        owners = records.owners()
        order = np.lexsort((owners, records.ids))
        ids, texts = records.ids[order], owners[order]
        fresh = np.ones(len(ids), np.bool_)
        fresh[1:] = (ids[1:] != ids[:-1]) | (texts[1:] != texts[:-1])
        starts = np.flatnonzero(fresh)
        # Number the occurrences of a token within each text.
        nth = np.arange(len(ids)) - np.repeat(starts, np.diff(np.append(starts, len(ids))))
        order = np.lexsort((nth, ids))
        self._docs = texts[order]
        keys = ids[order].astype(np.int64) << 32 | nth[order]
        self._keys, self._from = np.unique(keys, return_index=True)
        self._to = np.append(self._from[1:], len(keys))
        # Frequent tokens: a row of flags is added faster than a long list is counted.
        often = np.flatnonzero((self._to - self._from) * _FREQUENT >= max(1, len(records)))
        self._row_of = np.full(len(self._keys), -1)
        self._row_of[often] = np.arange(len(often))
        self._rows = np.zeros((len(often), len(records)), np.uint8)
        for row, place in enumerate(often):
            self._rows[row, self._docs[self._from[place] : self._to[place]]] = 1

    def overlaps(self, output: NDArray[np.int32]) -> Ints:
        """Return the tokens that an output shares with every record, in any order."""
        places = self._postings(output)
        rows = self._row_of[places]
        rare = [self._docs[self._from[p] : self._to[p]] for p in places[rows < 0]]
        found = np.bincount(np.concatenate([*rare, _NOTHING]), minlength=len(self.sizes))
        rows = rows[rows >= 0]
        for start in range(0, len(rows), _GROUP):
            counts = np.zeros(len(self.sizes), np.uint8)
            for row in rows[start : start + _GROUP]:
                counts += self._rows[row]
            found += counts
        return found

    def _postings(self, output: NDArray[np.int32]) -> Ints:
        ids = np.sort(output)
        _, starts, counts = np.unique(ids, return_index=True, return_counts=True)
        nth = np.arange(len(ids)) - np.repeat(starts, counts)
        keys = ids.astype(np.int64) << 32 | nth
        places = np.searchsorted(self._keys, keys)
        places = np.minimum(places, len(self._keys) - 1)
        return places[self._keys[places] == keys] if len(self._keys) else places[:0]

    def above_f1(self, output: NDArray[np.int32], threshold: float) -> Iterator[SubsequencePair]:
        """Yield every record whose ROUGE-L F1 with the output is above a threshold."""
        # F1 > t is LCS > t / 2 * (|output| + |record|).
        yield from self._pairs(output, np.float64(threshold / 2) * (len(output) + self.sizes))

    def above_recall(self, output: NDArray[np.int32], threshold: float) -> bool:
        """Say whether more than a share of any record's tokens stand in an output, in any order."""
        return bool((self.overlaps(output) > threshold * self.sizes).any())

    def tells(self, output: NDArray[np.int32], share: float, least: int) -> bool:
        """Say whether an output holds a share of any record of so many tokens in its order."""
        above = np.where(self.sizes >= least, share * self.sizes, np.inf)
        return next(self._pairs(output, above), None) is not None

    def pieces(self, output: NDArray[np.int32], share: float, least: int) -> list[int]:
        """Return the records of which a share, and so many tokens, stand in an output in order."""
        above = np.maximum(share * self.sizes, least) - 1e-9
        return [pair.record for pair in self._pairs(output, above)]

    def _pairs(
        self, output: NDArray[np.int32], above: NDArray[np.float64]
    ) -> Iterator[SubsequencePair]:
        """Yield the records whose subsequence is longer than ``above``, shape (records,)."""
        # LCS <= shared tokens in any order: only records above the bound are computed.
        for place in np.flatnonzero(self.overlaps(output) > above).tolist():
            lcs = lcs_length(output, self.records[place])
            if lcs > above[place]:
                yield SubsequencePair(place, lcs, len(output), int(self.sizes[place]))
