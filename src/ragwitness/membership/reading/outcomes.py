"""What an answer is, before anybody reads evidence from it: named outcomes, never a silent zero."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence

from ragwitness.text.replies import declines as refuses
from ragwitness.text.words import core, split_words
from ragwitness.types import Answer

_UNKNOWN = re.compile(
    r"^\W*(unknown\b|unsure\b|not sure\b|i('m| am) not (sure|certain)\b|i (do not|don't) know\b"
    r"|(it is |it's )?(unclear|not (stated|specified|mentioned|clear))\b|cannot (say|tell)\b"
    r"|i (cannot|can't) (say|tell|determine)\b)",
    re.IGNORECASE,
)
_YES_NO = re.compile(r"\b(yes|no)\b", re.IGNORECASE)
_PAGE = re.compile(r"^\s*<(!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_OUTCOMES = {
    "the target refused to answer": "refused",
    "the target answered with nothing": "empty",
    "the target returned no log-probabilities": "no_logprobs",
    "the target answered with a web page": "unreadable",
}


class Reply(enum.StrEnum):
    """How a yes/no question was answered."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    """The target says that it does not know."""
    UNREADABLE = "unreadable"
    """Prose without yes or no, or with both."""


def read_reply(text: str) -> Reply:
    """Read a yes/no answer: its first word, else the only one of the two words it holds."""
    plain = text.replace("\u2019", "'").strip()
    # The first word decides where it is one of the two: "No, although yes …" is a no.
    opening = _YES_NO.match(plain.lstrip("\"'([*_ "))
    if opening:
        return Reply(opening.group(1).lower())
    if _UNKNOWN.match(plain):
        return Reply.UNKNOWN
    found = {match.lower() for match in _YES_NO.findall(plain)}
    return Reply(found.pop()) if len(found) == 1 else Reply.UNREADABLE


def opening_words(words: Sequence[str], n: int) -> list[str]:
    """Return the first ``n`` words without punctuation and case."""
    return [core(word).casefold() for word in words[:n]]


def named_trouble(
    answer: Answer, expected: Sequence[str] = (), *, logprobs: bool = False
) -> str | None:
    """Why an answer holds no evidence, or None.

    Args:
        answer: What the target said.
        expected: The words of the document from where it should go on; a document may well go
            on with "I am unable to sleep".
        logprobs: Whether an answer without log-probabilities is useless.
    """
    if answer.error:
        return answer.error
    # A document may itself begin as a refusal does; two of its own words in a row tell.
    said = [word.text for word in split_words(answer.text)]
    if answer.finish_reason == "content_filter" or (
        refuses(answer.text)
        and (not expected or opening_words(said, 2) != opening_words(expected, 2))
    ):
        return "the target refused to answer"
    if not answer.text.strip() and not (logprobs and answer.tokens):
        return "the target answered with nothing"
    if logprobs and not answer.tokens:
        return "the target returned no log-probabilities"
    return None


def trouble_with(
    answer: Answer, expected: Sequence[str] = (), *, logprobs: bool = False
) -> str | None:
    """:func:`named_trouble`, and the error pages that gateways put in an answer's place."""
    if not answer.error and _PAGE.match(answer.text):
        return "the target answered with a web page"
    return named_trouble(answer, expected, logprobs=logprobs)


def only_declined(trouble: str | None) -> bool:
    """Whether the target did answer, and only declined: no paper leaves such an answer out."""
    return outcome_name(trouble) in ("refused", "empty")


def outcome_name(trouble: str | None) -> str:
    """The key under which an outcome is counted in ``Score.details``."""
    return "answered" if trouble is None else _OUTCOMES.get(trouble, "error")
