"""Reading the probability of a true word from an answer's (top-)log-probabilities.

A target returns tokens of a tokenizer nobody told us, the chosen one and a few alternatives per
position. A word may need several tokens, and only the chosen path shows its continuation. What
the list does not show is *censored*: known to lie below a bound, which is kept as an interval.
The published code writes .01 there instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ragwitness.text.words import core
from ragwitness.types import Interval, TokenLogprob

__all__ = ["UNREAD", "unseen_bound", "word_probability"]

_OPENERS = " \t\r\n\"'\u201c\u2018([*"

UNREAD = Interval(0.0, 1.0)
"""Nothing is known."""


def unseen_bound(token: TokenLogprob) -> float:
    """Largest probability that a token missing from the list can have.

    It is at most that of the last alternative listed and at most the mass not listed.
    """
    if not token.top:
        return 1.0 - math.exp(min(0.0, token.logprob))
    listed = [math.exp(logprob) for _, logprob in token.top]
    return max(0.0, min(min(listed), 1.0 - sum(listed)))


def word_probability(tokens: Sequence[TokenLogprob], word: str) -> Interval:
    """Return the probability that the answer goes on with ``word``.

    Case and punctuation around the word do not matter: an answer may open with a capital or a
    quotation mark. Alternatives that spell the whole word add up; if the chosen token spells
    only its beginning, the next position decides about the rest (chain rule).

    Args:
        tokens: Positions from the one where the word should begin.
        word: The true word.

    Returns:
        A point where the word is spelled out by listed tokens, else [0, bound].
    """
    rest, chain = (core(word) or word).casefold(), 1.0
    for position, token in enumerate(tokens):
        candidates = dict(token.top) or {token.token: token.logprob}
        candidates.setdefault(token.token, token.logprob)
        whole = sum(math.exp(value) for text, value in candidates.items() if _completes(text, rest))
        if whole > 0:
            return Interval(min(1.0, chain * whole), min(1.0, chain * whole))
        left = _remaining(token.token, rest, first=position == 0)
        if left is None:
            begun = (math.exp(v) for t, v in candidates.items() if _remaining(t, rest) is not None)
            return Interval(0.0, chain * max([*begun, unseen_bound(token)]))
        chain *= math.exp(min(0.0, token.logprob))
        rest = left
    return Interval(0.0, chain if tokens else 1.0)


def _stripped(token: str) -> str:
    return token.lstrip(_OPENERS).casefold()


def _completes(token: str, rest: str) -> bool:
    text = _stripped(token)
    return text.startswith(rest) and not text[len(rest) : len(rest) + 1].isalnum()


def _remaining(token: str, rest: str, *, first: bool = True) -> str | None:
    """What is left of ``rest`` after the token, or None if the token does not begin it."""
    text = _stripped(token)
    if not text:
        return rest if first else None
    return rest[len(text) :] if rest.startswith(text) and text != rest else None
