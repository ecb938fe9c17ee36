"""Evidence on an absolute scale: bets that an answer goes on with words that were never sent.

A target that holds a document can say its next words. How often would it say them without? A
*reference model*, which has not read the document, is asked the same question and gives the
probability of these words. The bet on them is fixed before the answer and pays 1 / probability.
The assumption: a target without the document says them no more often than the reference model
guesses. Then the mean pay is at most 1, whatever else the target does, and the wealth of all bets
on a document is an e-value. By Markov's inequality it reaches 1 / alpha with probability at most
alpha, so one document gets a verdict without any other. See ``docs/design/e-values.md``.

Three rules keep the mean pay at most 1. Only the document's own spelling wins. An answer that
repeats the words before the gap twice opens two bets, one after the other. A gap that the target
filled is not bet on again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.bet import Bet
from ragwitness.text.replies import plain_word
from ragwitness.text.words import core, extends, split_words

CAP = 3.0
"""Nats that one word may pay at most, since a reference model is not the target. Chosen on
recorded answers alone (``experiments/real/absolute.md``)."""

MOST = 40.0
"""Pay of one bet at most: another text of the index may hold the whole phrase, as two reports of
one event do. So two places are needed where several documents are in question."""

STAKES = (0.5, 0.25)
"""Shares of the wealth that are bet where an answer repeats the words before for the first time,
and later."""

LENGTH = 4
"""Words behind a place that are bet on: no question sends them."""

_GAP = "\u2026"

Guesses: TypeAlias = Mapping[Bet, tuple[float, ...]]
"""Nats of each word of a won bet: minus the log of its largest guess."""

Guesser: TypeAlias = Callable[[Iterable[Bet]], tuple[tuple[str, ...], Guesses]]
"""Returns the names of reference models and their guesses: ``references.References``, or a stored
result's."""


# Bets: what an answer says behind words that it was sent.


def next_words(text: str, length: int = LENGTH) -> list[str]:
    """Return the first words of a text, each with the signs before it."""
    words, end = list[str](), 0
    for word in split_words(text):
        if stem := core(word.text):
            stop = word.start + word.text.find(stem) + len(stem)
            words.append(text[end:stop])
            end = stop
        if len(words) == length:
            break
    return words


def bets_on(
    question: str, answer: str, tail: Sequence[str], ahead: Sequence[str], gap: str = ""
) -> list[Bet]:
    """Return a bet for each place of an answer where the document's words could follow.

    Args:
        question: The question.
        answer: The answer, without thoughts.
        tail: The last words before the place, without case and punctuation; none where the answer
            itself begins there.
        ahead: The words behind it (:func:`next_words`).
        gap: The document without them.
    """
    answer = " ".join(answer.split())
    if not ahead:
        return []
    if not tail:
        starts = [0]
    else:
        words = [word for word in split_words(answer) if core(word.text)]
        keys = [plain_word(core(word.text)) for word in words]
        starts = [
            word.start + word.text.find(core(word.text)) + len(core(word.text))
            for n, word in enumerate(words)
            if n + 1 >= len(tail) and keys[n + 1 - len(tail) : n + 1] == [*tail]
        ]
    bets, end = list[Bet](), 0
    for start in starts:
        if start < end:
            continue
        matched, end = _matching(answer, start, ahead)
        stake = STAKES[min(len(bets), len(STAKES) - 1)]
        details = (tuple(matched), question, answer[:start], gap) if matched else ()
        bets.append(Bet(stake, len(ahead), *details))
    return bets


def _matching(answer: str, start: int, ahead: Sequence[str]) -> tuple[list[str], int]:
    """Words of ``ahead`` in an answer at a place, letter by letter, and where they end."""
    words = list[str]()
    for word in ahead:
        # An answer that begins with the word has no space before it.
        spelled = word if start else word.lstrip()
        stop = start + len(spelled)
        if answer[start:stop] != spelled or extends(spelled, answer[stop : stop + 1]):
            break
        words.append(spelled)
        start = stop
    return words, start


