"""Each document is placed under one public group of words, once and for life.

The words of a language fall into C groups by a hash, and a public list says how common each word
is. A document draws the group of the word that it is most likely to be asked by. The chance of that
group is e^epsilon times that of any other. Every question for ever is answered from the
drawn group: the score of a slot is that of the rarest of the question's words in its group. So any
two documents give any group with chances that differ by e^epsilon at most: (epsilon, 0) for each
document, whatever is asked, by whomever, for as long as the placement stands. No meter, no window
and no coalition enters.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.privacy.asked_words import asked_words, fit_model
from ragwitness.privacy.ranges import positive, whole
from ragwitness.privacy.sampler import Bits, uniform
from ragwitness.privacy.streams import canonical

_WORD = re.compile(r"[^\W_]{2,}")
_UNKNOWN = 100_000  # times that a word which the list lacks counts as seen
_COMMON = 5.0  # natural logarithms; a word that is more common tells nothing
_OTHER = 1 << 16  # weight of a group that is not near
_MOST_EPSILON = 30

Codes = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Placement:
    """Randomised response over public groups of words.

    Attributes:
        capacity: Slots, empty ones included.
        top: Slots returned, K.
        epsilon: Of a document, for life.
        groups: Groups of words, C.
        near: Groups of a document's foremost words that share the high chance.
        asked: Public model of the words that are asked (``privacy.asked_words``); none: the rarest.

    Raises:
        InputError: A value is outside its range.
    """

    capacity: int
    top: int
    epsilon: float
    groups: int
    near: int = 1
    asked: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        whole("groups", self.groups, 2)
        if positive("epsilon", self.epsilon) > _MOST_EPSILON:
            raise InputError(
                f"Documents are placed for an epsilon of {_MOST_EPSILON} at most, not"
                f" {self.epsilon:g}."
            )
        if not 1 <= self.near < self.groups:
            raise InputError(f"{self.near} of {self.groups} groups cannot be near.")
        if whole("top", self.top) > whole("capacity", self.capacity):
            raise InputError(f"{self.capacity} slots cannot give {self.top}.")

    @classmethod
    def of(
        cls, capacity: int, top: int, epsilon: float, asked: tuple[float, ...] = ()
    ) -> Placement:
        """Return the placement that finds most, by slots and epsilon (experiments/collusion)."""
        # The number of groups leaves a tenth of the draws to chance, and an answer holds a whole
        # group. Where epsilon is too small for both, several groups share the chance.
        odds = math.exp(min(positive("epsilon", epsilon), _MOST_EPSILON))
        groups = max(2, capacity // top, min(2 * capacity, int(odds / 10)))
        near = min(max(1, round(groups / odds)), groups - 1)
        return cls(capacity, top, epsilon, groups, near, asked)

    @property
    def weights(self) -> tuple[int, int]:
        """Weight of all near groups together, and of all groups; any other one's is 2^16."""
        weight = math.floor(math.exp(self.epsilon) * (1 - 1e-12) * _OTHER)
        return self.near * weight, self.near * weight + (self.groups - self.near) * _OTHER

    @property
    def worth(self) -> float:
        """Chance that a question with one of a document's near words finds it in a full index."""
        true, total = self.weights
        rivals = (self.capacity - 1) / self.groups
        share = true / total
        chance = min(1.0, self.top / (1 + rivals)) / self.near
        return share * chance + (1 - share) * self.top / self.capacity

    @property
    def digest(self) -> str:
        """SHA-256, in hex, of everything here."""
        fields = {name: str(value) for name, value in asdict(self).items()}
        return hashlib.sha256(canonical(fields | {"format": "ragwitness/codes/v2"})).hexdigest()

    def place(self, text: str, bits: Bits) -> int:
        """Draw the group of a document.

        Args:
            text: The document.
            bits: Source of randomness, secret.
        """
        return self.draw(self.near_groups(text), bits)

    def near_groups(self, text: str) -> list[int]:
        """Return the groups of the words that a document is asked by, then any, by number."""
        near: dict[int, None] = {}
        for word in asked_words(_WORD.findall(text), word_weights(text), self.asked):
            if len(near) == self.near:
                break
            near[self.groups_of([word])[0]] = None
        spare = (group for group in range(self.groups) if group not in near)
        return [*near, *(next(spare) for _ in range(self.near - len(near)))]

    def draw(self, near: Sequence[int], bits: Bits) -> int:
        """Draw a group: one of the near ones with weight e^epsilon, any other with weight 1.

        Args:
            near: As many groups as :attr:`near` says, each once.
            bits: Source of randomness, secret.
        """
        true, total = self.weights
        point = uniform(total, bits)
        if point < true:
            return near[point * self.near // true]
        drawn = (point - true) >> 16
        for group in sorted(near):
            drawn += drawn >= group
        return drawn

    def scores(self, text: str) -> NDArray[np.float64]:
        """Return the score of each group: the weight of the rarest word that a text has in it."""
        lightest_first = sorted(word_weights(text).items(), key=lambda pair: pair[1])
        by_group = np.zeros(self.groups)
        for group, (_, weight) in zip(
            self.groups_of([word for word, _ in lightest_first]), lightest_first, strict=True
        ):
            by_group[group] = weight
        return by_group

    def groups_of(self, words: Sequence[str]) -> list[int]:
        """Return the group of each word."""
        digests = (hashlib.blake2b(word.encode(), digest_size=8).digest() for word in words)
        return [int.from_bytes(digest, "big") % self.groups for digest in digests]

    def answer(self, query: str, codes: Codes) -> tuple[int, ...]:
        """Return the slots whose groups score most, best first; the same question, the same slots.

        Args:
            query: The question.
            codes: Group of each slot, shape (slots,).
        """
        # Between slots of one group the question's hash decides, and no document.
        lot = int.from_bytes(hashlib.sha256(query.encode()).digest(), "big")
        lots = np.random.default_rng(lot).permutation(len(codes))
        best = np.argsort(-self.scores(query)[codes[lots]], kind="stable")[: self.top]
        return tuple(lots[best].tolist())

    def words(self, query: str) -> dict[int, set[str]]:
        """Return the telling words of a question by their group."""
        by_group: dict[int, set[str]] = {}
        words = [*word_weights(query)]
        for group, word in zip(self.groups_of(words), words, strict=True):
            by_group.setdefault(group, set()).add(word)
        return by_group


def has_word(text: str, words: Set[str]) -> bool:
    """Whether a document has one of some words."""
    return not words.isdisjoint(_WORD.findall(text.casefold()))


def asked_model(texts: Sequence[str], questions: Sequence[Sequence[str]]) -> tuple[float, ...]:
    """Fit the public model of asked words to documents and the questions about each."""
    telling = [
        {word for question in several for word in word_weights(question)} for several in questions
    ]
    return fit_model([(_WORD.findall(text), word_weights(text)) for text in texts], telling)


def word_weights(text: str) -> Mapping[str, float]:
    """Return how telling each word of a text is: how rare it is in public, and how often here."""
    counts_public, total = _frequencies()
    counts = Counter(_WORD.findall(text.casefold()))
    rare = {word: math.log(total / counts_public.get(word, _UNKNOWN)) for word in counts}
    return {
        word: (1 + math.log(counts[word])) * weight
        for word, weight in rare.items()
        if weight > _COMMON
    }


@cache
def _frequencies() -> tuple[dict[str, int], int]:
    """The public list of 82,765 English words and how often each was seen."""
    path = files("symspellpy") / "frequency_dictionary_en_82_765.txt"
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    counts = {word: int(count) for word, count in (line.split() for line in lines)}
    return counts, sum(counts.values())
