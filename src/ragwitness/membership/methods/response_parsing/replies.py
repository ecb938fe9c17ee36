"""The one reader of answers: strip what stands around an answer, then say what the answer is.

A chat model thinks, greets, quotes, formats and declines. Every method reads its answers through
:func:`read_answer`, so that known and questioned documents are read by one rule. Where the words
of an answer stand in a document is found by the module ``continuation``.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

from ragwitness.core.types import SILENT, Answer, Query, TokenLogprob
from ragwitness.membership.methods.response_parsing.continuation import begins_to_echo
from ragwitness.membership.methods.response_parsing.tokens import answer_tokens, kept
from ragwitness.text.replies import declines, preamble
from ragwitness.text.reply_cleanup import SPECIAL, after_thought, echo, stripped
from ragwitness.text.words import split_words


class AnswerOutcome(enum.StrEnum):
    """What an answer is."""

    ANSWERED = "answered"
    DECLINED = "declined"
    """The target was asked and says that it lacks the answer: the lowest answer there is."""
    FAILED = "failed"
    """There is no answer: an error, a filter, nothing, a web page, or a thought without an end."""


@dataclass(frozen=True, slots=True)
class AnswerReading:
    """An answer without what stands around it.

    Attributes:
        outcome: What the answer is.
        text: What is left of the answer.
        tokens: The tokens that spell ``text``; empty where the target gave none, or others.
        reason: Why it declined or failed, in words; None where it answered.
        removed: Names of what was stripped, in order, such as ``"thought"``.
    """

    outcome: AnswerOutcome
    text: str
    tokens: tuple[TokenLogprob, ...] = ()
    reason: str | None = None
    removed: tuple[str, ...] = ()


DECLINED = "the target says that it does not know or may not say"
THINKING = "it thought until its tokens were spent"
FILTERED = SILENT["content_filter"]
CUT = "it said the text again until its tokens were spent"
REPEATED = "it only said the question again"
NOTHING = "the target answered with nothing"
UNSPELT = "the log-probabilities do not spell the answer"
NO_LOGPROBS = "the target returned no log-probabilities"

_NEAR = 5  # words behind an echo that was cut
_THOUGHT_ROOM = 1024  # tokens
_PAGE = re.compile(r"^\s*<(!doctype|html|head|body|\?xml)\b", re.IGNORECASE)


def read_answer(answer: Answer, question: str = "", expected: str = "") -> AnswerReading:
    """Read one answer.

    A filter is a failure and no decline: it also stops answers that quote what was found.

    Args:
        answer: What the target said.
        question: What it was asked; an echo of it at the answer's beginning is no answer.
        expected: How the document goes on where it should go on with it. An answer with its first
            two words is no decline: a document may say "I am unable to sleep".
    """
    if answer.error:
        return AnswerReading(AnswerOutcome.FAILED, "", reason=answer.error.rstrip("."))
    # 1. Thoughts first: many servers hide their tokens.
    text, thought = after_thought(answer.text)
    removed = ("thought",) if thought else ()
    if text is None:
        return AnswerReading(AnswerOutcome.FAILED, "", reason=THINKING, removed=removed)
    text = SPECIAL.sub("", text)
    # 2. What is left, as its tokens spell it.
    tokens = answer_tokens(text, answer.tokens or ())
    if tokens and (text.strip() or not thought):
        text = "".join(token.token for token in tokens)
    left, named = stripped(text, "" if _begins_as(text, expected) else question)
    plain = "".join(left.values())
    reading = AnswerReading(
        AnswerOutcome.ANSWERED, plain, tuple(kept(tokens or (), left)), removed=(*removed, *named)
    )
    # 3. What it is.
    declined = declines(plain) and not _begins_as(plain, expected)
    if answer.finish_reason == "content_filter" and not declined:
        return replace(reading, outcome=AnswerOutcome.FAILED, reason=FILTERED)
    if _PAGE.match(text):
        page = "the target answered with a web page"
        return replace(reading, outcome=AnswerOutcome.FAILED, reason=page)
    if not plain.strip():
        silent = SILENT.get(answer.finish_reason, NOTHING)
        reason = REPEATED if "echo" in named else silent
        return replace(reading, outcome=AnswerOutcome.FAILED, reason=reason)
    return (
        replace(reading, outcome=AnswerOutcome.DECLINED, reason=DECLINED) if declined else reading
    )


def _begins_as(text: str, expected: str) -> bool:
    said, wanted = ([word.text.casefold() for word in split_words(t)[:2]] for t in (text, expected))
    return bool(wanted) and said == wanted


def read_continuation(answer: Answer, before: str, expected: str = "") -> AnswerReading:
    """Read an answer that should go on with a text: what it says beyond that text.

    Args:
        answer: What the target said.
        before: The text.
        expected: How it goes on.

    Returns:
        A reading whose text is empty where the answer says the text again and then leaves it. One
        that failed where the answer was cut while it said the text again.
    """
    reading = read_answer(answer, expected=expected)
    words = split_words(reading.text)
    said, left = echo(before, [word.text for word in words])
    if reading.outcome is not AnswerOutcome.ANSWERED or not said:
        return reading
    removed = (*reading.removed, "echo")
    if (
        answer.finish_reason == "length"
        and (left or said == len(words))
        and len(words) - said < _NEAR
    ):
        return replace(reading, outcome=AnswerOutcome.FAILED, reason=CUT, removed=removed)
    start = len(reading.text) if left or said == len(words) else words[said].start
    rest = {place: reading.text[place] for place in range(start, len(reading.text))}
    tokens = tuple(kept(reading.tokens, rest))
    return replace(reading, text=reading.text[start:], tokens=tokens, removed=removed)


def with_room(
    queries: Sequence[Query],
    before: Sequence[str],
    room: Sequence[int],
    read: Callable[[Answer], bool] | None = None,
) -> Generator[list[Query], list[Answer], list[Answer]]:
    """Ask, and ask once more with room for the form that the target uses.

    An answer that was cut while it thought, greeted or said again what it was sent never came to
    its point. Documents in question and known ones are asked again by the same rule.

    Args:
        queries: What is asked.
        before: For each query, the text that its answer may say again.
        room: For each query, the tokens that this takes.
        read: Whether the point can be read from an answer; None where its form alone tells.
    """
    answers = list((yield list(queries)))
    short = [
        n
        for n, answer in enumerate(answers)
        if answer.finish_reason == "length"
        and not answer.error
        and not (read(answer) if read else _reached(answer, before[n]))
    ]
    if short:
        thought = [after_thought(answers[n].text)[0] for n in short]
        again = yield [
            replace(
                queries[n],
                max_tokens=queries[n].max_tokens + room[n] + (0 if rest else _THOUGHT_ROOM),
            )
            for n, rest in zip(short, thought, strict=True)
        ]
        for n, answer in zip(short, again, strict=True):
            answers[n] = answer
    return answers


def _reached(answer: Answer, before: str) -> bool:
    """Whether an answer that was cut had come to its point."""
    text, _ = after_thought(answer.text)
    if not text or not text.strip():
        return False
    rest = "".join(stripped(text, "")[0].values())
    said = [word.text for word in split_words(rest)]
    return preamble(rest, cut=True) < len(rest) and not begins_to_echo(before, said)
