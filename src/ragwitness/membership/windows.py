"""Windows: the stretches of a document that it is asked about, cut from text that is its own.

A notice, a letterhead, a template or a list of chapters that two documents of an audit have says
nothing about either. What is longer than a passage of an index is asked about in several places:
a system that holds one chapter of a book holds none of its other words. See
``docs/design/windows.md``.
"""

from __future__ import annotations

import copy
import hashlib
import math
import random
import re
from array import array
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.types import Answer, Audit, Capability, Document, Probe, Query, Score
from ragwitness.text.words import Word, core, split_words

SIZE = 1_000
"""Characters of a window at most: about a passage of an index."""
MOST = 5
"""Windows of a document."""

_RULES = "windows.1"  # part of every key of scores: those of other windows do not mix
_RUN = 8  # words in a row that make a text the same as another's
_FEWEST = 8  # words of its own that a document needs
_FULL = 0.9  # share of the most own words that a window may hold
_ENDS = re.compile(r"[.!?\u3002\uff01\uff1f]\W*$|\n")  # a sentence, or a line


# What a set of documents shares.

_BASE = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, eq=False)
class Elsewhere:
    """Runs of words that stand in two documents of a set or more; pairs where nothing else is said.

    It is made from the documents in question and the known ones together, so it treats them all
    alike: whoever is outside stays exchangeable with the known-outside documents, and ranks of a
    score that uses it stay exact. Making it takes 8 bytes for each word of the set.

    Attributes:
        runs: Hashes of words in small letters, without punctuation; sorted, shape (n,).
        digest: Hash of the runs.
        length: Words of a run.
    """

    runs: NDArray[np.uint64]
    digest: str
    length: int = 2

    @classmethod
    def among(cls, documents: Iterable[Document], length: int = 2, holders: int = 2) -> Elsewhere:
        """Return what documents share; a text that occurs twice counts once.

        Args:
            documents: The set.
            length: Words of a run.
            holders: Documents that must hold one.
        """
        # 1. Every run of every text, once for each text.
        every = array("Q")
        for text in {document.text for document in documents}:
            every.frombytes(np.unique(_runs(split_words(text), length)).tobytes())
        # 2. Those that came more than once stand side by side when sorted.
        met = np.frombuffer(every, np.uint64)
        met.sort()
        more = holders - 1
        runs = np.unique(met[more:][met[more:] == met[: met.size - more]])
        return cls(runs, hashlib.sha256(runs.tobytes()).hexdigest()[:16], length)

    def has(self, words: Sequence[Word], index: int) -> bool:
        """Whether another document has the same word behind the same words."""
        # Asking for no shared word on either side was tried too: what is left is then so rare that
        # a weak reader misses it (AUC .934 for .990 on the generated sample, .958 for .974 on
        # WikiText-2, 30 and 60 members).
        first = index + 1 - self.length
        return first >= 0 and bool(self._met(words[first : index + 1])[0])

    def covers(self, words: Sequence[Word]) -> NDArray[np.bool_]:
        """Return for each word of a text whether it stands in any of the runs."""
        steps = np.zeros(len(words) + 1, np.int64)
        met = np.flatnonzero(self._met(words))
        steps[met] += 1
        steps[met + min(self.length, len(words))] -= 1
        return np.cumsum(steps[:-1]) > 0

    def _met(self, words: Sequence[Word]) -> NDArray[np.bool_]:
        """Whether each run of a text is one of these."""
        hashes = _runs(words, self.length)
        if not self.runs.size:
            return np.zeros(hashes.size, np.bool_)
        place = np.minimum(np.searchsorted(self.runs, hashes), self.runs.size - 1)
        return np.asarray(self.runs[place] == hashes)


def _runs(words: Sequence[Word], length: int) -> NDArray[np.uint64]:
    """Hash each word with those behind it, shape (words + 1 - length,)."""
    plain = [crc32(core(word.text).lower().encode()) for word in words]
    numbers = np.array(plain, np.uint64)
    windows = len(words) + 1 - length
    hashes = np.zeros(max(0, windows), np.uint64)
    for offset in range(length if windows > 0 else 0):
        hashes = hashes * _BASE + numbers[offset : offset + windows]
    return hashes


