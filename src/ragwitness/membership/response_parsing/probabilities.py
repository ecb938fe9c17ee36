"""Probabilities from an answer's (top-)log-probabilities: of a true word, and of yes or no.

A target returns tokens of an unknown tokenizer: the chosen one and a few alternatives per
position. A word may need several tokens, and only the chosen path shows its continuation. The
probability of a token outside the list is *censored*: it lies below a known bound, and is kept as
an interval. The published code writes .01 there instead.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from operator import eq

import numpy as np

from ragwitness.core.types import Answer, Evidence, Interval, TokenLogprob
from ragwitness.membership.response_parsing.replies import (
    NO_LOGPROBS,
    UNSPELT,
    AnswerOutcome,
    AnswerReading,
    answer_tokens,
    kept,
    read_answer,
    said_at,
    spelt,
)
from ragwitness.text.replies import YesOrNo, plain_word, yes_or_no
from ragwitness.text.words import core, extends, split_words, spoken_words

_OPENERS = " \t\r\n\"'\u201c\u2018\u201e\u00ab([*`_>:\u2026"

UNREAD = Interval(0.0, 1.0)
"""Nothing is known."""


def unseen_bound(token: TokenLogprob) -> float:
    """Largest probability that a token missing from the list can have.

    It is at most that of the last alternative listed and at most the mass not listed.
    """
    # Without a list, only the mass of the chosen token is known.
    if not token.top:
        return 1.0 - math.exp(min(0.0, token.logprob))
    listed = list(_listed(token).values())
    return max(0.0, min(min(listed), 1.0 - sum(listed)))


def word_probability(tokens: Sequence[TokenLogprob], word: str, before: str = "") -> Interval:
    """Return the probability of ``word`` at the place in an answer where it is highest.

    Args:
        tokens: The answer, without its repetition of the question.
        word: The true word.
        before: The text that it should follow.

    Returns:
        The largest value of :func:`probability_at` at the places of the word
        (:func:`~ragwitness.membership.response_parsing.replies.said_at`).
    """
    tokens = spelt(tokens)
    text = "".join(token.token for token in tokens)
    words = split_words(text)
    probabilities = [probability_at(tokens, word)]
    for number in said_at(words, word, before)[1:]:
        rest = dict(enumerate(text[words[number].start :], words[number].start))
        probabilities.append(probability_at(tuple(kept(tokens, rest)), word))
    return max(probabilities, key=lambda p: p.low)


def probability_at(tokens: Sequence[TokenLogprob], word: str) -> Interval:
    """Return the probability that tokens begin with ``word``.

    Case and punctuation around the word do not matter: an answer may open with a capital or a
    quotation mark. Alternatives that spell the whole word add up; where the chosen token spells
    only its beginning, the next position decides about the rest (chain rule).

    Args:
        tokens: Positions from the one where the word should begin.
        word: The true word.

    Returns:
        A point where listed tokens spell the word out, else an interval.
    """
    rest, chain, low, high = (core(word) or word).casefold(), 1.0, 0.0, 0.0
    opening = True
    for position, token in enumerate(tokens):
        if math.isnan(token.logprob):
            break
        # Alternatives that spell the word out at this position.
        others = {text: p for text, p in _listed(token).items() if text != token.token}
        sure, doubtful = _spelled_by(others, rest, opening)
        low, high = low + chain * sure, high + chain * (sure + doubtful)
        p = math.exp(min(0.0, token.logprob))
        # The chosen token: it ends the word, begins it, or leaves it.
        fit, remainder = _fit(token.token, rest, opening)
        if fit in ("closed", "open"):
            ended = 1.0 if fit == "closed" else _word_ends(rest, tokens[position + 1 :])
            return _interval(low + chain * p * ended, high + chain * p * ended)
        if fit == "none":
            if not high:  # no listed token spells the word: it is censored
                high = chain * max(_begun_by(others, rest, opening), unseen_bound(token))
            return _interval(low, high)
        opening = opening and remainder == rest
        # Chain rule: the continuation counts with the probability of the tokens so far.
        chain, rest = chain * p, remainder
    return _interval(low, high + chain)


def _interval(low: float, high: float) -> Interval:
    low, high = min(1.0, low), min(1.0, high)
    return Interval(high, high) if high - low < 1e-9 else Interval(low, high)


def _listed(token: TokenLogprob) -> dict[str, float]:
    return {text: math.exp(min(0.0, value)) for text, value in token.top if value == value}


def _fit(token: str, rest: str, opening: bool) -> tuple[str, str]:
    """Compare a token with the rest of the word.

    Returns:
        ``"closed"`` where it spells the rest and its next sign cannot belong to the word,
        ``"open"`` where it ends with the word, ``"begins"``, or ``"none"``; and the rest behind it.
    """
    text = (token.lstrip(_OPENERS) if opening else token).casefold()
    if not text:
        # A blank before the word, or a piece of a character that a later token completes.
        return ("begins", rest) if opening or not token else ("none", rest)
    if text.startswith(rest):
        after = text[len(rest) :]
        return ("open" if not after else "none" if extends(rest, after) else "closed"), ""
    return ("begins", rest[len(text) :]) if rest.startswith(text) else ("none", rest)


def _spelled_by(others: dict[str, float], rest: str, opening: bool) -> tuple[float, float]:
    """Mass of alternatives that spell the rest: surely, and perhaps.

    Servers do not show the token behind an alternative. A word rarely grows; a number that is
    spelled digit by digit often does.
    """
    # A digit behind an alternative could continue a number.
    fits = [(_fit(text, rest, opening)[0], p) for text, p in others.items()]
    closed = sum(p for fit, p in fits if fit == "closed")
    ended = sum(p for fit, p in fits if fit == "open")
    return (closed, ended) if rest[-1:].isdigit() else (closed + ended, 0.0)


def _begun_by(others: dict[str, float], rest: str, opening: bool) -> float:
    return max(
        (p for text, p in others.items() if text and _fit(text, rest, opening)[0] == "begins"),
        default=0.0,
    )


def _word_ends(rest: str, following: Sequence[TokenLogprob]) -> float:
    """Probability that the word does not continue in the next token."""
    if not following or math.isnan(following[0].logprob):
        return 1.0
    after = _listed(following[0]) or {following[0].token: math.exp(following[0].logprob)}
    return max(0.0, 1.0 - sum(p for text, p in after.items() if extends(rest, text)))


def token_at(tokens: Sequence[TokenLogprob], position: int) -> int:
    """Return the number of the token that holds the character at ``position`` of their text."""
    starts = list(accumulate((len(token.token) for token in tokens), initial=0))[: len(tokens)]
    return max(0, bisect_right(starts, position) - 1)


# A word's probability beside the proxy's.

_FLOOR = 1e-4


def log_odds(probability: Interval, baseline: float) -> float:
    """Return log p / p0 with a censored p at its upper bound; 0 for an unread word.

    The bound favours membership, for calibration documents as for audited ones, so a p-value
    from this score stays valid.
    """
    if probability == UNREAD:
        return 0.0
    return math.log(max(probability.high, _FLOOR)) - math.log(max(baseline, _FLOOR))


def mean_log_odds(evidence: Sequence[Evidence]) -> float:
    """Mean of :func:`log_odds` over the probe words; needs no training."""
    return float(np.mean([log_odds(item.probability, item.baseline) for item in evidence]))


# Words beyond the question: where an answer repeats words of a document and continues.


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
    # Words in a row that agree, behind each occurrence.
    keys = [plain_word(word.text) for word in spoken_words(text)]
    counts = [len([*takewhile(bool, map(eq, keys[end:], following))]) for end in _ends(keys, tail)]
    return max(counts, default=None)


def next_probability(tokens: Sequence[TokenLogprob], tail: Sequence[str], word: str) -> Interval:
    """Return the probability of the word behind ``tail`` where an answer has just said it.

    It is known even where the answer closes a quotation there. Of several places the highest
    probability counts.

    Args:
        tokens: Tokens that spell the answer; none give no probability.
        tail: Keys of the last words that were sent.
        word: The document's next word.
    """
    text = "".join(token.token for token in tokens)
    words = spoken_words(text)
    probabilities = []
    for end in _ends([plain_word(w.text) for w in words], tail):
        last = words[end - 1]
        position = last.start + last.text.find(core(last.text)) + len(core(last.text))
        if position < len(text):  # right there, not at a later place
            probabilities.append(probability_at(tokens[token_at(tokens, position) :], word))
    readable = [p for p in probabilities if p != UNREAD]
    return max(readable, key=lambda p: p.low, default=UNREAD)


def _ends(keys: Sequence[str], tail: Sequence[str]) -> list[int]:
    """Numbers of the words behind each occurrence of ``tail``."""
    size = len(tail)
    return [n for n in range(size, len(keys) + 1) if [*keys[n - size : n]] == [*tail]]


# Yes or no: from the words of an answer, and from the odds of its first word.

_LEAST_PROBABILITY = 1e-8
_SURE = -math.log(_LEAST_PROBABILITY)
"""Log-odds of a sentence that affirms without the word yes; its negative for a decline."""


@dataclass(frozen=True, slots=True)
class YesNo:
    """The reading of one answer.

    Attributes:
        outcome: ``"yes"``, ``"no"``, ``"declined"``, ``"not_read"`` or ``"failed"``.
        text: 1 for yes, 0 for no and for a decline, else None.
        log_odds: log p(Yes) - log p(No), the lowest for a decline, None where neither is listed.
        yes: Probability of Yes, UNREAD without log-probabilities.
        reason: Why there is no value, for the requested kind of access.
        published: RAG-MIA's own rule: any answer but Yes is 0; None for a failed request.
    """

    outcome: str
    text: float | None = None
    log_odds: float | None = None
    yes: Interval = UNREAD
    reason: str | None = None
    published: float | None = None


def read_yes_no(answer: Answer, question: str = "", *, gray: bool) -> YesNo:
    """Read one answer.

    Args:
        answer: The target's answer.
        question: The question.
        gray: Whether an answer without log-probabilities is useless.
    """
    reading = read_answer(answer, question)
    published = None if answer.error else 0.0
    if reading.outcome is AnswerOutcome.FAILED:
        return YesNo("failed", reason=reading.reason, published=published)
    reply = yes_or_no(reading.text)
    # A word decides before a decline, and a decline before a sentence about the text.
    declined = reading.outcome is AnswerOutcome.DECLINED
    if declined and reply.start is None and reply.value is not False:
        return YesNo("declined", 0.0, -_SURE, published=published)
    if reply.value is None:
        reason = "neither yes nor no can be read from the answer"
        return YesNo("not_read", reason=reason, published=published)
    log_odds, yes, trouble = _odds(answer, reading, reply)
    value, outcome = float(reply.value), "yes" if reply.value else "no"
    published = None if published is None else value
    return YesNo(outcome, value, log_odds, yes, trouble if gray else None, published)


def _odds(
    answer: Answer, reading: AnswerReading, reply: YesOrNo
) -> tuple[float | None, Interval, str | None]:
    """Log-odds of yes at the place of the word, its probability, and why there are none."""
    if not reading.tokens:
        spelling = not answer.tokens or answer_tokens(answer.text, answer.tokens)
        return None, UNREAD, UNSPELT if spelling is None else NO_LOGPROBS
    tokens = reading.tokens[0 if reply.start is None else token_at(reading.tokens, reply.start) :]
    yes, no = (_any(tokens, words) for words in (reply.tongue.yes, reply.tongue.no))
    # Either word may be censored; one of them must be listed.
    if yes.low > 0.0 or no.low > 0.0:
        # A censored word has its bound: the list's last entry, or the mass not listed.
        log_yes, log_no = (math.log(max(p.high, _LEAST_PROBABILITY)) for p in (yes, no))
        return log_yes - log_no, yes, None
    if reply.start is None:
        return _SURE if reply.value else -_SURE, UNREAD, None
    return None, UNREAD, "neither Yes nor No is among the listed alternatives"


def _any(tokens: tuple[TokenLogprob, ...], words: tuple[str, ...]) -> Interval:
    """Probability of any of some words, none of which begins another."""
    probabilities = [probability_at(tokens, word) for word in words]
    low = min(1.0, sum(p.low for p in probabilities))
    return Interval(low, low or max(p.high for p in probabilities))
