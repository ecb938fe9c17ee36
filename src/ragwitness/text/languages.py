"""The language of a text, as far as its letters and commonest words tell.

Enough to notice that a model answered in another language than it was given; nothing here names
the language of a text of a few words.
"""

from __future__ import annotations

import unicodedata
from collections import Counter

from ragwitness.text.tokens import plain_tokens

__all__ = ["language_of", "same_language"]

_COMMON = {
    "English": "the and of to in is that was for with it as his on be are by this have not you i",
    "German": "der die und das ist nicht ein eine zu den von mit sich auf ich für dem auch es im",
    "French": "le la les et des est une un que dans pour pas je vous du en sur ce qui il avec",
    "Spanish": "el la los las y que es una un por con para no su al lo como me se del más",
    "Italian": "il la che di e è un una per non con sono mi del della gli le si da ho anche",
    "Portuguese": "o os as e que de um uma não para com do da em por se eu mais foi na no",
    "Dutch": "de het een en van is dat niet ik te op met voor zijn die er aan maar ook mijn",
    "Polish": "i w na nie się z do że jest to jak o po ale od za przez dla mnie czy",
}
_WORDS = {name: frozenset(words.split()) for name, words in _COMMON.items()}
_FEWEST = 12  # words; fewer tell no language
_LEAST = 0.12  # share of common words
_AHEAD = 1.2  # times the share of the next language


def language_of(text: str) -> tuple[str, str | None]:
    """Return the script that most letters are in, and the language where its words tell it.

    Args:
        text: At least a dozen words, or the language is None.
    """
    return _script(text), _language(text)


def same_language(first: str, second: str) -> bool:
    """Whether two texts may be in one language; True where that cannot be told."""
    (script, language), (other_script, other) = language_of(first), language_of(second)
    if script and other_script and script != other_script:
        return False
    return language is None or other is None or language == other


def _script(text: str) -> str:
    """First word of the letters' Unicode names, such as LATIN; empty without letters."""
    letters = Counter(c for c in text if c.isalpha())
    scripts: Counter[str] = Counter()
    for letter, count in letters.items():
        scripts[unicodedata.name(letter, "?").split()[0]] += count
    return scripts.most_common(1)[0][0] if scripts else ""


def _language(text: str) -> str | None:
    words = plain_tokens(text)
    if len(words) < _FEWEST:
        return None
    shares = {
        name: sum(word in known for word in words) / len(words) for name, known in _WORDS.items()
    }
    (best, share), (_, next_share) = Counter(shares).most_common(2)
    return best if share >= _LEAST and share >= _AHEAD * next_share else None
