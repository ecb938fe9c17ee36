"""Reading the probability of a true word from an answer's (top-)log-probabilities.

A target returns tokens of a tokenizer nobody told us, the chosen one and a few alternatives per
position. A word may need several tokens, and only the chosen path shows its continuation. What
the list does not show is *censored*: known to lie below a bound, which is kept as an interval.
The published code writes .01 there instead.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from ragwitness.core.types import Answer, Evidence, Interval, TokenLogprob
from ragwitness.membership.methods.response_parsing.replies import (
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
from ragwitness.text.words import Word, core, split_words

_OPENERS = " \t\r\n\"'\u201c\u2018\u201e\u00ab([*`_>:\u2026"

UNREAD = Interval(0.0, 1.0)
"""Nothing is known."""


def unseen_bound(token: TokenLogprob) -> float:
    """Largest probability that a token missing from the list can have.

    It is at most that of the last alternative listed and at most the mass not listed.
    """
    if not token.top:
        return 1.0 - math.exp(min(0.0, token.logprob))
    listed = list(_listed(token).values())
    return max(0.0, min(min(listed), 1.0 - sum(listed)))


def word_probability(tokens: Sequence[TokenLogprob], word: str, before: str = "") -> Interval:
    """Return the probability of ``word``, wherever an answer comes to it.

    Args:
        tokens: The answer, without what it says again.
        word: The true word.
        before: What it should follow.

    Returns:
        The largest of what :func:`probability_at` finds at the places of the word
        (:func:`~ragwitness.membership.methods.response_parsing.replies.said_at`).
    """
    own = spelt(tokens)
    text = "".join(token.token for token in own)
    words = split_words(text)
    found = [probability_at(own, word)]
    for number in said_at(words, word, before)[1:]:
        start = words[number].start
        rest = tuple(kept(own, {place: text[place] for place in range(start, len(text))}))
        found.append(probability_at(rest, word))
    return max(found, key=lambda p: p.low)


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
            return _interval(low, high + chain)
        # Alternatives that spell the word out at this position.
        others = {text: p for text, p in _listed(token).items() if text != token.token}
        whole, doubtful = _spelled_by(others, rest, opening)
        low, high = low + chain * whole, high + chain * (whole + doubtful)
        p = math.exp(min(0.0, token.logprob))
        # The chosen token: it ends the word, begins it, or leaves it.
        fit, left = _fit(token.token, rest, opening)
        if fit in ("closed", "open"):
            ended = 1.0 if fit == "closed" else _word_ends(tokens[position + 1 :])
            return _interval(low + chain * p * ended, high + chain * p * ended)
        if fit == "none":
            if not high:  # no listed token spells the word: it is censored
                high = chain * max(_begun_by(others, rest, opening), unseen_bound(token))
            return _interval(low, high)
        opening = opening and left == rest
        # Chain rule: what follows counts with the probability of getting here.
        chain, rest = chain * p, left
    return _interval(low, high + chain)


def _interval(low: float, high: float) -> Interval:
    low, high = min(1.0, low), min(1.0, high)
    return Interval(high, high) if high - low < 1e-9 else Interval(low, high)


def _listed(token: TokenLogprob) -> dict[str, float]:
    return {text: math.exp(min(0.0, value)) for text, value in token.top if value == value}


def _fit(token: str, rest: str, opening: bool) -> tuple[str, str]:
    """How a token stands to what is left of the word.

    Returns:
        ``"closed"`` where it spells the rest and what follows cannot belong to the word,
        ``"open"`` where it ends with the word, ``"begins"`` with what is then left, or
        ``"none"``.
    """
    text = (token.lstrip(_OPENERS) if opening else token).casefold()
    if not text:
        # Blank before the word, or a piece of a character whose last piece carries it.
        return ("begins", rest) if opening or not token else ("none", rest)
    if text.startswith(rest):
        after = text[len(rest) : len(rest) + 1]
        return ("open" if not after else "none" if after.isalnum() else "closed"), ""
    return ("begins", rest[len(text) :]) if rest.startswith(text) else ("none", rest)


def _spelled_by(others: dict[str, float], rest: str, opening: bool) -> tuple[float, float]:
    """Mass of alternatives that spell the rest: surely, and perhaps.

    Nobody shows what follows an alternative. A word rarely grows, a number that is spelled digit
    by digit often does.
    """
    fits = [(_fit(text, rest, opening)[0], p) for text, p in others.items()]
    closed = sum(p for fit, p in fits if fit == "closed")
    ended = sum(p for fit, p in fits if fit == "open")
    return (closed, ended) if rest[-1:].isdigit() else (closed + ended, 0.0)


def _begun_by(others: dict[str, float], rest: str, opening: bool) -> float:
    return max(
        (p for text, p in others.items() if text and _fit(text, rest, opening)[0] == "begins"),
        default=0.0,
    )


def _word_ends(following: Sequence[TokenLogprob]) -> float:
    """Probability that the word does not go on in the next token; a longer word is not it."""
    if not following or math.isnan(following[0].logprob):
        return 1.0
    after = _listed(following[0]) or {following[0].token: math.exp(following[0].logprob)}
    return max(0.0, 1.0 - sum(p for text, p in after.items() if text[:1].isalnum()))


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


# Words beyond what was sent: where an answer says words of a document again and goes on.


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


# Reading yes or no: from the words of an answer, and from the odds of its first word.


_LEAST_PROBABILITY = 1e-8
_SURE = -math.log(_LEAST_PROBABILITY)
"""Log-odds of what a sentence says without the word yes or no, and the negative of a decline's."""


