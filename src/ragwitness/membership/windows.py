"""Windows: the stretches of a document that are asked about, without text that others share.

A notice, a letterhead, a template or a list of chapters that two documents of an audit share says
nothing about either. A document longer than a passage of an index is asked about in several places:
a system that holds one chapter of a book holds none of its other words. See
``docs/design/windows.md``.
"""

from __future__ import annotations

import copy
import hashlib
import math
import random
from array import array
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.types import Answer, Audit, Capability, Document, Probe, Query, Score
from ragwitness.text.overlap import among, in_windows
from ragwitness.text.sample import load_sample
from ragwitness.text.words import SENTENCE_END, Word, as_read, core, script_pattern, split_words

SIZE = 1_000
"""Characters of a window at most: about a passage of an index."""
MOST = 5
"""Windows of a document."""

_RULES = "windows.1"  # part of every key of scores: those of other windows do not mix
_RUN = 8  # words in a row by which a text is the same as another's
_FEWEST = 8  # words of its own that a document needs
_FULL = 0.9  # share of the most own words that a window may hold
_ENDS = script_pattern(rf"[{SENTENCE_END}]\W*$|\n")  # a sentence, or a line


# Words that a set of documents shares.

_BASE = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, eq=False)
class Elsewhere:
    """Runs of words (pairs by default) that occur in two documents of a set or more.

    It is made from the documents in question and the known ones together, and treats them all
    alike: a document outside stays exchangeable with the known-outside documents, and ranks of a
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
    def among(
        cls,
        documents: Iterable[Document],
        length: int = 2,
        holders: int = 2,
        split: Callable[[str], list[Word]] = split_words,
    ) -> Elsewhere:
        """Return the runs that documents share; a text that occurs twice counts once.

        Args:
            documents: The set.
            length: Words of a run.
            holders: Least documents that hold one.
            split: Makes words of a text.
        """
        # 1. Every run of every text, once for each text.
        buffer = array("Q")
        for text in {document.text for document in documents}:
            buffer.frombytes(_runs_of(text, length, split))
        # 2. Repeated runs are side by side when sorted.
        hashes = np.frombuffer(buffer, np.uint64)
        hashes.sort()
        more = holders - 1
        runs = np.unique(hashes[more:][hashes[more:] == hashes[: hashes.size - more]])
        return cls(runs, hashlib.sha256(runs.tobytes()).hexdigest()[:16], length)

    def has(self, words: Sequence[Word], index: int) -> bool:
        """Whether another document has the same word behind the same words."""
        # A rule without shared words on either side was tried too. The remaining words are then so
        # rare that a weak reader misses them (AUC .934 for .990 on the generated sample, .958 for
        # .974 on WikiText-2, 30 and 60 members).
        first = index + 1 - self.length
        return first >= 0 and bool(among(self.runs, _runs(words[first : index + 1], self.length)))

    def covers(self, words: Sequence[Word]) -> NDArray[np.bool_]:
        """Return for each word of a text whether it is part of any of the runs."""
        starts = np.flatnonzero(among(self.runs, _runs(words, self.length)))
        return in_windows(len(words), starts, self.length)


@lru_cache(4096)  # sets of documents have texts in common, the package's among them
def _runs_of(text: str, length: int, split: Callable[[str], list[Word]]) -> bytes:
    return np.unique(_runs(split(as_read(text)), length)).tobytes()


def _runs(words: Sequence[Word], length: int) -> NDArray[np.uint64]:
    """Hash each word with those behind it, shape (words + 1 - length,)."""
    numbers = np.array([crc32(core(word.text).lower().encode()) for word in words], np.uint64)
    windows = max(0, len(words) + 1 - length)
    hashes = np.zeros(windows, np.uint64)
    for offset in range(length if windows else 0):
        hashes = hashes * _BASE + numbers[offset : offset + windows]
    return hashes


# The windows of a document.


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Cuts the windows of the documents of one set.

    The windows follow from a text and from the set, in which documents in question and known
    ones are treated alike. So a document outside stays exchangeable with the known-outside ones.

    Attributes:
        shared: Runs of words in two documents or more.
        common: Runs in three or more, used where nothing else distinguishes a document.
        digest: Hash of both and of the rules, part of the identity of an audit.
        typical: Windows of the documents of the set, the median, without the package's generated
            texts where there are others. They share the questions of a document: as many about a
            window of any document, since windows are ranked together.
    """

    shared: Elsewhere
    common: Elsewhere
    digest: str
    typical: int = 1

    @classmethod
    def among(cls, documents: Sequence[Document]) -> Windows:
        """Return the windows of a set of documents, near copies as one."""
        shared, common = (Elsewhere.among(documents, _RUN, holders) for holders in (2, 3))
        windows = cls(shared, common, "")
        # Generated texts of the package only show which words are rare.
        generated = {document.text for document in load_sample()}
        texts = {document.text for document in documents}
        counts = sorted(max(1, len(windows.of(text))) for text in texts - generated or texts)
        typical = counts[len(counts) // 2] if counts else 1
        # Where all documents have as many, the questions are those of earlier versions.
        mixed = (str(typical),) * (len(set(counts)) > 1)
        digest = " ".join((_RULES, shared.digest, common.digest, *mixed))
        return cls(shared, common, digest, typical)

    def of(self, text: str) -> tuple[str, ...]:
        """Return the windows of a text in the order in which they are asked about.

        Their number follows from the length of the text's own words: one for each ``SIZE``
        characters, up to ``MOST``. There is none where hardly a word is its own.
        """
        text = as_read(text)
        words = split_words(text)
        own_words = np.flatnonzero(~self.shared.covers(words))
        # 1. Its own words; if one other document has them too, the words of these two alone.
        if own_words.size < _FEWEST < len(words):
            own_words = np.flatnonzero(~self.common.covers(words))
        if not words or own_words.size < min(_FEWEST, len(words)):
            return () if words else (text,)
        # A short text with little before its first own word, or behind its last, stays whole.
        span = words[own_words[-1]].end - words[own_words[0]].start
        if len(text) <= SIZE and 4 * span >= 3 * len(text.strip()):
            return (text,)
        # 2. Blocks of equally many of them, as many as the windows.
        size = sum(words[at].end + 1 - words[at].start for at in own_words.tolist())
        blocks = np.array_split(own_words, min(MOST, math.ceil(size / SIZE)))
        # 3. A window at a random place of each, in a random order; the text is the seed. So the
        # first windows of a long document are as good as all of a shorter one.
        draw = random.Random(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
        windows = [_window(text, words, block, draw) for block in blocks]
        return tuple(dict.fromkeys(draw.sample(windows, len(windows))))


def _window(text: str, words: Sequence[Word], own: NDArray[np.int64], draw: random.Random) -> str:
    """Cut a window that begins and ends with own words and holds as many as any, or nearly."""
    begins = np.array([words[at].start for at in own.tolist()])
    ends = np.array([words[at].end for at in own.tolist()])
    last = np.maximum(np.searchsorted(ends, begins + SIZE, side="right"), np.arange(own.size) + 1)
    counts = last - np.arange(own.size)
    full = np.flatnonzero(counts >= _FULL * counts.max()).tolist()

    def opens(number: int) -> bool:
        """Whether a sentence or a line ends before a word."""
        before = text[words[number - 1].start : words[number].start]
        return not number or bool(_ENDS.search(before.rstrip(" ")))

    # At the beginning of a sentence, where there is one.
    at = draw.choice([at for at in full if opens(int(own[at]))] or full)
    return text[begins[at] : min(ends[last[at] - 1], begins[at] + SIZE)]


# The audit of all windows.


_AFTER = "score after window {}"


def running_scores(score: Score) -> list[float]:
    """Return a document's score by its first window, its first two and so on to all of them.

    A document of w windows is ranked among known documents of w or more, each by its first w. The
    windows of a document outside and the first w of a known one are draws of one kind. So its
    p-value is exact whatever the joined score, and however unlike the lengths in both sets.

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
        windows: Cuts the documents of the set.
    """

    def __init__(self, audit: Audit, windows: Windows) -> None:
        self.inner = audit
        # Questions depend on both, and so does the identity of the audit.
        method_digest = getattr(getattr(audit, "elsewhere", None), "digest", "")
        self.elsewhere = replace(windows, digest=f"{windows.digest} {method_digest}")

    @property
    def name(self) -> str:
        """The method's."""
        return self.inner.name

    @property
    def requires(self) -> frozenset[Capability]:
        """The method's."""
        return self.inner.requires

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the method."""
        if name == "inner":  # not set yet, as in a copy
            raise AttributeError(name)
        return getattr(self.inner, name)

    def windows(self, document: Document) -> list[Document]:
        """Return the windows of a document as documents."""
        return [replace(document, text=text) for text in self.elsewhere.of(document.text)]

    def questions(self, document: Document) -> list[Query]:
        """Return every question that may be asked, where the method can list them."""
        windows = self.windows(document)
        listed = getattr(self._part(), "questions", lambda _: ())
        return [query for window in windows for query in listed(window)]

    def probe(self, document: Document) -> Probe:
        """Return the generator that audits one document; its value is the :class:`Score`."""
        windows = self.windows(document)
        if not windows:
            return Score(None, reason="all of its text stands in other documents of the audit")
        config, method = getattr(self.inner, "config", None), self._part()
        enough = float(getattr(config, getattr(config, "stops_at", ""), math.inf))
        # A method that stops where the evidence is strong asks about one window after the other.
        step = len(windows) if enough == math.inf else 1
        scores: list[Score] = []
        while len(scores) < len(windows) and sum(_values(scores)) < enough:
            batch = windows[len(scores) : len(scores) + step]
            scores += yield from _together([method.probe(window) for window in batch])
        return _joined(document, windows, scores)

    def _part(self) -> Audit:
        """The method for one window: the windows of a typical document share its questions."""
        config, windows = getattr(self.inner, "config", None), self.elsewhere.typical
        if windows < 2 or not (name := getattr(config, "asks", "")):
            return self.inner
        method = copy.copy(self.inner)
        method.config = replace(config, **{name: -(-getattr(config, name) // windows)})  # type: ignore[attr-defined, type-var]
        return method


def _together(probes: Sequence[Probe]) -> Generator[list[Query], list[Answer], list[Score]]:
    """Drive probes side by side: the questions of one step are one batch."""
    scores: dict[int, Score] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(probes)))  # None starts a generator
    while answers:
        batches = {}
        for number, reply in answers.items():
            try:
                batches[number] = probes[number].send(reply)
            except StopIteration as stop:
                scores[number] = stop.value
        queries = [query for batch in batches.values() for query in batch]
        replies = iter((yield queries) if batches else ())
        answers = {number: list(islice(replies, len(batch))) for number, batch in batches.items()}
    return [scores[number] for number in range(len(probes))]


def _values(scores: Iterable[Score]) -> list[float]:
    return [score.value for score in scores if score.value is not None]


def _joined(document: Document, windows: Sequence[Document], scores: Sequence[Score]) -> Score:
    """Return the score of a document from those of the windows that were asked about."""
    size, count_asked = len(document.text.strip()), len(scores)
    share = sum(len(window.text.strip()) for window in windows[:count_asked]) / size
    if len(windows) == 1 and share == 1:
        return scores[0]
    details = {
        "windows": float(len(windows)),
        "windows asked": float(count_asked),
        "share asked": share,
    }
    # 1. The mean so far. A window that needs no question any more adds no evidence.
    means = list[float]()
    for count in range(1, len(windows) + 1):
        values = _values(scores[:count])
        n = len(values) + max(0, count - count_asked)
        means.append(sum(values) / n if values else math.nan)
    details |= {_AFTER.format(n): mean for n, mean in enumerate(means[:-1], 1) if mean == mean}
    # 2. Counts of the method are summed; its further scores are means like the first.
    for name in dict.fromkeys(name for score in scores for name in score.details):
        values = [score.details[name] for score in scores if name in score.details]
        further = name.startswith("score/")
        n = len(values) + len(windows) - count_asked if further else 1
        details[name] = sum(values) / n
    readable = [score for score in scores if score.value is not None]
    bets = tuple(bet for score in scores for bet in score.bets)
    if not readable:
        return replace(scores[-1], details=details, bets=bets)
    # 3. The words of the most telling window first.
    order = sorted(readable, key=lambda score: -(score.value or 0.0))
    evidence = tuple(word for score in order for word in score.evidence)
    return Score(means[-1], readable[0].features, evidence, details=details, bets=bets)
