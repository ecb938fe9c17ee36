"""Words beyond what was sent: where an answer says words of a document again and goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragwitness.core.types import Interval, TokenLogprob
from ragwitness.membership.methods.response_parsing.probabilities import (
    UNREAD,
    probability_at,
    token_at,
)
from ragwitness.text.reply_cleanup import plain_word
from ragwitness.text.words import Word, core, split_words


def beyond(text: str, tail: Sequence[str], following: Sequence[str]) -> int | None:
    """Count the words that an answer says right behind words it was sent, in the document's order.

    Args:
        text: The answer.
        tail: Keys of the last words that were sent.
        following: Keys of the document's words behind them, which were never sent.

    Returns:
        The most words of ``following`` in a row behind any place where the answer says ``tail``;
        None where it says ``tail`` nowhere.
    """
    words = _said(text)
    keys = [plain_word(word.text) for word in words]
    counts = []
    for end in _ends(keys, tail):
        pairs = zip(keys[end:], following, strict=False)
        counts.append(next((n for n, (a, b) in enumerate(pairs) if a != b), None))
        if counts[-1] is None:  # every word that there is agrees
            counts[-1] = min(len(keys) - end, len(following))
    return max((n for n in counts if n is not None), default=None)


def next_probability(tokens: Sequence[TokenLogprob], tail: Sequence[str], word: str) -> Interval:
    """Return the probability of the word behind ``tail`` where an answer has just said it.

    It is known even where the answer closes a quotation there. Of several places the one that
    finds the word most probable counts.

    Args:
        tokens: Tokens that spell the answer; none give no probability.
        tail: Keys of the last words that were sent.
        word: The document's next word.
    """
    text = "".join(token.token for token in tokens)
    words = _said(text)
    found = UNREAD
    for end in _ends([plain_word(one.text) for one in words], tail):
        last = words[end - 1]
        place = last.start + last.text.find(core(last.text)) + len(core(last.text))
        at = token_at(tokens, place) if place < len(text) else len(tokens)
        if at < len(tokens):
            read = probability_at(tokens[at:], word)  # right there, not where it is said later
            found = read if found == UNREAD else max(found, read, key=lambda one: one.low)
    return found


def _said(text: str) -> list[Word]:
    return [word for word in split_words(text) if core(word.text)]


def _ends(keys: Sequence[str], tail: Sequence[str]) -> Iterator[int]:
    """Numbers of the words behind each place where ``tail`` stands."""
    size, wanted = len(tail), list(tail)
    for start in range(len(keys) - size + 1):
        if list(keys[start : start + size]) == wanted:
            yield start + size
