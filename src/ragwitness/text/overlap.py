"""Runs of tokens that texts share word for word, found for two whole collections at once.

Every window of ``n`` tokens is hashed to 64 bits, for all texts in ``n`` array operations. The
windows of the smaller collection are sorted and those of the larger looked up, in place of a loop
over all pairs; what is found is compared token by token, so a hash collision claims nothing.
"""

from __future__ import annotations

import functools
import hashlib
import re
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.types import Document
from ragwitness.text.words import WORD_RUN, canonical_text, content_tokens, plain_tokens

# Texts as arrays of token numbers, so that whole corpora are compared at once.


@dataclass(frozen=True, slots=True)
class Tokenized:
    """Many texts as one array.

    Attributes:
        ids: Token numbers, text after text, shape (n,).
        starts: Where each text begins, and the end, shape (texts + 1,).
    """

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> NDArray[np.int32]:
        """The token numbers of one text."""
        return self.ids[self.starts[index] : self.starts[index + 1]]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Tokens of every text, shape (texts,)."""
        return np.diff(self.starts)

    def owners(self) -> NDArray[np.int32]:
        """The text that each token belongs to, shape (n,)."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.sizes)


class Vocabulary:
    """Numbers tokens in the order they are met; texts that share one can be compared.

    Args:
        split: Cuts a text into tokens.
        normalise: Applied once to every different token, such as a stemmer; None leaves it.
    """

    def __init__(
        self,
        split: Callable[[str], list[str]] = plain_tokens,
        normalise: Callable[[str], str] | None = None,
    ) -> None:
        self._split = split
        self._normalise = normalise
        self._numbers: dict[str, int] = {}
        self._next = 0

    def __len__(self) -> int:
        return self._next

    def tokenize(self, texts: Iterable[str]) -> Tokenized:
        """Return the texts as token numbers; new tokens get new numbers."""
        ids, starts = array("i"), array("q", [0])
        numbers = self._numbers
        for text in texts:
            for token in self._split(text):
                number = numbers.get(token)
                ids.append(self._new(token) if number is None else number)
            starts.append(len(ids))
        return Tokenized(np.array(ids, np.int32), np.array(starts, np.int64))

    def _new(self, token: str) -> int:
        """Number a token; those of one normal form share a number."""
        plain = token if self._normalise is None else self._normalise(token)
        number = self._numbers.get(plain) if plain != token else None
        if number is None:
            number, self._next = self._next, self._next + 1
            self._numbers.setdefault(plain, number)
        self._numbers[token] = number
        return number


Flags = NDArray[np.bool_]
_BASE = np.uint64(0x9E3779B97F4A7C15)
_PART = 1 << 22  # windows looked up at a time: bounds the memory


@dataclass(frozen=True, slots=True)
class SharedRuns:
    """Where two collections share runs of at least ``n`` tokens.

    Attributes:
        n: Length of a window.
        outputs: Whether each output holds a window of any record, shape (outputs,).
        records: Whether each record holds a window of any output, shape (records,).
        recovered: Tokens of each record that stand in such windows, shape (records,).
    """

    n: int
    outputs: Flags
    records: Flags
    recovered: NDArray[np.int64]


