"""How a question was answered: one name per outcome, none of them a silent zero."""

from __future__ import annotations

import enum
import re

from ragwitness.membership.outcomes import Reply, named_trouble, read_reply
from ragwitness.types import Answer

__all__ = ["Outcome", "read_outcome"]

_OPENING = re.compile(r"^[\W_]*(yes|no)\b(?! (information|mention|evidence|such|data)\b)", re.I)
# "Nothing found" answers the question; a refusal does not. IA's victim prompt asks for the first.
_NOT_FOUND = re.compile(
    r"\b(no|not any) (information|mention|evidence|data|details?|record)\b"
    r"|\b(do|does|did)(n't| not) (contain|mention|state|say|provide|specify|include|know|have"
    r" (any |enough |sufficient )?information)\b"
    r"|\bnot (mentioned|stated|specified|provided|found|given|known|sure|certain)\b"
    r"|\b(cannot|can't|could not|couldn't|unable to) (find|tell|say|determine|be determined)\b",
    re.IGNORECASE,
)
# Prose about the document may well say "did not provide"; what speaks of finding nothing speaks
# of the context, or of the speaker.
_ABOUT_SEARCH = re.compile(
    r"\b(context|documents?|text|passages?|information|question)\b"
    r"|^\W*(i|we|it|sorry|unfortunately|there|no|not)\b",
    re.IGNORECASE,
)
_FIRST_SENTENCE = re.compile(r"[^.!?\n]*")


class Outcome(enum.StrEnum):
    """What one answer is."""

    YES = "yes"
    NO = "no"
    TEXT = "text"
    """Prose, where prose was asked for."""
    UNKNOWN = "unknown"
    """The target says that it does not know or finds nothing."""
    REFUSED = "refused"
    UNREADABLE = "unreadable"
    """Neither yes, no nor not knowing, where one of them was asked for."""
    EMPTY = "empty"
    FAILED = "failed"
    """There is no answer, but an error."""

    @property
    def readable(self) -> bool:
        """Whether the answer says something about the document."""
        return self in (Outcome.YES, Outcome.NO, Outcome.TEXT, Outcome.UNKNOWN)


def read_outcome(answer: Answer, *, yes_no: bool) -> Outcome:
    """Name an answer's outcome.

    Args:
        answer: What the target said.
        yes_no: Whether a yes/no question was asked; else any prose is an answer.
    """
    if answer.error:
        return Outcome.FAILED
    if answer.finish_reason == "content_filter":
        return Outcome.REFUSED
    text = answer.text.replace("\u2019", "'").strip()
    if not text:
        return Outcome.EMPTY
    if yes_no and (opening := _OPENING.match(text)):
        return Outcome(opening.group(1).lower())
    if _found_nothing(text, yes_no) or read_reply(text) is Reply.UNKNOWN:
        return Outcome.UNKNOWN
    if named_trouble(answer) is not None:
        return Outcome.REFUSED
    if not yes_no:
        return Outcome.TEXT
    reply = read_reply(text)
    return Outcome(reply.value) if reply in (Reply.YES, Reply.NO) else Outcome.UNREADABLE


def _found_nothing(text: str, yes_no: bool) -> bool:
    if yes_no:
        return _NOT_FOUND.search(text) is not None
    match = _FIRST_SENTENCE.match(text)
    first = match.group() if match else ""
    return bool(_NOT_FOUND.search(first) and _ABOUT_SEARCH.search(first))
