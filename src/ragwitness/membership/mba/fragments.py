"""What one mask may cover, and which words the proxy's tokenizer breaks up (§4.3.1, Alg. 2)."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from ragwitness.models import TextScores
from ragwitness.text.words import core, split_words

__all__ = ["Unit", "token_units", "word_units"]

_JOINING = "-/"


@dataclass(frozen=True, slots=True)
class Unit:
    """A word without the punctuation at its ends, or a token of it.

    Attributes:
        index: Number of its word in the text.
        text: As it stands, ``document[start:end]``.
        start: First character.
        end: One past the last character.
        logprob: Sum over its tokens, in nats.
        rank: Largest rank among its tokens (Alg. 3, line 13), 0 for the most probable.
        fragmented: Whether the tokenizer broke it up (Alg. 2).
    """

    index: int
    text: str
    start: int
    end: int
    logprob: float
    rank: int
    fragmented: bool = False


def word_units(text: str, scores: TextScores) -> list[Unit]:
    """Return every word that holds a letter or digit, with the scores of its own tokens.

    Punctuation at a word's ends is no part of it: it stays in the masked text, so neither its
    rank nor its probability may count. A word that no token touches is left out.

    Args:
        text: What was scored.
        scores: Its token scores by the proxy.
    """
    ranges = [_characters(text, *pair) for pair in scores.offsets.tolist()]
    ends = [end for _, end in ranges]
    found = []
    for index, word in enumerate(split_words(text)):
        stem = core(word.text)
        if not any(character.isalnum() for character in stem):
            continue
        start = word.start + word.text.index(stem)
        end = start + len(stem)
        first = bisect_right(ends, start)
        tokens = []
        while first < len(ranges) and ranges[first][0] < end:
            tokens.append(first)
            first += 1
        if tokens:
            found.append(
                Unit(
                    index,
                    stem,
                    start,
                    end,
                    float(scores.logprobs[tokens].sum()),
                    int(scores.ranks[tokens].max()),
                    any(_continues(text, ranges[token], start) for token in tokens),
                )
            )
    return found


def token_units(text: str, scores: TextScores) -> list[Unit]:
    """Return every token that holds a letter or digit: what is masked without Alg. 2.

    Of several tokens that spell one character only the first is kept.
    """
    words = split_words(text)
    starts = [word.start for word in words]
    found: list[Unit] = []
    for token, (first, last) in enumerate(scores.offsets.tolist()):
        said = text[first:last]
        stem = core(said.strip())
        if not any(character.isalnum() for character in stem):
            continue
        start = first + said.index(stem)
        if len(stem.split()) > 1 or (found and start < found[-1].end):
            continue
        found.append(
            Unit(
                bisect_right(starts, start) - 1,
                stem,
                start,
                start + len(stem),
                float(scores.logprobs[token]),
                int(scores.ranks[token]),
            )
        )
    return found


def _characters(text: str, start: int, end: int) -> tuple[int, int]:
    """The characters a token counts for, by the rules of ``models.words``."""
    if text[start:end] == " ":
        return end, end + 1
    return (start, end) if start < end else (max(start - 1, 0), max(start, 1))


def _continues(text: str, token: tuple[int, int], start: int) -> bool:
    """Whether a token goes on with a word: it begins with a letter, "-" or "/" (Alg. 2, line 6).

    Digits and commas do not join, so "3.5" is no fragmented word. The published loop also ends
    before it stores a word at the end of the text; this one is kept.
    """
    first = text[token[0]]
    return token[0] > start and (first.isalpha() or first in _JOINING)