# The windows of a document.


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Cuts the windows of the documents of one set.

    What it cuts follows from a text and from the set, in which documents in question and known
    ones are treated alike. So whoever is outside stays exchangeable with the known-outside ones.

    Attributes:
        shared: Runs of words that two documents have, or more.
        common: Those that three have: what a document without text of its own is cut by.
        digest: Hash of both and of the rules, part of the identity of an audit.
    """

    shared: Elsewhere
    common: Elsewhere
    digest: str

    @classmethod
    def among(cls, documents: Sequence[Document]) -> Windows:
        """Return what cuts the documents of a set, near copies as one."""
        shared, common = (Elsewhere.among(documents, _RUN, holders) for holders in (2, 3))
        return cls(shared, common, " ".join((_RULES, shared.digest, common.digest)))

    def of(self, text: str) -> tuple[str, ...]:
        """Return the windows of a text in the order in which they are asked about.

        Their number follows from the length of what is the text's own: one for each ``SIZE``
        characters, up to ``MOST``. There is none where hardly a word is its own.
        """
        words = split_words(text)
        own = np.flatnonzero(~self.shared.covers(words))
        # 1. Its own words; of a text that one other holds as well, those that only the two hold.
        if own.size < _FEWEST < len(words):
            own = np.flatnonzero(~self.common.covers(words))
        if not words or own.size < min(_FEWEST, len(words)):
            return () if words else (text,)
        # A short text with little before its first own word, or behind its last, stays whole.
        span = words[own[-1]].end - words[own[0]].start
        if len(text) <= SIZE and 4 * span >= 3 * len(text.strip()):
            return (text,)
        # 2. Blocks of equally many of them, as many as the windows.
        size = sum(words[at].end + 1 - words[at].start for at in own.tolist())
        blocks = np.array_split(own, min(MOST, math.ceil(size / SIZE)))
        # 3. A window at a random place of each, drawn by the text, in a random order: the first few
        # windows of a long document are as good as all of a shorter one.
        draw = random.Random(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
        windows = [_window(text, words, block, draw) for block in blocks]
        return tuple(dict.fromkeys(draw.sample(windows, len(windows))))


def _window(text: str, words: Sequence[Word], own: NDArray[np.int64], draw: random.Random) -> str:
    """Cut a window that begins and ends with own words and holds as many as any, or nearly."""
    begins = np.array([words[at].start for at in own.tolist()])
    ends = np.array([words[at].end for at in own.tolist()])
    last = np.maximum(np.searchsorted(ends, begins + SIZE, side="right"), np.arange(own.size) + 1)
    held = last - np.arange(own.size)
    full = np.flatnonzero(held >= _FULL * held.max()).tolist()
    # At the beginning of a sentence, where there is one.
    clear = [at for at in full if not own[at] or _ends(text, words, int(own[at]))]
    at = draw.choice(clear or full)
    return text[begins[at] : min(ends[last[at] - 1], begins[at] + SIZE)]


def _ends(text: str, words: Sequence[Word], number: int) -> bool:
    """Whether a sentence or a line ends before a word."""
    return bool(_ENDS.search(text[words[number - 1].start : words[number].start].rstrip(" ")))


# The audit of all windows.


_AFTER = "score after window {}"


def running_scores(score: Score) -> list[float]:
    """Return what a document scored by its first window, its first two and so on to all of them.

    A document of w windows is ranked among known documents of w or more, each by its first w: the
    windows of one that is outside, and the first w of a known one, are draws of one kind, so its
    p-value is exact whatever the joined score, however unlike the lengths in both sets.

    Returns:
        Shape (windows,); NaN where none of the windows so far could be read.
    """
    count = int(score.details.get("windows", 1))
    earlier = [score.details.get(_AFTER.format(n), math.nan) for n in range(1, count)]
    return [*earlier, math.nan if score.value is None else score.value]


class WindowedAudit:
    """An audit that asks about the windows of a document, each as if it were a document.

    The score is the mean over the windows that could be read.

    Args:
        audit: The method, as it is for documents of the set.
        windows: What cuts the documents of the set.
    """

    def __init__(self, audit: Audit, windows: Windows) -> None:
        self.inner = audit
        # Questions depend on both, and so does the identity of the audit.
        own = getattr(getattr(audit, "elsewhere", None), "digest", "")
        self.elsewhere = replace(windows, digest=f"{windows.digest} {own}")

    @property
    def name(self) -> str:
        """The method's."""
        return self.inner.name

    @property
    def requires(self) -> frozenset[Capability]:
        """The method's."""
        return self.inner.requires

    def __getattr__(self, name: str) -> Any:
        """Return whatever else the method has."""
        if name == "inner":  # not made yet
            raise AttributeError(name)
        return getattr(self.inner, name)

    def windows(self, document: Document) -> list[Document]:
        """Return the windows of a document as documents."""
        return [replace(document, text=text) for text in self.elsewhere.of(document.text)]

    def questions(self, document: Document) -> list[Query]:
        """Return every question that may be asked, where the method can list them."""
        windows = self.windows(document)
        listed = getattr(self._part(len(windows)), "questions", lambda _: ())
        return [query for one in windows for query in listed(one)]

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        windows = self.windows(document)
        if not windows:
            return Score(None, reason="all of its text stands in other documents of the audit")
        part, enough = self._part(len(windows)), self._enough
        # A method that stops where the evidence is strong asks about one window after the other.
        step = len(windows) if enough == math.inf else 1
        found: list[Score] = []
        while len(found) < len(windows) and _total(found) < enough:
            batch = windows[len(found) : len(found) + step]
            found += yield from _together([part.probe(one) for one in batch])
        return _joined(document, windows, found)

    @property
    def _enough(self) -> float:
        config = getattr(self.inner, "config", None)
        return float(getattr(config, getattr(config, "stops_at", ""), math.inf))

    def _part(self, windows: int) -> Audit:
        """The method for one of so many windows, which share the questions of a document."""
        config = getattr(self.inner, "config", None)
        if windows < 2 or not (name := getattr(config, "asks", "")):
            return self.inner
        part = copy.copy(self.inner)
        part.config = replace(config, **{name: -(-getattr(config, name) // windows)})  # type: ignore[attr-defined, type-var]
        return part


def _together(
    probes: Sequence[Probe],
) -> Generator[list[Query], list[Answer], list[Score]]:
    """Drive probes side by side: what they ask at one time is one batch."""
    scores: dict[int, Score] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(probes)))  # None starts a generator
    while answers:
        asked = {}
        for at, reply in answers.items():
            try:
                asked[at] = probes[at].send(reply)
            except StopIteration as stop:
                scores[at] = stop.value
        if asked:
            replies = iter((yield [query for batch in asked.values() for query in batch]))
            answers = {at: list(islice(replies, len(batch))) for at, batch in asked.items()}
        else:
            answers = {}
    return [scores[at] for at in range(len(probes))]


def _total(scores: Iterable[Score]) -> float:
    return sum(score.value for score in scores if score.value is not None)


def _joined(document: Document, windows: Sequence[Document], found: Sequence[Score]) -> Score:
    """Return the score of a document from those of the windows that were asked about."""
    whole = len(document.text.strip())
    asked = sum(len(one.text.strip()) for one in windows[: len(found)])
    if len(windows) == 1 and asked == whole:
        return found[0]
    read = [one for one in found if one.value is not None]
    details = {"windows": float(len(windows)), "windows asked": float(len(found))}
    details |= {"share asked": asked / whole}
    # 1. The mean so far. Of windows that need no question any more the evidence is not counted.
    left, means = len(windows) - len(found), list[float]()
    for count in range(1, len(windows) + 1):
        own: list[float] = [one.value for one in found[:count] if one.value is not None]
        means.append(sum(own) / (len(own) + max(0, count - len(found))) if own else math.nan)
    details |= {_AFTER.format(n): mean for n, mean in enumerate(means[:-1], 1) if mean == mean}
    # 2. What the method counts is summed; its further scores are means like the first.
    for name in dict.fromkeys(name for one in found for name in one.details):
        values = [one.details[name] for one in found if name in one.details]
        mean_of = len(values) + left if name.startswith("score/") else 1
        details[name] = sum(values) / mean_of
    if not read:
        return replace(found[-1], details=details)
    # 3. The words of the most telling window first.
    order = sorted(read, key=lambda one: -(one.value or 0.0))
    evidence = tuple(word for one in order for word in one.evidence)
    return Score(means[-1], read[0].features, evidence, details=details)
