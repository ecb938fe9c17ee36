"""What an attack that learns remembers of what leaked, and how new an answer to a prompt would be.

A prompt's expected novelty comes from the passages seen alone. With T the best score that one of
them reaches, and mu and sigma the mean and deviation of the score of a record that was not seen,
:math:`z = (T - mu) / sigma` is low where an unseen record would beat every seen one. Scores are
BM25's, and an unseen record holds each word, independently, with the share that the word has among
the seen; or they are cosines of an embedder.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ragwitness.models.base import Embedder
from ragwitness.text.frame import after_thought, stripped
from ragwitness.text.replies import declines
from ragwitness.text.runs import plain_tokens
from ragwitness.text.words import STOP_WORDS

_RUN, _KNOWN = 4, 0.5  # words by which a passage is recognised; share of them that makes it known
_SHORTEST = 6  # words of a passage
_LINKS, _TELLING = 12, 3  # pieces that came again; how much oftener with the piece that followed
_MANY = 8  # pieces of an answer that are rather the paragraphs of one passage
_COMMON = 0.2  # share of passages above which a word tells nothing
_SATURATION, _LENGTHS = 1.5, 0.75  # BM25's k1 and b
_GUESS = 0.4  # frequency part of a word that was never seen
_PERIOD, _ROUNDS = 12, 3  # longest loop, in words; times that it is said at least

_STUTTER = re.compile(r"\S*?([^\W_]{1,4}?)\1{4,}\S*")
_BREAKS = re.compile(
    r"\n\s*\n|^[ \t]*[-=*_#]{3,}[ \t]*$|^[ \t]*(?:[#*]+ *)?(?:document|passage|context|source|"
    r"record|chunk|text|excerpt)s?[ \t]*[\[(]?\d*[\])]?[ \t]*[:.*]+|^[ \t]*[\[(]\d+[\])][ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_OPENER = re.compile(
    r"^\W*(?:sure|certainly|of course|absolutely|okay|ok|yes|here (?:is|are|'s)|the (?:context|"
    r"following|passages?|text)|below (?:is|are))\b[^\n:]{0,160}:\s*",
    re.IGNORECASE,
)


def cut_passages(answer: str, prompt: str = "") -> list[str]:
    """Return the passages that an answer repeats.

    It is cut at blank lines, rules and headings such as "Document 2:"; the prompt, openers such as
    "Sure! Here is the context:", all rounds but the first of a loop, and pieces of fewer than six
    words are left out.
    """
    text, _ = after_thought(answer)
    plain = "".join(stripped(text or "", "")[0].values())
    if declines(plain):
        return []
    said = without_loops(plain.replace(prompt, "\n\n") if prompt else plain)
    pieces = (_OPENER.sub("", piece.strip()).strip() for piece in _BREAKS.split(said))
    return [piece for piece in pieces if len(plain_tokens(piece)) >= _SHORTEST]


def without_loops(text: str) -> str:
    """Return a text in which what a model says over and over, as small ones do, stands once.

    A word that repeats itself, as "ueueueueue", is left out.
    """
    text = _STUTTER.sub("", text)
    words = list(re.finditer(r"\S+\s*", text))
    said = [word.group().strip().casefold() for word in words]
    idle = [False] * len(said)
    for period in range(1, _PERIOD + 1):
        # A loop: words that equal those a period before them, for at least so many rounds.
        first = period
        for place in range(period, len(said) + 1):
            if place < len(said) and said[place] == said[place - period]:
                continue
            if place - first >= (_ROUNDS - 1) * period and place - first > _ROUNDS:
                idle[first:place] = [True] * (place - first)
            first = place + 1
    if not any(idle):
        return text
    return "".join(word.group() for word, loop in zip(words, idle, strict=True) if not loop)


def _runs(words: Sequence[str]) -> dict[tuple[str, ...], None]:
    """Runs of words, each once, in their order: an attack is the same one in every process."""
    return dict.fromkeys(tuple(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1))


class Memory:
    """The distinct passages that came, and ``shown``: how many of them the corpus has.

    A passage counts as shown where it holds a telling word of the prompt that drew it. Whatever
    else a model says is only avoided: no word is taken from it. With an ``embedder``, cosines judge
    what is new in place of words.
    """

    def __init__(self, always: str = "", embedder: Embedder | None = None) -> None:
        self.passages: list[str] = []
        self.shown = 0
        self.embedder = embedder
        self._corpus: dict[str, None] = {}  # words of what was shown
        self._idle = STOP_WORDS.union(
            plain_tokens(always)
        )  # words of every prompt, which tell nothing
        self._homes: dict[tuple[str, ...], int] = {}  # run of words -> the piece it came in
        self._pieces = 0
        self._inner: set[int] = set()  # pieces that came behind the piece before them
        self._links: Counter[bool] = Counter()
        self._postings: dict[str, tuple[list[int], list[float]]] = defaultdict(lambda: ([], []))
        self._packed: dict[str, tuple[NDArray[np.intp], NDArray[np.float64]]] = {}
        self._words = 0
        self._askable: list[str] | None = None
        self._tries = [1.0, 4.0]  # words that no passage held when asked: since met, still not
        self._vectors: list[NDArray[np.float32]] = []

    def __contains__(self, word: str) -> bool:
        return word in self._postings

    def add(self, answer: str, prompt: str) -> list[int]:
        """Take note of an answer; return the numbers of passages that it shows first."""
        asked = plain_tokens(prompt)
        strange = [word for word in dict.fromkeys(asked) if word not in self]
        own, drew = _runs(asked), set(asked) - self._idle
        fresh, found = list[str](), list[int]()
        known, first = self._pieces, len(self.passages)
        for piece in cut_passages(answer, prompt):
            runs = _runs(plain_tokens(piece))
            homes = [self._homes[run] for run in runs if run in self._homes]
            if len(homes) + len(runs.keys() & own) < _KNOWN * len(runs):
                fresh.append(piece)
                self._homes |= dict.fromkeys(runs, known + len(fresh) - 1)
                found.append(-1)
            elif homes:
                found.append(Counter(homes).most_common(1)[0][0])
        new = self._keep(fresh, found, drew)
        for word in strange:
            self._tries[word not in self] += 1
        if self.embedder and self.passages[first:]:
            self._vectors.append(self.embedder.embed(self.passages[first:]))
        return new

    def _keep(self, pieces: Sequence[str], found: Sequence[int], drew: set[str]) -> list[int]:
        """Keep new pieces as passages, or as one passage where passages have blank lines."""
        # Pieces that come again come with the piece that followed, or without it.
        for piece, after in pairwise(found):
            if piece + 1 in self._inner:
                self._links[after == piece + 1] += 1
        whole = self._links[True] > _TELLING * self._links[False]
        if self._links.total() < _LINKS:
            whole = len(found) > _MANY
        self._inner |= set(range(self._pieces + 1, self._pieces + len(pieces)))
        self._pieces += len(pieces)
        new = list[int]()
        for passage in ["\n\n".join(pieces)] if whole and pieces else pieces:
            words = plain_tokens(passage)
            if drew.intersection(words):
                new.append(len(self.passages))
                self._corpus |= dict.fromkeys(words)
            self.passages.append(passage)
            self._words += len(words)
            length = 1 - _LENGTHS + _LENGTHS * len(words) * len(self.passages) / self._words
            for word, count in Counter(words).items():
                numbers, weights = self._postings[word]
                numbers.append(len(self.passages) - 1)
                weights.append(count / (count + _SATURATION * length))
                self._packed.pop(word, None)
            self._askable = None
        self.shown += len(new)
        return new

    @property
    def askable(self) -> list[str]:
        """The words of the corpus that tell passages apart, in their order."""
        if self._askable is None:
            most = max(2, _COMMON * len(self.passages))
            telling = [word for word in self._corpus if len(word) > 2 and word not in STOP_WORDS]
            self._askable = [word for word in telling if len(self._postings[word][0]) <= most]
        return self._askable

    def weights(self, word: str) -> tuple[float, float, float]:
        """Return a word's rarity, and mean and variance of what it adds to an unseen record."""
        seen, (numbers, parts) = len(self.passages), self._postings.get(word, ([], []))
        rarity = math.log(1 + (seen - len(numbers) + 0.5) / (len(numbers) + 0.5))
        # A word never seen turns up in the next passage as often as such words have so far.
        share = (len(numbers) or self._tries[0] / sum(self._tries)) / (seen + 1)
        value = rarity * (sum(parts) / len(parts) if parts else _GUESS)
        return rarity, share * value, share * (1 - share) * value * value

    def postings(self, word: str) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the passages that hold a word, and its frequency part in each, shapes (n,)."""
        if word not in self._packed:
            numbers, parts = self._postings.get(word, ([], []))
            self._packed[word] = np.array(numbers, np.intp), np.array(parts)
        return self._packed[word]

    def novelty(self, prompts: Sequence[str]) -> NDArray[np.float64]:
        """Return z of each prompt, shape (n,): the lower, the likelier an unseen record answers."""
        if self.embedder is None or not self.passages:
            return np.array([Draft(self, plain_tokens(prompt)).z for prompt in prompts])
        self._vectors = [np.concatenate(self._vectors)]
        cosines = (self.embedder.embed(prompts) @ self._vectors[0].T).astype(float)
        z: NDArray[np.float64] = (cosines.max(1) - cosines.mean(1)) / (cosines.std(1) + 1e-6)
        return z


class Draft:
    """A prompt under construction: its words' BM25 ``scores`` with all passages, shape (n,)."""

    def __init__(self, memory: Memory, words: Sequence[str] = ()) -> None:
        self._memory = memory
        self.scores = np.zeros(len(memory.passages))
        self._mean, self._variance = 0.0, 1e-9
        for word in words:
            self.take(word)

    @property
    def z(self) -> float:
        """Expected novelty of the prompt as it stands."""
        return float((self.scores.max(initial=0.0) - self._mean) / math.sqrt(self._variance))

    def take(self, word: str) -> None:
        """Put a word into the prompt."""
        rarity, mean, variance = self._memory.weights(word)
        numbers, parts = self._memory.postings(word)
        self.scores[numbers] += rarity * parts
        self._mean, self._variance = self._mean + mean, self._variance + variance

    def best(self, pool: Sequence[str]) -> str:
        """Return the word of a pool with which z is lowest; the first of equals."""
        rarity, mean, variance = np.array([self._memory.weights(word) for word in pool]).T
        held = [self._memory.postings(word) for word in pool]
        # T with each word: the best of all passages, and of those that the word lifts.
        rivals = np.full(len(pool), self.scores.max(initial=0.0))
        owners = np.repeat(np.arange(len(pool)), [len(numbers) for numbers, _ in held])
        numbers, parts = (np.concatenate(column) for column in zip(*held, strict=True))
        np.maximum.at(rivals, owners, self.scores[numbers] + rarity[owners] * parts)
        z = (rivals - self._mean - mean) / np.sqrt(self._variance + variance)
        return pool[int(z.argmin())]
