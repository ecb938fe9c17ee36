"""Reading yes or no: from the words of an answer, and from the odds of its first word."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ragwitness.core.types import Answer, Interval, TokenLogprob
from ragwitness.membership.methods.response_parsing.probabilities import (
    UNREAD,
    probability_at,
    token_at,
)
from ragwitness.membership.methods.response_parsing.replies import (
    NO_LOGPROBS,
    UNSPELT,
    AnswerOutcome,
    AnswerReading,
    read_answer,
)
from ragwitness.membership.methods.response_parsing.tokens import answer_tokens
from ragwitness.text.replies import YesOrNo, yes_or_no

_FLOOR = 1e-8
_SURE = -math.log(_FLOOR)
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
    return math.log(max(p.high, _FLOOR))