def shared_runs(outputs: Tokenized, records: Tokenized, n: int) -> SharedRuns:
    """Find the runs of at least ``n`` tokens that outputs and records share.

    Args:
        outputs: What a target said.
        records: The private texts, tokenized with the same vocabulary.
        n: Least tokens of a run, at least 1.
    """
    if n < 1:
        raise ValueError(f"a run has at least one token, not {n}")
    ours, theirs = _windows(outputs, n), _windows(records, n)
    in_outputs = np.zeros(len(ours.places), np.bool_)
    in_records = np.zeros(len(theirs.places), np.bool_)
    # 1. Different windows of the outputs, sorted, each with one place where it stands.
    keys, first, group = np.unique(ours.hashes, return_index=True, return_inverse=True)
    met = np.zeros(len(keys), np.bool_)
    for start in range(0, len(theirs.places) if len(keys) else 0, _PART):
        part = slice(start, start + _PART)
        # 2. Windows of the records are looked up, some millions at a time.
        place = np.searchsorted(keys, theirs.hashes[part])
        np.minimum(place, len(keys) - 1, out=place)
        found = np.flatnonzero(keys[place] == theirs.hashes[part])
        # 3. Equal hashes are compared token by token: a collision claims nothing.
        same = _equal(
            outputs.ids,
            ours.places[first[place[found]]],
            records.ids,
            theirs.places[part][found],
            n,
        )
        found = found[same]
        in_records[start + found] = True
        met[place[found]] = True
    if len(keys):
        in_outputs = met[group]
    return SharedRuns(
        n,
        _any_per_text(outputs, ours.places[in_outputs]),
        _any_per_text(records, theirs.places[in_records]),
        _covered(records, theirs.places[in_records], n),
    )


class RunIndex:
    """The windows of a collection, kept to be met by one text after the other.

    A window is known by its hash of 64 bits alone: it is for those who would rather see a run too
    many than miss one.

    Args:
        records: Tokenized texts.
        n: Tokens of a window, at least 1.
        free: Phrases that part a run in which they stand; see :func:`phrases_of`.
        phrase: Tokens of each.
    """

    def __init__(
        self, records: Tokenized, n: int, free: NDArray[np.uint64] | None = None, phrase: int = 1
    ) -> None:
        self.n, self._phrase = n, phrase
        self._hashes = _sorted(_windows(records, n).hashes)
        self._phrases = self._hashes[:0] if free is None else _sorted(free)

    def first(self, text: Tokenized) -> int | None:
        """Return the token with which the first shared run of one text begins; None for none."""
        places = self._met(text)
        return int(places[0]) if len(places) else None

    def freed(self, records: Tokenized) -> int:
        """Return how many of the records have no window that no phrase touches."""
        long = int((records.sizes >= self.n).sum())
        return long - int(_any_per_text(records, self._met(records)).sum())

    def _met(self, texts: Tokenized) -> NDArray[np.int64]:
        """Where the windows begin that the records share and no phrase touches."""
        windows = _windows(texts, self.n)
        places = windows.places[_among(self._hashes, windows.hashes)]
        if not len(self._phrases) or not len(places):
            return places
        said = _windows(texts, self._phrase)
        phrases = said.places[_among(self._phrases, said.hashes)]
        # How many of the tokens before each place stand in a phrase?
        before = np.cumsum(in_windows(len(texts.ids) + 1, phrases + 1, self._phrase))
        untouched: Flags = before[places] == before[places + self.n]
        return places[untouched]


class RunOwners:
    """Which texts of a collection hold each window of another text, by its hash alone.

    Args:
        texts: Tokenized texts.
        n: Tokens of a window, at least 1.
    """

    def __init__(self, texts: Tokenized, n: int) -> None:
        self.n = n
        self._hashes, self._owners = _owned(texts, n)

    def of(self, text: Tokenized) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return each pair of a window's place in one text and a text that holds it, as columns."""
        said = _windows(text, self.n)
        first = np.searchsorted(self._hashes, said.hashes)
        counts = np.searchsorted(self._hashes, said.hashes, side="right") - first
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(said.places, counts), self._owners[np.repeat(first, counts) + within]


def without_words(text: str, left_out: Flags) -> str:
    """Return a text without those words of :func:`word_tokens` that are marked, shape (words,)."""
    marks = iter(left_out.tolist())
    return WORD_RUN.sub(lambda word: "" if next(marks) else word.group(), text)


def phrases_of(texts: Tokenized, n: int, least: int = 1) -> NDArray[np.uint64]:
    """Return the windows of ``n`` tokens that stand in so many different texts, as hashes."""
    hashes, counts = np.unique(_owned(texts, n)[0], return_counts=True)
    return hashes[counts >= least]


