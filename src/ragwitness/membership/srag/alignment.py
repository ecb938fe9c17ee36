"""Single-answer mode: every probe word read from one completion.

The answer is aligned with the document word by word. A probe word is read where the answer
reached the same place: the word before it is aligned, or it is itself, in a run of several
words. Beyond the point where the answer leaves the document nothing is known of a word, and it
stays unread.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from ragwitness.membership.srag.features import log_odds
from ragwitness.membership.srag.reading import UNREAD, word_probability
from ragwitness.membership.srag.segment import Segmented
from ragwitness.text.words import core, split_words
from ragwitness.types import Interval, TokenLogprob

__all__ = ["Aligned", "Reading", "align", "gain", "read_probes", "same_word"]

_ANCHOR = 3  # words of the prefix put before the answer, so that its first word aligns

_RUN = 3  # fewer words in common, away from the anchor, are a coincidence


@dataclass(frozen=True, slots=True)
class Reading:
    """What one answer says of a passage.

    Attributes:
        probabilities: Of each probe word, UNREAD where the answer never got there.
        recovered: Share of the suffix's surprisal under the proxy that lies in words the answer
            has right and in place: 1 for a verbatim continuation, near 0 where only function
            words agree.
        run: Most suffix words right in a row.
        log_odds: Sum over every suffix word that the answer came to, probe word or not, of
            log p / p0 against the proxy. The word where the answer departs is among them: a
            member's true word is often the second choice there.
    """

    probabilities: tuple[Interval, ...]
    recovered: float = 0.0
    run: int = 0
    log_odds: float = 0.0


def read_probes(segmented: Segmented, tokens: Sequence[TokenLogprob]) -> Reading:
    """Read every probe word, and how much of the suffix was said, from one answer.

    Args:
        segmented: The passage and its probe words.
        tokens: Generated tokens with alternatives.
    """
    text = "".join(token.token for token in tokens)
    answer = split_words(text)
    starts = _token_starts(tokens)
    aligned = align(segmented, [word.text for word in answer])
    read = {
        index: word_probability(
            tokens[_token_at(starts, answer[place].start) :], segmented.words[index].text
        )
        for index, place in aligned.places.items()
    }
    return Reading(
        probabilities=tuple(read.get(probe.index, UNREAD) for probe in segmented.probes),
        recovered=aligned.recovered,
        run=aligned.run,
        log_odds=gain(segmented, read),
    )


def gain(segmented: Segmented, read: Mapping[int, Interval]) -> float:
    """Return the sum of log p / p0 over the suffix words that were read, by word number."""
    expected = segmented.surprisals
    return sum(log_odds(p, math.exp(-expected[i - segmented.half])) for i, p in read.items())


@dataclass(frozen=True, slots=True)
class Aligned:
    """Where an answer's words stand in the passage.

    Attributes:
        places: Number of the answer's word that stands where a suffix word should, by the
            suffix word's number in the passage; only where the answer came to.
        recovered: As in :class:`Reading`.
        run: As in :class:`Reading`.
    """

    places: Mapping[int, int]
    recovered: float
    run: int


def align(segmented: Segmented, answer: Sequence[str]) -> Aligned:
    """Align the words of an answer with those of the passage."""
    half, blocks = segmented.half, _blocks(segmented, answer)
    places = {
        index: place
        for index, place in _places(blocks).items()
        if half <= index < len(segmented.words) and place < len(answer)
    }
    runs = [sum(i >= half for i in block.words) for block in blocks]
    right = {i - half for block in blocks for i in block.words if i >= half}
    total = sum(segmented.surprisals)
    recovered = sum(segmented.surprisals[i] for i in right) / total if total else 0.0
    return Aligned(places, recovered, max(runs, default=0))


@dataclass(frozen=True, slots=True)
class _Block:
    """Words of the passage that the answer has in a row, and where."""

    words: range
    place: int


def _blocks(segmented: Segmented, answer: Sequence[str]) -> list[_Block]:
    half = segmented.half
    anchor = [word.text for word in segmented.words[max(0, half - _ANCHOR) : half]]
    document = [_key(word.text) for word in segmented.words]
    said = [_key(word) for word in [*anchor, *answer]]
    found = SequenceMatcher(None, document, said, autojunk=False).get_matching_blocks()
    return [
        _Block(range(block.a, block.a + block.size), block.b - len(anchor))
        for block in found
        if block.size >= _RUN or (block.size and block.b < len(anchor))
    ]


def _places(blocks: Sequence[_Block]) -> dict[int, int]:
    """Map word numbers of the passage to word numbers of the answer."""
    places: dict[int, int] = {}
    for block in blocks:
        # One past the block: the place where the answer departs is still readable.
        places.setdefault(block.words.stop, block.place + len(block.words))
        for step, index in enumerate(block.words):
            places[index] = block.place + step
    return {index: place for index, place in places.items() if place >= 0}


def same_word(one: str, other: str) -> bool:
    """Whether two words are the same but for case and punctuation around them."""
    return _key(one) == _key(other)


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
    return max(0, bisect_right(starts, position) - 1)
