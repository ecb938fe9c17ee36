"""Words with their places in a text."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["STOP_WORDS", "UNSPACED", "Word", "core", "passages", "split_words"]

UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Scripts written without spaces, as a regular expression's set: each character is a word."""

_WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
_EDGES = re.compile(r"^[^\w]+|[^\w]+$")

STOP_WORDS = frozenset(
    """a about above after again all also am an and any are as at be because been before being
    below between both but by can could did do does doing down during each few for from further
    had has have having he her here hers him his how i if in into is it its itself just me more
    most my no nor not now of off on once only or other our out over own same she should so some
    such than that the their them then there these they this those through to too under until up
    very was we were what when where which while who whom why will with would you your""".split()
)
"""Function words; too predictable to tell a member from a non-member."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word and its character range ``text[start:end]``."""

    text: str
    start: int
    end: int


def split_words(text: str) -> list[Word]:
    """Split at white space; characters of unspaced scripts stand alone."""
    return [Word(m.group(), m.start(), m.end()) for m in _WORD.finditer(text)]


def core(word: str) -> str:
    """Return the word without punctuation at its ends; empty for punctuation alone."""
    return _EDGES.sub("", word)


def passages(text: str, max_words: int, min_words: int) -> list[str]:
    """Cut a text into consecutive passages of at most ``max_words`` words of equal length.

    Args:
        text: The document.
        max_words: Upper limit of a passage; at least twice ``min_words``.
        min_words: A text shorter than this gives no passage.

    Returns:
        Verbatim slices of the text, none shorter than ``min_words`` words.
    """
    words = split_words(text)
    if len(words) < min_words:
        return []
    count = -(-len(words) // max_words)
    size = -(-len(words) // count)
    parts = [words[i : i + size] for i in range(0, len(words), size)]
    return [text[p[0].start : p[-1].end] for p in parts if len(p) >= min_words]
