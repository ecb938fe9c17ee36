"""From token scores to word scores, whatever the tokenizer."""

from __future__ import annotations

import bisect
from dataclasses import dataclass

from ragwitness.models.base import LanguageModel, TextScores
from ragwitness.text.words import split_words


@dataclass(frozen=True, slots=True)
class WordScore:
    """How probable one word was, given all before it.

    Attributes:
        word: The word as it stands, with its punctuation.
        start: First character in the text.
        end: One past the last character.
        logprob: Natural log-probability: the sum over the word's tokens.
        rank: Largest rank among its tokens (0: every token was the most probable one).
        tokens: Number of tokens of the word.
    """

    word: str
    start: int
    end: int
    logprob: float
    rank: int
    tokens: int


def counted_characters(text: str, start: int, end: int) -> tuple[int, int]:
    """The characters a token counts for.

    A lone space counts for the character after it: where a tokenizer splits " 500" into a space
    and digits, the space is what first says that no ordinary word comes. Some tokenizers give
    an empty range to the later bytes of a character; they count for the one that ends there.
    """
    if text[start:end] == " ":
        return end, end + 1
    return (start, end) if start < end else (max(start - 1, 0), max(start, 1))


def map_to_words(text: str, scores: TextScores) -> list[WordScore]:
    """Give every word of ``text`` (see ``text.words``) the tokens that touch it.

    Line breaks and runs of spaces touch no word and are left out; one space belongs to the word
    after it. A token across two words counts for both, since neither was certain before it; so
    a word's log-probability is never flattered.

    Args:
        text: What was scored.
        scores: Token scores of the text.

    Returns:
        One entry per word, in order. A word that no token touches (only where a tokenizer
        drops characters) is left out.
    """
    found = split_words(text)
    ends = [word.end for word in found]
    logprobs, ranks, counts = [0.0] * len(found), [0] * len(found), [0] * len(found)
    for index, (first, last) in enumerate(scores.offsets.tolist()):
        start, end = counted_characters(text, first, last)
        # Every word that the token touches, from the first that does not end before it.
        place = bisect.bisect_right(ends, start)
        while place < len(found) and found[place].start < end:
            # log p(word) = sum of log p(token | all before) over its tokens (chain rule).
            logprobs[place] += float(scores.logprobs[index])
            ranks[place] = max(ranks[place], int(scores.ranks[index]))
            counts[place] += 1
            place += 1
    return [
        WordScore(word.text, word.start, word.end, logprob, rank, count)
        for word, logprob, rank, count in zip(found, logprobs, ranks, counts, strict=True)
        if count
    ]


def word_scores(model: LanguageModel, text: str) -> list[WordScore]:
    """Score the words of plain ``text`` in one forward pass: how hard each is to guess.

    Raises:
        ModelError: The text does not fit the model's context length.
    """
    return map_to_words(text, model.score([text])[0])
