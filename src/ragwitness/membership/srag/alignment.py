"""Single-answer mode: every probe word read from one completion.

The answer is aligned with the document word by word. A probe word is read where the answer
reached the same place: the word before it is aligned, or it is itself, in a run of several
words. Beyond the point where the answer leaves the document nothing is known of a word, and it
stays unread.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from ragwitness.membership.srag.reading import UNREAD, word_probability
from ragwitness.membership.srag.segment import Segmented
from ragwitness.text.words import core, split_words
from ragwitness.types import Interval, TokenLogprob

__all__ = ["read_probes"]

_ANCHOR = 3  # words of the prefix put before the answer, so that its first word aligns

_RUN = 3  # fewer words in common, away from the anchor, are a coincidence


def read_probes(segmented: Segmented, tokens: Sequence[TokenLogprob]) -> list[Interval]:
    """Return the probability of each probe word, UNREAD where the answer never got there.

    Args:
        segmented: The passage and its probe words.
        tokens: Generated tokens with alternatives.
    """
    text = "".join(token.token for token in tokens)
    answer = split_words(text)
    starts = _token_starts(tokens)
    places = _align(segmented, [word.text for word in answer])
    read = []
    for probe in segmented.probes:
        place = places.get(probe.index)
        if place is None or place >= len(answer):
            read.append(UNREAD)
            continue
        first = _token_at(starts, answer[place].start)
        read.append(word_probability(tokens[first:], probe.word.text))
    return read


def _align(segmented: Segmented, answer: Sequence[str]) -> dict[int, int]:
    """Map word numbers of the passage to word numbers of the answer."""
    anchor = [
        word.text for word in segmented.words[max(0, segmented.half - _ANCHOR) : segmented.half]
    ]
    document = [_key(word.text) for word in segmented.words]
    said = [_key(word) for word in [*anchor, *answer]]
    places: dict[int, int] = {}
    for block in SequenceMatcher(None, document, said, autojunk=False).get_matching_blocks():
        if block.size < _RUN and block.b >= len(anchor):
            continue
        for step in range(block.size + (block.size > 0)):
            # One past the block: the place where the answer departs is still readable.
            place = block.b + step - len(anchor)
            if place >= 0 and (step < block.size or block.a + step not in places):
                places[block.a + step] = place
    return places


def _key(word: str) -> str:
    return (core(word) or word).casefold()


def _token_starts(tokens: Sequence[TokenLogprob]) -> list[int]:
    starts, position = [], 0
    for token in tokens:
        starts.append(position)
        position += len(token.token)
    return starts


def _token_at(starts: Sequence[int], position: int) -> int:
    """Number of the token that holds the character at ``position``."""
    from bisect import bisect_right

    return max(0, bisect_right(starts, position) - 1)
