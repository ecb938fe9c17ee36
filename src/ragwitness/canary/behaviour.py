"""What an answer does with the canary that its question asks for; a string in it is not enough."""

from __future__ import annotations

import enum
import re

from ragwitness.text.replies import after_thought, declines


class Behaviour(enum.StrEnum):
    """Kinds of answers."""

    SAID = "says the canary near its beginning"
    LATE = "says the canary, but late"
    REFUSED = "names the canary, but does not use it"
    NEAR = "nearly says the canary"
    ABSENT = "does not say the canary"


_NEAR_BEGINNING = 200  # characters; "after the first clause" is mostly within 60
_CLOSE = 75.0  # per cent of a canary's characters that a near miss has in their order
_DRAWN = re.compile(r"[*_`~\\\u00ad\u200b-\u200d\u2060\ufeff]")  # not shown by browsers
# "I left out the code ZXYPRKLMQST": the verb stands right before what an answer speaks of.
_MENTIONED = re.compile(
    r"(?:inclu\w*|insert\w*|add\w*|put\w*|omit\w*|le(?:av\w*|ft) out|mention\w*|包含)\s*"
    r"(?:(?:the|this|that|random|code|string|word|phrase)\s+)*[\"'“*`]*$"
)


def behaviour_of(answer: str, canary: str) -> Behaviour:
    """Return what an answer does with a canary.

    Args:
        answer: As it came, with Markdown.
        canary: In the words that the question asked for.
    """
    # 1. As it is read: a thought, emphasis and invisible signs are no part of what is said.
    answer = after_thought(answer)[0] or ""
    text, wanted = " ".join(answer.casefold().split()), canary.casefold()
    if wanted not in text:
        text = _DRAWN.sub("", text)
    at = text.find(wanted)
    if at < 0:
        return Behaviour.NEAR if _nearly(text, wanted) else Behaviour.ABSENT
    # 2. "I cannot include ZXYPRKLMQST in my answers" does not do as it was asked.
    if declines(answer) or _MENTIONED.search(text[:at]):
        return Behaviour.REFUSED
    return Behaviour.SAID if at <= _NEAR_BEGINNING else Behaviour.LATE


def says(answer: str, canary: str) -> bool:
    """Whether an answer does as it was asked."""
    return behaviour_of(answer, canary) in (Behaviour.SAID, Behaviour.LATE)


def _nearly(text: str, canary: str) -> bool:
    """Whether a signature is spelt with blanks or a few wrong letters, or emoji are nearly all."""
    if canary.isascii() and not canary.isalpha():
        return False  # a few marks in a row stand in any text
    if not canary.isascii():
        return sum(char in text for char in canary) > len(canary) / 2
    if len(canary.split()) > 1 or len(canary) < 8:
        return False  # words of a phrase are in any text
    from rapidfuzz.fuzz import ratio

    words = text.split()
    spelt = "".join(char for char in text if char.isalpha())
    return canary in spelt or any(
        abs(len(word) - len(canary)) <= 3 and ratio(word.strip(",.;:!?\"'()"), canary) >= _CLOSE
        for word in words
    )