def with_gap(document: str, start: int, end: int) -> str:
    """Return a document with a mark in place of some of its characters."""
    return f"{document[:start]}{_GAP}{document[end:]}"


# Pay, and the e-value of a document.


def pay(bet: Bet, nats: Sequence[float], cap: float = CAP) -> float:
    """Return what one bet pays: half of the stake is on one word, a quarter on two, and so on.

    Args:
        bet: The bet.
        nats: Of each word that was said: minus the log of its guess, shape (words,).
        cap: Nats of a word at most.
    """
    total, wealth, share = 1.0 - bet.stake, 0.0, bet.stake / 2
    for index, value in enumerate(nats):
        wealth += min(value, cap)
        # The last bet gets the rest, so that the shares add up to the stake.
        total += share * (2 if index == bet.length - 1 else 1) * math.exp(wealth)
        share /= 2
    return total


def e_value(bets: Iterable[Bet], guesses: Guesses) -> float:
    """Return the wealth after all bets on one document, from a stake of 1."""
    return math.prod(min(MOST, pay(bet, guesses[bet] if bet.words else ())) for bet in bets)


def closed_e_benjamini_hochberg(e_values: Sequence[float]) -> NDArray[np.float64]:
    """Return the least level at which closed e-BH rejects each hypothesis, shape (n,).

    The best r are rejected at alpha if each set of hypotheses that holds n of them has a mean
    e-value of at least n / (alpha r). Each of the r must have 1 / alpha by itself. One of the sets
    is that of all true hypotheses, and its mean is an e-value. So the false discovery rate is at
    most alpha, whatever the dependence (Xu and others, arXiv 2509.02517). It rejects whatever e-BH
    does.
    """
    order = np.argsort(-np.asarray(e_values, dtype=np.float64), kind="stable")
    e = np.maximum(np.asarray(e_values, dtype=np.float64)[order], 1e-300)
    levels = np.ones(e.size)
    for best in range(1, 1 + int(np.sum(e > 1))):
        # The set with the smallest mean, for each number of the best: the smallest of the best,
        # and all others below the mean.
        sizes, others = np.arange(1, best + 1), e[best:][::-1]
        within, sums = np.cumsum(e[:best][::-1]), np.cumsum([0.0, *others])
        means, lower = np.full(best, np.inf), within / sizes
        while np.any(lower < means):
            means = np.minimum(means, lower)
            added = np.searchsorted(others, means)
            lower = (within + sums[added]) / (sizes + added)
        levels[best - 1] = max(1 / e[best - 1], np.max(sizes / (best * means)))
    adjusted = np.empty_like(levels)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(levels[::-1])[::-1])
    return adjusted


# The assumption, tested on documents that are known to be outside.


@dataclass(frozen=True, slots=True)
class MeanPay:
    """Pay of the bets on documents known to be outside.

    Attributes:
        questions: Bets' answers behind it.
        mean: Mean pay of an answer.
        e_value: Evidence that the mean is above 1, itself an e-value.
    """

    questions: int
    mean: float
    e_value: float


_SHARES = (0.02, 0.05, 0.1, 0.2, 0.5)


def test_mean_pay(pays: Sequence[float]) -> MeanPay:
    """Test the assumption "the mean pay of a document outside is at most 1".

    Under it, the product of ``1 + share * (pay - 1)`` is a test supermartingale for each share,
    and so is their mean: the e-value of the test.

    Args:
        pays: Wealth of each document known to be outside, in the order of asking.
    """
    if not pays:
        return MeanPay(0, math.nan, 1.0)
    values = np.asarray(pays)
    wealth = [float(np.prod(1 + share * (values - 1))) for share in _SHARES]
    return MeanPay(values.size, float(values.mean()), float(np.mean(wealth)))