def _owned(texts: Tokenized, n: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Hashes of windows, sorted, each once for every text that holds it, and these texts."""
    said = _windows(texts, n)
    owners = np.searchsorted(texts.starts, said.places, side="right") - 1
    order = np.lexsort((owners, said.hashes))
    hashes, owners = said.hashes[order], owners[order]
    fresh = np.ones(len(hashes), np.bool_)
    fresh[1:] = (hashes[1:] != hashes[:-1]) | (owners[1:] != owners[:-1])
    return hashes[fresh], owners[fresh]


def _sorted(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Different hashes in order; np.unique without further results is a third as fast."""
    hashes = np.sort(hashes)
    fresh = np.ones(len(hashes), np.bool_)
    fresh[1:] = hashes[1:] != hashes[:-1]
    return hashes[fresh]


def _among(known: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> Flags:
    """Whether each hash is one of the known ones, which are sorted."""
    if not len(known):
        return np.zeros(len(hashes), np.bool_)
    place = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    found: Flags = known[place] == hashes
    return found


@dataclass(frozen=True, slots=True)
class _Windows:
    """Hashes of all windows that lie within one text, and where they begin."""

    hashes: NDArray[np.uint64]
    places: NDArray[np.int64]


def _windows(texts: Tokenized, n: int) -> _Windows:
    count = len(texts.ids) - n + 1
    if count <= 0:
        return _Windows(np.empty(0, np.uint64), np.empty(0, np.int64))
    # A polynomial hash of every window, Horner's rule over all windows at once.
    spread = _mixed(texts.ids.astype(np.uint64))
    hashes = np.zeros(count, np.uint64)
    for offset in range(n):
        hashes *= _BASE
        hashes += spread[offset : offset + count]
    inside = np.ones(count, np.bool_)
    for start in texts.starts[1:-1]:  # a window must not reach into the next text
        inside[max(0, start - n + 1) : start] = False
    places = np.flatnonzero(inside)
    return _Windows(hashes[places], places)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread small numbers over 64 bits (the finaliser of SplitMix64)."""
    values = values + _BASE
    values ^= values >> np.uint64(30)
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values


def _equal(
    first: NDArray[np.int32],
    at: NDArray[np.int64],
    second: NDArray[np.int32],
    other: NDArray[np.int64],
    n: int,
) -> Flags:
    """Compare windows token by token."""
    same = np.ones(len(at), np.bool_)
    for offset in range(n):
        same &= first[at + offset] == second[other + offset]
    return same


def _any_per_text(texts: Tokenized, places: NDArray[np.int64]) -> Flags:
    flags = np.zeros(len(texts), np.bool_)
    flags[np.searchsorted(texts.starts, places, side="right") - 1] = True
    return flags


def _covered(texts: Tokenized, places: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Tokens of each text in any of the windows that begin at ``places``."""
    sums = np.concatenate(([0], np.cumsum(in_windows(len(texts.ids), places, n))))
    return sums[texts.starts[1:]] - sums[texts.starts[:-1]]


def in_windows(size: int, places: NDArray[np.int64], n: int) -> Flags:
    """Whether each of so many tokens stands in a window that begins at one of the places."""
    # +1 where a window begins, -1 behind its end: positive sums are covered.
    steps = np.zeros(size + 1, np.int32)
    steps[places] += 1
    np.subtract.at(steps, places + n, 1)
    covered: Flags = np.cumsum(steps[:-1]) > 0
    return covered


# Longest common subsequences (ROUGE-L) of every output with every record, exactly.
#
# The tokens that two texts share in any order bound their longest common subsequence from above:
# LCS(a, b) <= sum over tokens of min(count in a, count in b). That overlap is had for one output
# and all records at once from an inverted index; only the pairs it cannot rule out are computed. So
# the pairs above a threshold are the same as a loop over all pairs finds.


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


# Copies of a document: texts that differ in nothing that a reader would call another text.


# Marks that nobody sees; joiners and variation selectors are none, they make other letters.
_UNSEEN = re.compile("[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202c\u2060\u2066-\u2069\ufeff]")
_TYPED = str.maketrans("\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb", "'''" + '"' * 5)
_DASH = re.compile("[\u2010-\u2015\u2212]")
# Punctuation between words; beside figures and signs every mark may make another text.
_BORDER = re.compile(
    r"(?<=[^\W\d_])(?=\W)[.,;:!?]?[\"')\]}]*[.,;:!?]?(?=\Z| [\"'(\[{]*[^\W\d_])"
    r"|(?<!\S)[\"'(\[{]+(?=[^\W\d_])"
)


def same_text(document: Document) -> bytes:
    """Return a digest of what a document shares with its copies, which is nearly all of it.

    Case, white space, typographic quotation marks and dashes, and punctuation beside words alone
    make no other document, and neither does the id.
    """
    return _read(document.text)


@functools.lru_cache(4096)  # each document is compared in several places
def _read(text: str) -> bytes:
    plain = _DASH.sub("-", _UNSEEN.sub("", unicodedata.normalize("NFC", text)))
    read = _BORDER.sub("", " ".join(plain.translate(_TYPED).lower().split())) or text
    return hashlib.blake2b(read.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def without_copies(documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return the documents with each text once: a copy is no further evidence."""
    found: dict[bytes, Document] = {}
    for one in documents:
        found.setdefault(same_text(one), one)
    return tuple(found.values())


_RUN = 16  # tokens in a row that two texts of one source hardly share by chance


NEAR = 0.8
"""ROUGE-L F1 with a record, or share in long runs, from which on a public text tells it."""
_LONG = 10  # tokens
_MOST_READ = 2000  # words: in a whole book most of a record stands in order by chance


def overlapping(public: Sequence[str], records: Sequence[str]) -> list[int]:
    """Return the places of public texts that nearly are a private record, or hold or are of one.

    For the owner alone, before anything is made: what is found is no part of any output.
    """
    # Texts are what they read as, whatever is put between their letters and words.
    public, records = (
        list(map(canonical_text, public)),
        list(dict.fromkeys(map(canonical_text, records))),
    )
    vocabulary, content = Vocabulary(), Vocabulary(content_tokens)
    private, told = vocabulary.tokenize(records), vocabulary.tokenize(public)
    known, in_order = SubsequenceIndex(private), SubsequenceIndex(content.tokenize(records))
    # A text of few words is like many others by chance: there only the same words count.
    same = {" ".join(plain_tokens(text)) for text in records}
    # A part of a record, or several records: most of the text stands in long runs of theirs.
    parts = shared_runs(private, told, _RUN).recovered >= NEAR * np.maximum(told.sizes, _RUN)
    # A record among other words: the texts that hold most of one which is public as a whole.
    bare = shared_runs(told, private, _RUN).recovered >= NEAR * np.maximum(private.sizes, _RUN)
    given = [text for text, out in zip(records, bare, strict=True) if out]
    whole = vocabulary.tokenize(given)
    holds = shared_runs(told, whole, _RUN).outputs
    for place in np.flatnonzero(holds).tolist():
        one = shared_runs(vocabulary.tokenize([public[place]]), whole, _RUN)
        holds[place] = bool((one.recovered >= NEAR * whole.sizes).any())
    return [
        place
        for place, text in enumerate(public)
        if " ".join(plain_tokens(text)) in same
        or parts[place]
        or holds[place]
        or (len(told[place]) >= _LONG and next(known.above_f1(told[place], NEAR), None) is not None)
        or in_order.tells(content.tokenize([text])[0][:_MOST_READ], NEAR, 2 * _LONG)
    ]
