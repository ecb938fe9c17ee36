"""Words with their places in a text."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import NamedTuple

from ragwitness.text.overlap import SIGNS, plain_tokens
from ragwitness.text.rules import read_table

UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Scripts written without spaces, as a regular expression's set: each character is a word."""

_UNSPACED = re.compile(f"[{UNSPACED}]")
_WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
_DENSE = re.compile(rf"[{UNSPACED}]|(?:[^\W{UNSPACED}]|[{SIGNS}])+")
_CORE = re.compile(r"\w(?:.*\w)?", re.DOTALL)
_TABLE = read_table("words.toml")
STOP_WORDS = frozenset(_TABLE["function"].split())
"""Function words; too predictable to tell a member from a non-member."""


class Word(NamedTuple):
    """A word and its character range ``text[start:end]``."""

    text: str
    start: int
    end: int


def split_words(text: str) -> list[Word]:
    """Split at white space; characters of unspaced scripts stand alone."""
    return [Word(m.group(), m.start(), m.end()) for m in _WORD.finditer(text)]


def core(word: str) -> str:
    """Return the word without punctuation at its ends; empty for punctuation alone."""
    found = _CORE.search(word)  # in one pass, however many full stops a line of dots has
    return found[0] if found else ""


def dense_tokens(text: str) -> list[str]:
    """Words without regard to case; each character of an unspaced script alone."""
    return _DENSE.findall(text.casefold())


def content_tokens(text: str) -> list[str]:
    """The same without function words."""
    return [word for word in dense_tokens(text) if word not in STOP_WORDS]


def telling_tokens(text: str) -> list[str]:
    """The same with pairs of neighbours in unspaced scripts, whose characters tell little."""
    words = content_tokens(text)
    if _UNSPACED.search(text):
        wide = [_UNSPACED.match(word) is not None for word in words]
        for at in range(len(words) - 1):
            if wide[at] and wide[at + 1]:
                words[at] += words[at + 1]
    return words


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
    # As few passages as can be, all of about one length.
    count = -(-len(words) // max_words)
    size = -(-len(words) // count)
    parts = [words[i : i + size] for i in range(0, len(words), size)]
    return [text[p[0].start : p[-1].end] for p in parts if len(p) >= min_words]


def cut_characters(text: str, most: int) -> tuple[str, int]:
    """Cut a text after the last whole word that fits; a single longer word is cut itself.

    Returns:
        What is left, and the number of words cut off or cut short.
    """
    if len(text) <= most:
        return text, 0
    words = split_words(text)
    kept = [word for word in words if word.end <= most]
    if not kept:
        return text[:most], len(words)
    return text[: kept[-1].end], len(words) - len(kept)


# The language of a text, as far as its letters and commonest words tell.
#
# Enough to notice that a model answered in another language than it was given; nothing here names
# the language of a text of a few words.

_COMMON = {name: frozenset(words.split()) for name, words in _TABLE["languages"].items()}
_FEWEST = 12  # words; fewer tell no language
_LEAST = 0.12  # share of common words
_AHEAD = 1.2  # times the share of the next language


def same_language(first: str, second: str) -> bool:
    """Whether two texts may be in one language; True where that cannot be told."""
    scripts = {_script(first), _script(second)} - {""}
    languages = {_language(first), _language(second)} - {None}
    return len(scripts) < 2 and len(languages) < 2


def _script(text: str) -> str:
    """First word of the letters' Unicode names, such as LATIN; empty without letters."""
    scripts = Counter(unicodedata.name(c, "?").split()[0] for c in text if c.isalpha())
    return scripts.most_common(1)[0][0] if scripts else ""


def _language(text: str) -> str | None:
    words = plain_tokens(text)
    if len(words) < _FEWEST:
        return None
    shares = {
        name: sum(word in known for word in words) / len(words) for name, known in _COMMON.items()
    }
    (best, share), (_, next_share) = Counter(shares).most_common(2)
    return best if share >= _LEAST and share >= _AHEAD * next_share else None
