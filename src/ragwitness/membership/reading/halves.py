"""A document in two halves: the first is asked with, the second is what a member's answer says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.models.base import LanguageModel
from ragwitness.models.words import word_scores
from ragwitness.text.words import Word, core, passages, split_words

_PIECE = 100  # words scored at a time
_BEFORE = 4  # words shown before a deciding word


@dataclass(frozen=True, slots=True)
class Halves:
    """A document cut in the middle.

    Attributes:
        text: Both halves, after the cut.
        first: The first half.
        second: The second half.
        cut: Words left out at the end of a long document.
    """

    text: str
    first: str
    second: str
    cut: int


def cut_words(text: str, most: int) -> tuple[str, int]:
    """Keep the first ``most`` words; return them and how many were left out."""
    words = split_words(text)
    if len(words) <= most:
        return text.strip(), 0
    return text[words[0].start : words[most - 1].end], len(words) - most


def halve(text: str, max_words: int, min_words: int) -> Halves | None:
    """Cut a document after half of its words; None where it has fewer than ``min_words``."""
    kept, cut = cut_words(text, max_words)
    # The length counts words with a letter or digit; the cut counts all, so that halves are alike.
    words = split_words(kept)
    if sum(bool(core(word.text)) for word in words) < min_words:
        return None
    # S2MIA cuts a document in the middle: the first half is the query (Li et al. 2024).
    middle = words[len(words) // 2].start
    return Halves(kept, kept[:middle].rstrip(), kept[middle:], cut)


def baselines(proxy: LanguageModel, text: str) -> dict[int, float]:
    """Probability of each word under the proxy, by the word's first character.

    The text is scored in pieces; words of a piece that the proxy cannot hold are missing.
    """
    found: dict[int, float] = {}
    place = 0
    for piece in passages(text, _PIECE, 1):
        start = text.index(piece, place)
        # Searched for after the last piece: the same words may stand in the document twice.
        place = start + len(piece)
        if proxy.count_tokens(piece) * 2 <= proxy.context_length:
            for score in word_scores(proxy, piece):
                found[start + score.start] = math.exp(min(0.0, score.logprob))
    return found


def words_before(text: str, words: Sequence[Word], number: int) -> str:
    """Return the few words before word ``number`` of a text, to be shown with it as evidence."""
    return text[words[max(0, number - _BEFORE)].start : words[number].start].strip()