@dataclass(frozen=True, slots=True)
class YesNo:
    """What one answer says.

    Attributes:
        outcome: ``"yes"``, ``"no"``, ``"declined"``, ``"not_read"`` or ``"failed"``.
        text: 1 for yes, 0 for no and for a decline, else None.
        log_odds: log p(Yes) - log p(No), the lowest for a decline, None where neither is listed.
        yes: Probability of Yes, UNREAD without log-probabilities.
        reason: Why there is no value, for the kind of access asked for.
        published: RAG-MIA's own rule: what is not Yes is 0; None for a request that failed.
    """

    outcome: str
    text: float | None
    log_odds: float | None
    yes: Interval
    reason: str | None
    published: float | None

    def value(self, *, gray: bool) -> float | None:
        """The value for one kind of access."""
        return self.log_odds if gray else self.text


def read_yes_no(answer: Answer, question: str = "", *, gray: bool) -> YesNo:
    """Read one answer.

    Args:
        answer: What the target said.
        question: What it was asked.
        gray: Whether an answer without log-probabilities is useless.
    """
    reading = read_answer(answer, question)
    published = None if answer.error else 0.0
    if reading.outcome is AnswerOutcome.FAILED:
        return YesNo("failed", None, None, UNREAD, reading.reason, published)
    said = yes_or_no(reading.text)
    # A word decides before a decline, and a decline before what a sentence says of the text.
    declined = (
        reading.outcome is AnswerOutcome.DECLINED and said.start is None and said.value is not False
    )
    if declined or said.value is None:
        outcome = "declined" if declined else "not_read"
        reason = None if declined else "neither yes nor no can be read from the answer"
        value = 0.0 if declined else None
        odds = -_SURE if declined else None
        return YesNo(outcome, value, odds, UNREAD, reason, published)
    log_odds, yes, reason = _odds(answer, reading, said)
    outcome = "yes" if said.value else "no"
    published = float(said.value) if published is not None else None
    return YesNo(outcome, float(said.value), log_odds, yes, reason if gray else None, published)


def _odds(
    answer: Answer, reading: AnswerReading, said: YesOrNo
) -> tuple[float | None, Interval, str | None]:
    """Log-odds of yes where the word stands, its probability, and why there are none."""
    if not reading.tokens:
        spelt = not answer.tokens or answer_tokens(answer.text, answer.tokens)
        return None, UNREAD, UNSPELT if spelt is None else NO_LOGPROBS
    start = 0 if said.start is None else token_at(reading.tokens, said.start)
    yes, no = (_any(reading.tokens[start:], words) for words in (said.tongue.yes, said.tongue.no))
    # Either word may be censored; one of them must be listed.
    if yes.low > 0.0 or no.low > 0.0:
        return _log(yes) - _log(no), yes, None
    if said.start is None:
        return _SURE if said.value else -_SURE, UNREAD, None
    return None, UNREAD, "neither Yes nor No is among the listed alternatives"


def _any(tokens: tuple[TokenLogprob, ...], words: tuple[str, ...]) -> Interval:
    """Probability of any of some words, none of which begins another."""
    found = [probability_at(tokens, word) for word in words]
    low = sum(p.low for p in found)
    return Interval(min(1.0, low), min(1.0, low) if low else max(p.high for p in found))


def _log(p: Interval) -> float:
    """A censored word stands at its bound: the list's last entry, or the mass not listed."""
    return math.log(max(p.high, _LEAST_PROBABILITY))
