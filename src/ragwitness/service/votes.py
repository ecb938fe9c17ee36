"""Answers under a promise: each document votes for a few words, and common ones alone are released.

A model reads one document at a time. A word is released if enough of these answers have it, after
noise (sample and aggregate, as in DPVoteRAG, arXiv 2412.04697, and DP-KSA, 2602.14374). The answer
is then written from the released words without any document. A document votes if its score passes a
public threshold, and a fixed number of times in its life (individual filters as in MuRAG,
2511.07637). So neither its votes nor their number depend on another document.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ragwitness.privacy.codes import word_weights
from ragwitness.privacy.ranges import positive, probability, whole
from ragwitness.privacy.sampler import discrete_laplace, system_bits


@dataclass(frozen=True, slots=True)
class VotePromise:
    """(epsilon, delta) for a document that is added or removed, over all its votes.

    Attributes:
        epsilon: Of all votes of a document together.
        delta: The same.
        uses: Votes of a document in its life.
        words: Words of a vote.
        threshold: Least score of a document that votes; public.

    Raises:
        InputError: A value is outside its range.
    """

    epsilon: float = 4.0
    delta: float = 1e-6
    uses: int = 1
    words: int = 4
    threshold: float = 0.3

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        probability("delta", self.delta)
        whole("uses", self.uses)
        whole("words", self.words)

    @property
    def scale(self) -> int:
        """Scale of the noise: a vote moves ``words`` counts by 1, at epsilon / ``uses`` a vote."""
        return max(1, math.ceil(self.words * self.uses / self.epsilon))

    @property
    def least(self) -> int:
        """Least noisy count of a released word.

        A word of one document alone has count 1, or none without it. It passes with a chance of
        exp(-(least - 1) / scale) at most. All such words of a life pass with delta at most.
        """
        return 1 + math.ceil(self.scale * math.log(self.words * self.uses / self.delta))


class Ballots(Protocol):
    """Counts the votes of each document, durably."""

    def use(self, names: Sequence[str], most: int) -> set[str]:
        """Return the documents that had votes left, each of which has one less now."""


def voted_words(
    question: str,
    documents: Iterable[tuple[str, str, float]],
    vote: Callable[[str, str], str],
    promise: VotePromise,
    ballots: Ballots,
) -> list[str]:
    """Return the words that enough documents' answers have, most first.

    Args:
        question: The question.
        documents: Id, text and score of every document.
        vote: Answers a question from one text; it may keep nothing from one call to the next.
        promise: The promise.
        ballots: The votes that documents have left.
    """
    texts = {name: text for name, text, score in documents if score >= promise.threshold}
    # Paid first: a crash from here on costs votes and never privacy.
    counts: Counter[str] = Counter()
    for name in sorted(ballots.use([*texts], promise.uses)):
        counts.update(ballot(vote(question, texts[name]), question, promise.words))
    bits = system_bits()
    noisy = {word: count + discrete_laplace(promise.scale, bits) for word, count in counts.items()}
    released = [word for word, count in noisy.items() if count >= promise.least]
    return sorted(released, key=lambda word: (-noisy[word], word))


def ballot(answer: str, question: str, words: int) -> list[str]:
    """Return the most telling words of an answer that the question does not have."""
    weights, known_words = word_weights(answer), word_weights(question)
    new = [word for word in weights if word not in known_words]
    return sorted(new, key=lambda word: (-weights[word], word))[:words]
