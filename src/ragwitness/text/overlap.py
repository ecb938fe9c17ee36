"""Texts compared as sequences of tokens: shared runs, longest common subsequences, and copies.

Every window of ``n`` tokens is hashed to 64 bits, for all texts in ``n`` array operations. The
windows of one collection are sorted and those of the other looked up, in place of a loop over all
pairs. Two different windows share a hash with a chance of 2^-64.
"""

from __future__ import annotations

import functools
import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

import numpy as np
import regex as re
from numpy.typing import NDArray

from ragwitness.core.types import Document
from ragwitness.text import words as tokens_of

# Texts as arrays of token numbers, so that whole corpora are compared at once.

Flags = NDArray[np.bool_]
Hashes = NDArray[np.uint64]
Ints = NDArray[np.int64]
Tokens = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Tokenized:
    """Many texts as one array.

    Attributes:
        ids: Token numbers, text after text, shape (n,).
        starts: Where each text begins, and the end, shape (texts + 1,).
    """

    ids: Tokens
    starts: Ints

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> Tokens:
        """The token numbers of one text."""
        return self.ids[self.starts[index] : self.starts[index + 1]]

    @property
    def sizes(self) -> Ints:
        """Tokens of every text, shape (texts,)."""
        return np.diff(self.starts)

    def owners(self) -> Tokens:
        """The text that each token belongs to, shape (n,)."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.sizes)


class Vocabulary:
    """Numbers tokens in the order of their first use; texts that share one can be compared.

    Args:
        split: Cuts a text into tokens; by default words, and units of unspaced scripts.
    """

    def __init__(self, split: Callable[[str], list[str]] = tokens_of.plain_tokens) -> None:
        self._split = split
        self._numbers: dict[str, int] = {}

    def tokenize(self, texts: Iterable[str]) -> Tokenized:
        """Return the texts as token numbers; new tokens get new numbers."""
        ids, starts = array("i"), array("q", [0])
        for text in texts:
            for token in self._split(text):
                ids.append(self._numbers.setdefault(token, len(self._numbers)))
            starts.append(len(ids))
        return Tokenized(np.array(ids, np.int32), np.array(starts, np.int64))


# Runs of tokens that texts share word for word.

_BASE = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class SharedRuns:
    """Where two collections share runs of at least ``n`` tokens.

    Attributes:
        outputs: Whether each output holds a window of any record, shape (outputs,).
        records: Whether each record holds a window of any output, shape (records,).
        recovered: Tokens of each record in such windows, shape (records,).
    """

    outputs: Flags
    records: Flags
    recovered: Ints


def shared_runs(outputs: Tokenized, records: Tokenized, n: int) -> SharedRuns:
    """Find the runs of at least ``n`` tokens that outputs and records share.

    Args:
        outputs: A target's answers.
        records: The private texts, tokenized with the same vocabulary.
        n: Least tokens of a run, at least 1.
    """
    if n < 1:
        raise ValueError(f"a run has at least one token, not {n}")
    (output_hashes, output_starts), (hashes, starts) = _windows(outputs, n), _windows(records, n)
    output_starts = output_starts[among(np.unique(hashes), output_hashes)]
    starts = starts[among(np.unique(output_hashes), hashes)]
    # Tokens of each record in any of its shared windows.
    covered = np.cumsum(np.append(0, in_windows(len(records.ids), starts, n)))
    recovered = covered[records.starts[1:]] - covered[records.starts[:-1]]
    return SharedRuns(_any(outputs, output_starts), _any(records, starts), recovered)


class RunIndex:
    """The windows of a collection, for lookups of one text after the other.

    Args:
        records: Tokenized texts.
        n: Tokens of a window, at least 1.
        free: Phrases that interrupt a run; see :func:`phrases_of`.
        phrase: Tokens of each.
    """

    def __init__(
        self, records: Tokenized, n: int, free: Hashes | None = None, phrase: int = 1
    ) -> None:
        self.n, self._phrase = n, phrase
        self._hashes = np.unique(_windows(records, n)[0])
        self._phrases = self._hashes[:0] if free is None else np.unique(free)

    def first(self, text: Tokenized) -> int | None:
        """Return the token with which the first shared run of one text begins; None for none."""
        starts = self._matches(text)
        return int(starts[0]) if len(starts) else None

    def freed(self, records: Tokenized) -> int:
        """Return how many of the records have no window without a phrase."""
        long = int((records.sizes >= self.n).sum())
        return long - int(_any(records, self._matches(records)).sum())

    def _matches(self, texts: Tokenized) -> Ints:
        """Starts of the windows that the records share and no phrase touches."""
        hashes, starts = _windows(texts, self.n)
        starts = starts[among(self._hashes, hashes)]
        hashes, phrases = _windows(texts, self._phrase)
        phrases = phrases[among(self._phrases, hashes)]
        # How many of the tokens before each place are part of a phrase?
        before = np.cumsum(in_windows(len(texts.ids) + 1, phrases + 1, self._phrase))
        return np.asarray(starts[before[starts] == before[starts + self.n]])


class RunOwners:
    """Finds the texts of a collection that hold each window of another text.

    Args:
        texts: Tokenized texts.
        n: Tokens of a window, at least 1.
    """

    def __init__(self, texts: Tokenized, n: int) -> None:
        self.n = n
        self._hashes, self._owners = _owned(texts, n)

    def of(self, text: Tokenized) -> tuple[Ints, Ints]:
        """Return each pair of a window's start in one text and a text that holds it, as columns."""
        hashes, starts = _windows(text, self.n)
        first = np.searchsorted(self._hashes, hashes)
        counts = np.searchsorted(self._hashes, hashes, side="right") - first
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(starts, counts), self._owners[np.repeat(first, counts) + within]


