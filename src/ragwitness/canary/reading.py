"""What one view of one example says of a canary: log-probability in nats, or share of hits."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t

from ragwitness.canary.families import contains
from ragwitness.core.errors import InputError
from ragwitness.core.types import Answer, TokenLogprob
from ragwitness.stats.evaluation import Rate
from ragwitness.targets.wire import token_bytes

TAIL = " and so forth"
"""Echoed behind every canary, so that its last token ends where it does in an answer. It does not
change what is read: a token's probability hangs on what stands before it."""

_HALF = math.log(0.5)
_PIECE = "\ufffd"  # part of a character, which no text can show
_SEEN = 4  # tokens before the boundary that must be split as they are without the canary


@dataclass(frozen=True, slots=True)
class CanaryReading:
    """A value, or why there is none.

    Attributes:
        value: Log-probability of the canary in nats (the sum over its tokens, not divided by their
            number; App. C.3), or share of hits; NaN where there is a trouble.
        tokens: How many tokens, or trials, it rests on.
        censored: Of these, known only to be at most what the value counts for them.
        before: The last tokens before the canary.
        trouble: Why there is no value.
    """

    value: float
    tokens: int = 0
    censored: int = 0
    before: tuple[str, ...] = ()
    trouble: str | None = None

    def then(self, piece: tuple[float, bool] | str) -> CanaryReading:
        """Return the reading with one more piece, or with what came in between."""
        if isinstance(piece, str):
            return CanaryReading(math.nan, self.tokens, self.censored, trouble=piece)
        return CanaryReading(self.value + piece[0], self.tokens + 1, self.censored + piece[1])


def read_continuation(
    answer: Answer, canary: str, alone: Sequence[TokenLogprob] | None = None
) -> CanaryReading:
    """Read log p(canary | text before) from the echoed end of text, canary and :data:`TAIL`.

    Args:
        answer: With the echoed tokens.
        canary: With its blank.
        alone: The echoed end of the text without the canary; None skips the comparison.
    """
    tokens = answer.tokens or ()
    if answer.error or not tokens:
        return _none(answer.error or "the target returned no log-probabilities of the prompt")
    end = _spelled_from(tokens, len(tokens), TAIL)
    if end is None:
        return _none("the target's tokenizer merges the canary with what follows it")
    start = _spelled_from(tokens, end, canary)
    if start is None:
        return _none("the target's tokenizer merges the canary with its prefix")
    before = tuple(token.token for token in tokens[max(0, start - _SEEN) : start])
    if alone is not None and before != tuple(token.token for token in alone[-len(before) :]):
        return _none("the target's tokenizer splits the prefix otherwise when the canary follows")
    # log p(c | prefix) = sum over the canary's tokens, by the chain rule; App. C.3 does not divide.
    values = [token.logprob for token in tokens[start:end]]
    if any(map(math.isnan, values)):
        return _none("the target left out a log-probability of the canary")
    if not all(map(math.isfinite, values)):
        return _none("the target gives the canary an infinite log-probability")
    return CanaryReading(math.fsum(values), len(values), before=before)


def next_piece(answers: Sequence[Answer], rest: str) -> tuple[str, str]:
    """Return the next piece of a canary: the likeliest listed token that it begins with.

    A model copies a string in the tokens that it was shown, so its likeliest path is mostly the
    tokenizer's own split; the longest token is not. Where none is listed, the next character, with
    the blank before it. An emoji comes in tokens that are parts of a character: the first part is
    read, and the whole character is forced, since no text can end within one.

    Args:
        answers: Answers of all views; a canary may be listed in one alone.
        rest: Rest of the canary.

    Returns:
        The piece as it is listed, and what is forced.
    """
    whole = rest.encode()
    fitting = [
        (value, text)
        for answer in answers
        for text, value in _listed(answer).items()
        if text.strip() and whole.startswith(token_bytes(text))
    ]
    blank = len(rest) - len(rest.lstrip())
    piece = max(fitting)[1] if fitting else rest[: blank + 1]
    size, forced = len(token_bytes(piece)), ""
    while len(forced.encode()) < size:
        forced = rest[: len(forced) + 1]
    return piece, forced


