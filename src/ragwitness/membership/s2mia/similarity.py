"""Likeness of an answer and the second half."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from ragwitness.models import Embedder
from ragwitness.text.words import STOP_WORDS, core, split_words

__all__ = ["bleu", "embedded_cosine", "lexical_cosine", "plain_words"]


def plain_words(text: str) -> list[str]:
    """The words of a text without case and punctuation."""
    return [word for w in split_words(text) if (word := core(w.text).casefold())]


def bleu(candidate: Sequence[str], reference: Sequence[str], order: int = 4) -> float:
    """Sentence BLEU with one reference (Papineni et al., 2002), in [0, 1].

    Precisions of n-grams longer than one word are smoothed by adding one to both counts (Lin and
    Och, 2004), since one sentence often has no four words in common. A candidate shorter than
    ``order`` words is judged by the n-grams it has.
    """
    if not candidate or not reference:
        return 0.0
    logs = []
    for n in range(1, min(order, len(candidate)) + 1):
        said, true = _ngrams(candidate, n), _ngrams(reference, n)
        matched = sum(min(count, true[gram]) for gram, count in said.items())  # clipped counts
        more = int(n > 1)
        if matched + more == 0:
            return 0.0
        logs.append(math.log((matched + more) / (said.total() + more)))
    brevity = min(0.0, 1.0 - len(reference) / len(candidate))
    return math.exp(brevity + sum(logs) / len(logs))


def lexical_cosine(one: Sequence[str], other: Sequence[str]) -> float:
    """Cosine of word counts without function words, in [0, 1].

    Function words count where one of the texts has nothing else.
    """
    counts = [Counter(word for word in words if word not in STOP_WORDS) for words in (one, other)]
    if not all(counts):
        counts = [Counter(one), Counter(other)]
    a, b = counts
    lengths = math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
    return sum(n * b[word] for word, n in a.items()) / lengths if lengths else 0.0


def embedded_cosine(embedder: Embedder, one: str, other: str) -> float:
    """Cosine of the two vectors, which an embedder returns at unit length."""
    a, b = embedder.embed([one, other])
    return float(a @ b)


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
