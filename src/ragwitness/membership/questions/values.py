"""Values of a text that can be exchanged for others: numbers, names, rare words."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias, get_args

from ragwitness.text.sample import load_sample
from ragwitness.text.words import STOP_WORDS, core, split_words

__all__ = ["Kind", "Value", "find_values", "harvest", "number_like", "packaged_values"]

Kind: TypeAlias = Literal["number", "name", "word"]

_NUMBER = re.compile(r"[\d][\d.,:/\-]*")
_DIGITS = re.compile(r"\d+")
_SENTENCE_END = re.compile(r"[.!?:;]['\"\u201d\u2019)\]]*$")
_SHORTEST_WORD = 4
_WIDESPREAD = 8  # siblings that share an invented word are at most six
_FIRST_IDEOGRAPH = "\u2e80"


@dataclass(frozen=True, slots=True)
class Value:
    """A word that carries a fact.

    Attributes:
        text: The word without punctuation at its ends.
        start: First character in the text.
        end: One past the last.
        index: Its number among the words of the text.
        kind: What it can be exchanged for.
    """

    text: str
    start: int
    end: int
    index: int
    kind: Kind


def find_values(text: str) -> list[Value]:
    """Return every number, name and content word, in reading order."""
    found: list[Value] = []
    opens = True
    for index, word in enumerate(split_words(text)):
        stem = core(word.text)
        kind = _kind(stem, opens)
        if kind is not None:
            start = word.start + word.text.index(stem)
            found.append(Value(stem, start, start + len(stem), index, kind))
        opens = bool(_SENTENCE_END.search(word.text))
    return found


def _kind(stem: str, opens: bool) -> Kind | None:
    """A capital tells a name only inside a sentence; elsewhere such a word is left out."""
    if not stem or stem.casefold() in STOP_WORDS:
        return None
    if _NUMBER.fullmatch(stem):
        return "number"
    if any(char.isdigit() for char in stem):
        return None
    if stem[0].isupper():
        return None if opens or len(stem) < 2 else "name"
    long_enough = len(stem) >= _SHORTEST_WORD or stem[0] >= _FIRST_IDEOGRAPH
    return "word" if long_enough and any(char.isalpha() for char in stem) else None


def number_like(number: str, rng: random.Random) -> str:
    """Draw a number of the same form: as many digits, as many zeros at the end, years as years."""
    return _DIGITS.sub(lambda match: _digits_like(match.group(), rng), number)


def _digits_like(digits: str, rng: random.Random) -> str:
    if len(digits) == 4 and 1900 <= int(digits) <= 2099:
        return str(rng.randint(1900, 2099))
    head = digits.rstrip("0")
    if not head:
        return digits
    # The last digit before the zeros is never 0, and a leading 0 stays.
    drawn = [
        "0" if place == 0 and digit == "0" else str(rng.randint(0 if place > 0 else 1, 9))
        for place, digit in enumerate(head[:-1])
    ]
    return "".join(drawn) + str(rng.randint(1, 9)) + digits[len(head) :]


def harvest(texts: Iterable[str], fewest: int = 1) -> dict[Kind, tuple[str, ...]]:
    """Return the distinct values of some texts by kind, sorted; spelled with letters alone.

    Args:
        texts: Any.
        fewest: Texts that must hold a value.
    """
    held: Counter[tuple[Kind, str]] = Counter()
    for text in texts:
        held.update({(v.kind, v.text) for v in find_values(text) if v.text.isalpha()})
    return {
        kind: tuple(sorted(t for (k, t), n in held.items() if k == kind and n >= fewest))
        for kind in get_args(Kind)
    }


@cache
def packaged_values(kind: Kind) -> tuple[str, ...]:
    """Return the names or words of the packaged corpus, sorted; none for numbers.

    Its names are invented. Its invented words, which fit nowhere, are left out: no more than a
    few of its documents share one.
    """
    texts = [document.text for document in load_sample()]
    return harvest(texts, fewest=_WIDESPREAD if kind == "word" else 1)[kind]
