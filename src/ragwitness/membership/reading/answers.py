"""The one reader of answers: strip what is around the answer, then say what the answer is.

A chat model thinks, greets, quotes and declines. Every method reads its answers through
:func:`read_answer` first, so that known and questioned documents are read by one rule.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from ragwitness.membership.reading.outcomes import only_declined, trouble_with
from ragwitness.types import Answer, TokenLogprob

_THOUGHT = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>\s*", re.DOTALL | re.IGNORECASE)
_OPEN_THOUGHT = re.compile(r"\s*<think(?:ing)?>(?!.*</think)", re.DOTALL | re.IGNORECASE)


class Outcome(enum.StrEnum):
    """What an answer is."""

    ANSWERED = "answered"
    DECLINED = "declined"
    """The target was asked and says that it lacks the answer: the lowest answer there is."""
    FAILED = "failed"
    """There is no answer: an error, nothing, a web page, or a thought that never ended."""


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer without what stands around it.

    Attributes:
        outcome: What the answer is.
        text: What is left of the answer.
        tokens: The tokens that spell ``text``; empty where the target gave none.
        reason: Why it declined or failed, in words; None where it answered.
        removed: Names of what was stripped, in order, such as ``"thought"``.
    """

    outcome: Outcome
    text: str
    tokens: tuple[TokenLogprob, ...] = ()
    reason: str | None = None
    removed: tuple[str, ...] = ()


def read_answer(answer: Answer, question: str = "") -> Reading:
    """Read one answer.

    Args:
        answer: What the target said.
        question: What it was asked, so that an echo of it can be told from an answer.
    """
    if answer.error:
        return Reading(Outcome.FAILED, "", reason=answer.error)
    if _OPEN_THOUGHT.match(answer.text):
        reason = "it thought until its tokens were spent"
        return Reading(Outcome.FAILED, "", reason=reason, removed=("thought",))
    thought = _THOUGHT.match(answer.text)
    text = answer.text[thought.end() :] if thought else answer.text
    removed = ("thought",) if thought else ()
    tokens = () if thought else answer.tokens or ()
    trouble = trouble_with(Answer(text, finish_reason=answer.finish_reason))
    if trouble is None:
        return Reading(Outcome.ANSWERED, text, tokens, removed=removed)
    declined = only_declined(trouble) and bool(text.strip())
    outcome = Outcome.DECLINED if declined else Outcome.FAILED
    return Reading(outcome, text, tokens, trouble, removed)
