"""Short questions that an ordinary user might ask of a database, made from its documents."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ragwitness.errors import InputError
from ragwitness.rag.words import index_words
from ragwitness.text.words import STOP_WORDS, core, split_words
from ragwitness.types import Document

__all__ = ["BenignQuestion", "QuestionKind", "benign_questions"]

QuestionKind: TypeAlias = Literal["asked", "keywords"]
"""Taken from what a dialogue's first speaker asks, or made of a document's rarest words."""

_ASKS = "patient|human|user|client|customer|question|q"
_ANSWERS = "doctor|physician|bot|assistant|agent|chatbot|answer|a"
_DIALOGUE = re.compile(
    rf"\s*[<\[]?(?:{_ASKS})[>\]]?\s*:\s*(.+?)\s*[<\[]?\b(?:{_ANSWERS})[>\]]?\s*:\s+(.+)",
    re.IGNORECASE | re.DOTALL,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_SHORTEST, _LONGEST = 4, 30  # words of a sentence that can stand as a question
_KEYWORDS = 3
_SHORTEST_KEYWORD = 4  # characters


@dataclass(frozen=True, slots=True)
class BenignQuestion:
    """A question without any interest in what the database holds.

    Attributes:
        text: What the user types.
        document: Id of the document that answers it.
        reference: The right answer, where the document tells it apart.
    """

    text: str
    document: str
    reference: str | None = None


def benign_questions(
    documents: Sequence[Document], n: int, rng: random.Random, kind: QuestionKind = "asked"
) -> list[BenignQuestion]:
    """Make at most ``n`` questions, each from a document of its own.

    Of a dialogue it is what the one who asks says first: the first sentence with a question
    mark, else the first of some length; the reply is the reference. Of any other text it asks
    for its most distinctive words. Documents that give no question are passed over.

    Args:
        documents: The database.
        n: How many questions are wanted.
        rng: Chooses the documents.
        kind: ``"keywords"`` asks dialogues too for their words. A sentence that stands in the
            database word for word is as near to its document as an audit's query is, so a
            defense that looks for nearness suffers more under ``"asked"``.

    Raises:
        InputError: ``n`` is not positive, or no document gives a question.
    """
    if n < 1:
        raise InputError(f"At least 1 benign question is needed, not {n}.")
    spread = Counter(word for d in documents for word in set(index_words(d.text)))
    made: list[BenignQuestion] = []
    for document in rng.sample(list(documents), len(documents)):
        question = _question(document, kind, spread, len(documents))
        if question is not None:
            made.append(question)
        if len(made) == n:
            break
    if not made:
        raise InputError(
            "No document gives a benign question.", "Give documents of at least a few words."
        )
    return made


def _question(
    document: Document, kind: QuestionKind, spread: Mapping[str, int], size: int
) -> BenignQuestion | None:
    dialogue = _DIALOGUE.fullmatch(document.text)
    reply = dialogue.group(2).strip() if dialogue else None
    if dialogue and kind == "asked":
        return BenignQuestion(_first_question(dialogue.group(1)), document.id, reply)
    keywords = _keywords(document.text, spread, size)
    if not keywords:
        return None
    listed = ", ".join(keywords[:-1])
    text = f"{listed} and {keywords[-1]}" if listed else keywords[-1]
    return BenignQuestion(f"What is known about {text}?", document.id, reply)


def _first_question(asked: str) -> str:
    sentences = [s.strip() for s in _SENTENCE_END.split(asked)]
    fitting = [s for s in sentences if _SHORTEST <= len(split_words(s)) <= _LONGEST]
    questions = [s for s in fitting if s.endswith("?")]
    if questions or fitting:
        return (questions or fitting)[0]
    words = split_words(asked)[:_LONGEST]
    return asked[words[0].start : words[-1].end]


def _keywords(text: str, spread: Mapping[str, int], size: int) -> list[str]:
    """The words of highest tf-idf, in the order in which they stand."""
    words = [core(word.text) for word in split_words(text)]
    counts = Counter(word.casefold() for word in words)
    first: dict[str, str] = {}
    for word in words:
        plain = word.casefold()
        # "don't" and the like are no words of the index, so their rarity is not known.
        known = plain in spread and plain not in STOP_WORDS
        if known and len(plain) >= _SHORTEST_KEYWORD:
            first.setdefault(plain, word)

    def weight(plain: str) -> float:
        return counts[plain] * math.log((1 + size) / (1 + spread[plain]) + 1)

    best = set(sorted(first, key=lambda plain: (-weight(plain), plain))[:_KEYWORDS])
    return [word for plain, word in first.items() if plain in best]
