"""Runs of tokens that texts share word for word, found for two whole collections at once.

Every window of ``n`` tokens is hashed to 64 bits, for all texts in ``n`` array operations. The
windows of the smaller collection are sorted and those of the larger looked up, in place of a loop
over all pairs; what is found is compared token by token, so a hash collision claims nothing.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Texts as arrays of token numbers, so that whole corpora are compared at once.

SIGNS = "\u0900-\u0963\u0966-\u0dff\u1000-\u109f"
"""Letters of India and Burma with their vowel signs, as a regular expression's set."""

_WORDS = re.compile(rf"(?:\w|[{SIGNS}])+")


def word_tokens(text: str) -> list[str]:
    r"""Split as NLTK's ``RegexpTokenizer(r"\w+")``; vowel signs part no word."""
    return _WORDS.findall(text)


def plain_tokens(text: str) -> list[str]:
    r"""Split into runs of ``\w`` without regard to case."""
    return _WORDS.findall(text.casefold())


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
    return _WORDS.sub(lambda word: "" if next(marks) else word.group(), text)


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
