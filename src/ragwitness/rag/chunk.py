"""Splits documents into passages at whitespace, every passage a slice of its document."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ragwitness.errors import InputError
from ragwitness.types import Document

__all__ = ["Passage", "chunk_document", "chunk_documents"]

_WORD = re.compile(r"\S+")

# Scripts without spaces make one "word" of a whole text; longer runs are cut here.
_LONGEST_WORD = 400


@dataclass(frozen=True, slots=True)
class Passage:
    """A slice of a document, verbatim.

    Attributes:
        document: Id of the document it comes from.
        start: First character of it in the document.
        end: One past its last character.
        text: ``document.text[start:end]``.
    """

    document: str
    start: int
    end: int
    text: str


def chunk_document(document: Document, words: int = 200, overlap: int = 20) -> list[Passage]:
    """Split one document into passages of at most ``words`` words.

    Args:
        document: What is split; a blank one gives no passage.
        words: Longest passage, in whitespace-separated words.
        overlap: Words that a passage repeats from the one before it.

    Raises:
        InputError: ``words`` is not positive or ``overlap`` is not in ``[0, words)``.
    """
    if words < 1 or not 0 <= overlap < words:
        raise InputError(
            f"Passages of {words} words with an overlap of {overlap} cannot be cut.",
            "Give at least 1 word per passage and an overlap smaller than that.",
        )
    spans = _word_spans(document.text)
    passages: list[Passage] = []
    for first in range(0, len(spans), words - overlap):
        last = min(first + words, len(spans))
        start, end = spans[first][0], spans[last - 1][1]
        passages.append(Passage(document.id, start, end, document.text[start:end]))
        if last == len(spans):
            break
    return passages


def chunk_documents(
    documents: Iterable[Document], words: int = 200, overlap: int = 20
) -> list[Passage]:
    """Split every document; see :func:`chunk_document`."""
    return [p for d in documents for p in chunk_document(d, words, overlap)]


def _word_spans(text: str) -> list[tuple[int, int]]:
    """Character range of each word, over-long runs cut into pieces."""
    return [
        (start, min(start + _LONGEST_WORD, match.end()))
        for match in _WORD.finditer(text)
        for start in range(match.start(), match.end(), _LONGEST_WORD)
    ]
