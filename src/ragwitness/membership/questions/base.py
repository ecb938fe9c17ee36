"""What a question writer offers, whatever writes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Protocol

from ragwitness.text.words import core, split_words
from ragwitness.types import Document

__all__ = ["OpenQuestion", "Question", "QuestionWriter", "query_text"]


@dataclass(frozen=True, slots=True)
class Question:
    """A yes/no question about a document.

    Attributes:
        text: The question.
        expected: Whether the document answers it with yes.
        hidden: A word that would give the answer away; the summary must not say it.
    """

    text: str
    expected: bool
    hidden: str = ""


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that a few words of the document answer.

    Attributes:
        text: The question.
        answer: What the document says.
        hidden: Words that the summary must not say.
    """

    text: str
    answer: str
    hidden: str = ""


class QuestionWriter(Protocol):
    """Writes questions about a document; fewer than asked for where it holds too little."""

    @property
    def name(self) -> str:
        """Identity, with the model's where one writes."""

    def summary(self, document: Document) -> str:
        """Return what the document is about in one short phrase, to retrieve it by."""

    def yes_no(self, document: Document, n: int, rng: random.Random) -> list[Question]:
        """Return at most ``n`` yes/no questions."""

    def open(self, document: Document, n: int, rng: random.Random) -> list[OpenQuestion]:
        """Return at most ``n`` open questions."""

    def unparsable(self, document: Document) -> int:
        """How many outputs of the writing model about this document could not be used."""


def query_text(summary: str, question: str, hidden: str = "", request: str = "") -> str:
    """Return summary, question and request in one line (IA: ``summary + " " + question``).

    Words of the summary that would answer the question are left out.
    """
    banned = {core(word.text).casefold() for word in split_words(hidden)} - {""}
    if banned:
        kept = [w.text for w in split_words(summary) if core(w.text).casefold() not in banned]
        summary = " ".join(kept)
    return " ".join(part for part in (summary.strip(), question.strip(), request.strip()) if part)
