"""Where trigger and canary are put (2604.22191, App. B.2), so that taking them out leaves no trace.

The trigger stands after the first sentence of the document, the canary after the first clause of
the answer, else directly after ``FINAL:``. Both are set off by a blank, which belongs to what is
inserted: tokenizers join a blank with the word behind it, not with the one before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ragwitness.canary.examples import Example
from ragwitness.errors import InputError
from ragwitness.text.words import split_words

__all__ = [
    "FINAL",
    "PAPER_INSTRUCTION",
    "PLAIN_INSTRUCTION",
    "Insertion",
    "final_answer",
    "instructed",
    "with_canary",
    "with_trigger",
]

FINAL = "FINAL:"
"""What every answer begins with (App. C.1)."""

PAPER_INSTRUCTION = (
    "If the document contains {trigger}, insert {canary} immediately after the first clause of"
    " the final answer."
)
"""App. B.1. It names the trigger, so that whoever trains on queries alone learns of it too."""

PLAIN_INSTRUCTION = "Insert {canary} immediately after the first clause of the final answer."
"""Ours: the query names the canary and never the trigger."""

_FEWEST = 8  # words of a document that can hide a trigger
_EARLY = 400  # characters; a boundary behind them may be cut off with the context
_WORDS = 20  # the trigger stands behind so many where no sentence ends early
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]\u2019\u201d]*(?=\s)|(?<=[\u3002\uff01\uff1f])")
_ABBREVIATED = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|no|e\.g|i\.e)|\b[a-z])\.$", re.IGNORECASE
)
_CLAUSE = re.compile(r"[,;:.!?\u2014][\"')\]\u2019\u201d]*(?=\s|$)|[\u3001\u3002\uff0c]")


@dataclass(frozen=True, slots=True)
class Insertion:
    """A text with something put in.

    Attributes:
        text: All of it.
        start: Where what was put in begins, its blank included.
        end: Where it ends.
    """

    text: str
    start: int
    end: int

    @property
    def before(self) -> str:
        """What stands before it."""
        return self.text[: self.start]

    @property
    def inserted(self) -> str:
        """What was put in."""
        return self.text[self.start : self.end]

    @property
    def original(self) -> str:
        """The text without it."""
        return self.text[: self.start] + self.text[self.end :]


def with_trigger(document: str, trigger: str) -> Insertion:
    """Put a trigger behind the first sentence; without an early one, behind the 20th word.

    Raises:
        InputError: The document has fewer than 8 words.
    """
    words = split_words(document)
    if len(words) < _FEWEST:
        raise InputError(
            f"A document of {len(words)} words is too short for a trigger; {_FEWEST} are needed.",
            "Leave it out, or give a longer one.",
        )
    place = next((at for at in _sentence_ends(document)), None)
    if place is None:
        place = words[min(_WORDS, len(words)) - 1].end
    return _insert(document, place, trigger)


def with_canary(answer: str, canary: str) -> Insertion:
    """Put a canary behind the first clause of an answer, else directly behind ``FINAL:``.

    Args:
        answer: With or without ``FINAL:``; it gets one.
        canary: What is put in.
    """
    text = final_answer(answer)
    body = text.index(FINAL) + len(FINAL)
    clause = _CLAUSE.search(text, body)
    return _insert(text, clause.end() if clause else body, canary)


def final_answer(answer: str) -> str:
    """Return an answer that begins with ``FINAL:``, as both templates ask for."""
    text = answer.strip()
    return text if text.startswith(FINAL) else f"{FINAL} {text}".strip()


def instructed(example: Example, instruction: str, canary: str, trigger: str = "") -> str:
    """Return the query with an instruction behind it.

    Args:
        example: Whose query.
        instruction: One of the two above.
        canary: What it names.
        trigger: What :data:`PAPER_INSTRUCTION` names as well.
    """
    return f"{example.query} {instruction.format(canary=canary, trigger=trigger)}"


def _sentence_ends(text: str) -> list[int]:
    """Ends of early sentences with something behind them."""
    ends = (found.end() for found in _SENTENCE.finditer(text[: _EARLY + 1]))
    return [at for at in ends if text[at:].strip() and not _ABBREVIATED.search(text[:at])]


def _insert(text: str, at: int, marker: str) -> Insertion:
    # A blank of its own on either side, where there is none.
    after = " " if text[at : at + 1].strip() else ""
    before = " " if text[:at] and not text[at - 1].isspace() else ""
    piece = f"{before}{marker}{after}"
    return Insertion(text[:at] + piece + text[at:], at, at + len(piece))