def without_words(text: str, left_out: Flags) -> str:
    """Return a text without the marked words of :func:`word_tokens`; marks have shape (words,)."""
    pieces, end = list[str](), 0
    for word in compress(tokens_of.word_spans(text), left_out):
        pieces.append(text[end : word.start])
        end = word.end
    return "".join((*pieces, text[end:]))


def phrases_of(texts: Tokenized, n: int, least: int = 1) -> Hashes:
    """Return the hashes of the windows of ``n`` tokens in at least ``least`` different texts."""
    hashes, counts = np.unique(_owned(texts, n)[0], return_counts=True)
    return hashes[counts >= least]


def _owned(texts: Tokenized, n: int) -> tuple[Hashes, Ints]:
    """Sorted hashes of windows, each once for every text that holds it, and these texts."""
    hashes, starts = _windows(texts, n)
    owners = np.searchsorted(texts.starts, starts, side="right") - 1
    order = np.lexsort((owners, hashes))
    hashes, owners = hashes[order], owners[order]
    fresh = _changes(hashes, owners)
    return hashes[fresh], owners[fresh]


def _changes(*columns: NDArray[np.generic]) -> Flags:
    """Whether each row differs from the one before it."""
    changed = np.ones(len(columns[0]), np.bool_)
    changed[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return changed


def among(collection: Hashes, hashes: Hashes) -> Flags:
    """Whether each hash is in a sorted collection."""
    if not len(collection):
        return np.zeros(len(hashes), np.bool_)
    index = np.minimum(np.searchsorted(collection, hashes), len(collection) - 1)
    return np.asarray(collection[index] == hashes)


def _windows(texts: Tokenized, n: int) -> tuple[Hashes, Ints]:
    """Hashes of all windows within one text, and the tokens where they begin."""
    count = max(0, len(texts.ids) - n + 1)
    # A polynomial hash of every window, Horner's rule over all windows at once.
    spread = _mixed(texts.ids.astype(np.uint64))
    hashes = np.zeros(count, np.uint64)
    for offset in range(n if count else 0):
        hashes *= _BASE
        hashes += spread[offset : offset + count]
    inside = np.ones(count, np.bool_)
    for start in texts.starts[1:-1]:  # a window must not reach into the next text
        inside[max(0, start - n + 1) : start] = False
    return hashes[inside], np.flatnonzero(inside)


def _mixed(values: Hashes) -> Hashes:
    """Spread small numbers over 64 bits (the finaliser of SplitMix64)."""
    values = values + _BASE
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        values ^= values >> np.uint64(shift)
        values *= np.uint64(factor)
    return values


def _any(texts: Tokenized, tokens: Ints) -> Flags:
    """Whether each text holds any of some tokens."""
    flags = np.zeros(len(texts), np.bool_)
    flags[np.searchsorted(texts.starts, tokens, side="right") - 1] = True
    return flags


def in_windows(size: int, starts: Ints, n: int) -> Flags:
    """Whether each of ``size`` tokens is in a window of ``n`` that begins at one of ``starts``."""
    # +1 where a window begins, -1 behind its end: positive sums are covered.
    steps = np.zeros(size + 1, np.int32)
    steps[starts] += 1
    np.subtract.at(steps, starts + n, 1)
    return np.asarray(np.cumsum(steps[:-1]) > 0)


# Longest common subsequences (ROUGE-L) of every output with every record, exactly.
#
# The tokens that two texts share in any order bound their longest common subsequence from above:
# LCS(a, b) <= sum over tokens of min(count in a, count in b). An inverted index gives that overlap
# of one output with all records at once; only the pairs above the bound are computed. So the pairs
# above a threshold are those that a loop over all pairs finds.

_NOTHING = np.empty(0, np.int32)


class SubsequencePair(NamedTuple):
    """A record, by its number, and the ROUGE-L F1 of an output with it."""

    record: int
    f1: float


def lcs_length(first: Tokens, second: Tokens) -> int:
    """Return the length of the longest common subsequence of two token sequences."""
    from rapidfuzz.distance import LCSseq

    return LCSseq.similarity(first.tolist(), second.tolist())


class SubsequenceIndex:
    """Finds the records whose longest common subsequence with an output is long.

    Args:
        records: Tokenized texts.
    """

    def __init__(self, records: Tokenized) -> None:
        self.records, self.sizes = records, records.sizes
        # Postings of (token, occurrence): the n-th "the" of a text matches another's n-th.
        keys = _occurrences(records)
        order = np.argsort(keys, kind="stable")
        self._holders = records.owners()[order]
        self._keys, starts = np.unique(keys[order], return_index=True)
        self._starts = np.append(starts, len(keys))

    def overlaps(self, output: Tokens) -> Ints:
        """Return the tokens that an output shares with every record, in any order."""
        keys = _occurrences(Tokenized(output, np.array([0, len(output)])))
        rows = np.searchsorted(self._keys, keys)
        rows = rows[np.searchsorted(self._keys, keys, side="right") > rows]
        holders = [self._holders[self._starts[r] : self._starts[r + 1]] for r in rows]
        return np.bincount(np.concatenate([*holders, _NOTHING]), minlength=len(self.sizes))

    def above_f1(self, output: Tokens, threshold: float) -> Iterator[SubsequencePair]:
        """Yield every record whose ROUGE-L F1 with the output is above a threshold."""
        # F1 > t is LCS > t / 2 * (|output| + |record|).
        sizes = len(output) + self.sizes
        for record, lcs in self.longer(output, np.float64(threshold / 2) * sizes):
            yield SubsequencePair(record, 2 * lcs / int(sizes[record]))

    def above_recall(self, output: Tokens, threshold: float) -> bool:
        """Say whether an output holds more than a share of any record's tokens, in any order."""
        return bool((self.overlaps(output) > threshold * self.sizes).any())

    def tells(self, output: Tokens, share: float, least: int) -> bool:
        """Say whether an output holds a share of any record of ``least`` tokens, in its order."""
        bounds = np.where(self.sizes >= least, share * self.sizes, np.inf)
        return next(self.longer(output, bounds), None) is not None

    def pieces(self, output: Tokens, share: float, least: int) -> list[int]:
        """Return the records of which an output holds a share and ``least`` tokens, in order."""
        bounds = np.maximum(share * self.sizes, least) - 1e-9
        return [record for record, _ in self.longer(output, bounds)]

    def longer(self, output: Tokens, bounds: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
        """Yield each record with a subsequence above its bound, and the length of that."""
        # LCS <= shared tokens in any order: only records above the bound are computed.
        for record in np.flatnonzero(self.overlaps(output) > bounds).tolist():
            lcs = lcs_length(output, self.records[record])
            if lcs > bounds[record]:
                yield record, lcs


def _occurrences(texts: Tokenized) -> Ints:
    """A number for each token and its occurrence within its text, shape (n,)."""
    owners = texts.owners()
    order = np.lexsort((texts.ids, owners))
    fresh = np.flatnonzero(_changes(texts.ids[order], owners[order]))
    counts = np.diff(np.append(fresh, len(order)))
    keys = np.empty(len(order), np.int64)
    nth = np.arange(len(order)) - np.repeat(fresh, counts)
    keys[order] = texts.ids[order].astype(np.int64) << 32 | nth
    return keys


# Copies of a document: texts that a reader would call the same.

_TYPED = str.maketrans("\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb", "'''" + '"' * 5)
_DASH = re.compile("[\u2010-\u2015\u2212]")
# Punctuation between words; beside figures and signs every mark may make another text.
_BORDER = re.compile(
    r"(?<=[^\W\d_])(?=\W)[.,;:!?]?[\"')\]}]*[.,;:!?]?(?=\Z| [\"'(\[{]*[^\W\d_])"
    r"|(?<!\S)[\"'(\[{]+(?=[^\W\d_])"
)


def same_text(document: Document) -> bytes:
    """Return a digest that a document shares with its copies.

    Texts are copies where they differ only in case, white space, typographic quotation marks and
    dashes, punctuation beside words, or the id.
    """
    return _digest(document.text)


@functools.lru_cache(4096)  # each document is compared in several places
def _digest(text: str) -> bytes:
    plain = _DASH.sub("-", tokens_of.as_read(text))
    read = _BORDER.sub("", " ".join(plain.translate(_TYPED).lower().split())) or text
    return hashlib.blake2b(read.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def without_copies(documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return the documents with each text once: a copy is no further evidence."""
    first: dict[bytes, Document] = {}
    for document in documents:
        first.setdefault(same_text(document), document)
    return tuple(first.values())


NEAR = 0.8
"""Least ROUGE-L F1 with a record, or share in long runs, at which a public text discloses it."""
_RUN = 16  # tokens in a row that two texts of one source hardly share by chance
_LONG = 10  # tokens
_MOST_READ = 2000  # words: in a whole book most of a record is in order by chance


def overlapping(public: Sequence[str], records: Sequence[str]) -> list[int]:
    """Return the numbers of public texts that disclose a private record, in part or nearly.

    For the owner alone, before a synthesis: no output contains these matches.
    """
    # Compare what a reader sees, whatever is between letters and words.
    public = list(map(tokens_of.canonical_text, public))
    records = list(dict.fromkeys(map(tokens_of.canonical_text, records)))
    content = Vocabulary(tokens_of.content_tokens)
    vocabulary = Vocabulary(tokens_of.plain_tokens)
    private, published = vocabulary.tokenize(records), vocabulary.tokenize(public)
    index, content_index = SubsequenceIndex(private), SubsequenceIndex(content.tokenize(records))
    # A text of few words is like many others by chance: there only the same words count.
    same = {" ".join(tokens_of.plain_tokens(text)) for text in records}
    # A part of a record, or several records: long runs of records make up most of the text.
    recovered = shared_runs(private, published, _RUN).recovered
    partial = recovered >= NEAR * np.maximum(published.sizes, _RUN)
    # A record among other words: the texts that hold most of one which is public as a whole.
    runs = shared_runs(published, private, _RUN).recovered
    disclosed = runs >= NEAR * np.maximum(private.sizes, _RUN)
    public_records = vocabulary.tokenize(compress(records, disclosed))

    def holds_record(text: str) -> bool:
        runs = shared_runs(vocabulary.tokenize([text]), public_records, _RUN).recovered
        return bool((runs >= NEAR * public_records.sizes).any())

    return [
        number
        for number, text in enumerate(public)
        if " ".join(tokens_of.plain_tokens(text)) in same
        or partial[number]
        or holds_record(text)
        or (len(published[number]) >= _LONG and any(index.above_f1(published[number], NEAR)))
        or content_index.tells(content.tokenize([text])[0][:_MOST_READ], NEAR, 2 * _LONG)
    ]