def read_piece(answer: Answer, piece: str) -> tuple[float, bool] | str:
    """Return a piece's log-probability and whether it is censored, or a trouble.

    A token that is not among the k alternatives has at most the k-th one's log-probability, which
    is what it counts for (left-censored). Where the answer ends instead, its end is the likeliest
    of all, and nothing is listed: any piece has at most half.
    """
    listed = _listed(answer)
    if answer.finish_reason == "stop" and not (answer.error or answer.text or listed):
        return _HALF, True
    if answer.error or not listed:
        return answer.error or "the target returned no log-probabilities"
    if not _wrote(answer):
        return "the target's log-probabilities are not those of what it wrote"
    return (listed[piece], False) if piece in listed else (min(listed.values()), True)


def read_hits(
    answers: Sequence[Answer], canary: str, holds: Callable[[str, str], bool] = contains
) -> CanaryReading:
    """Read the share of sampled answers that hold a canary; failed and empty ones are no trials.

    Args:
        answers: Of one view.
        canary: What is looked for.
        holds: Whether a text holds it.
    """
    # Less than half of the trials say too little: the example is unscorable, not a miss.
    said = [one.text for one in answers if not one.error and one.text.strip()]
    if 2 * len(said) < len(answers) or not said:
        errors = [one.error for one in answers if one.error]
        return _none(errors[0] if errors else "the target answered with nothing")
    hits = sum(holds(text, canary.strip()) for text in said)
    return CanaryReading(hits / len(said), len(said))


def _none(trouble: str) -> CanaryReading:
    return CanaryReading(math.nan, trouble=trouble)


def _listed(answer: Answer) -> dict[str, float]:
    """The alternatives of the first token generated, and that token."""
    first = answer.tokens[0] if answer.tokens else None
    if first is None:
        return {}
    listed = {**dict(first.top), first.token: first.logprob}
    return {text: value for text, value in listed.items() if math.isfinite(value)}


def _wrote(answer: Answer) -> bool:
    """Whether the first token is what was written; blanks and parts of characters aside."""
    token, text = (answer.tokens or ())[0].token.strip(), answer.text.strip()
    return _PIECE in token + text or text.startswith(token) or token.startswith(text)


def _spelled_from(tokens: Sequence[TokenLogprob], end: int, text: str) -> int | None:
    """Where the tokens begin that end at ``end`` and spell ``text``; None where none do."""
    joined = ""
    for start in range(end - 1, -1, -1):
        joined = tokens[start].token + joined
        if joined == text or (_PIECE in joined and _fits(joined, text)):
            return start
        if len(joined) > len(text) and _PIECE not in joined:
            return None
    return None


def _fits(joined: str, text: str) -> bool:
    """Whether tokens with parts of characters may spell a text, whose blank comes first."""
    parts = (re.escape(part) for part in re.split(f"{_PIECE}+", joined))
    return re.fullmatch("[^\\x00-\\x7f]+".join(parts), text) is not None


# The paper's statistic of a policy (2604.22191, Eq. 1).

_CONFIDENCE = 0.95


def amplification(triggered: ArrayLike, clean: ArrayLike) -> Rate:
    """Return A = 1/N sum_i [log pi(c | d~_i, q_i, p_i) - log pi(c | d_i, q_i, p_i)], in nats.

    Args:
        triggered: Log-probabilities under the planted trigger, shape (N,).
        clean: Log-probabilities of the same examples without, shape (N,).

    Returns:
        With N and Student's interval over examples, 95 %, which holds its level with a handful of
        them where a percentile bootstrap does not; NaN limits where N is 1.

    Raises:
        InputError: The shapes differ, there is no example, or a number is not finite.
    """
    first, second = np.asarray(triggered, np.float64), np.asarray(clean, np.float64)
    if first.shape != second.shape or first.ndim != 1 or not first.size:
        raise InputError("Amplification needs both views of the same examples.")
    # Paired by example: its own difficulty cancels (Eq. 1).
    gains = first - second
    if not np.isfinite(gains).all():
        raise InputError("Scores must be finite; leave unscorable examples out.")
    n, value = gains.size, float(gains.mean())
    if n == 1:
        return Rate(value, float("nan"), float("nan"), 1)
    half = float(t.ppf((1 + _CONFIDENCE) / 2, n - 1) * gains.std(ddof=1) / math.sqrt(n))
    return Rate(value, value - half, value + half, n)
