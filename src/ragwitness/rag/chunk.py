"""Splits documents into passages at words, every passage a slice of its document."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ragwitness.errors import InputError
from ragwitness.text.words import split_words
from ragwitness.types import Document

__all__ = ["Passage", "chunk_document", "chunk_documents", "word_spans"]

# Where nothing else separates words (Thai, encoded data), runs are cut here.
_LONGEST_WORD = 100


@dataclass(frozen=True, slots=True)
class Passage:
    """A slice of a document, verbatim.

    Attributes:
        document: Id of the document it comes from.
        start: First character of it in the document.
        end: One past its last character.
        text: ``document.text[start:end]``.
        key: What it is found by in its place; None where it is found by its own text.
    """

    document: str
    start: int
    end: int
    text: str
    key: str | None = None


def chunk_document(document: Document, words: int = 200, overlap: int = 20) -> list[Passage]:
    """Split one document into passages of at most ``words`` words.

    Args:
        document: What is split; a blank one gives no passage.
        words: Longest passage, in words as :func:`word_spans` sees them.
        overlap: Words that a passage repeats from the one before it.

    Raises:
        InputError: ``words`` is not positive or ``overlap`` is not in ``[0, words)``.
    """
    if words < 1 or not 0 <= overlap < words:
        raise InputError(
            f"Passages of {words} words with an overlap of {overlap} cannot be cut.",
            "Give at least 1 word per passage and an overlap smaller than that.",
        )
    spans = word_spans(document.text)
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


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the character range of each word.

    Characters of unspaced scripts stand alone (:func:`~ragwitness.text.words.split_words`),
    and no range is longer than 100 characters: a long run is several.
    """
    return [
        (start, min(start + _LONGEST_WORD, word.end))
        for word in split_words(text)
        for start in range(word.start, word.end, _LONGEST_WORD)
    ]
