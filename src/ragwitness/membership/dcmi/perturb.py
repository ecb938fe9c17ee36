"""The perturbed copy: a few words turned round, everything else as it was."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.membership.dcmi.antonyms import ANTONYMS
from ragwitness.text.words import Word, core, split_words

__all__ = ["Perturbed", "changed_words", "perturb", "quota"]

_AUXILIARIES = frozenset(
    "am is are was were can could will would should must may might has have had do does did".split()
)
_NUMBER = re.compile(r"\d")
_AN = re.compile(r"honest|hour|(?!use|usu|unil|uniq|eu|one)[aeiou]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Perturbed:
    """A copy.

    Attributes:
        text: The copy.
        changes: Each word turned round, with what stands for it.
        kind: ``"antonyms"``, ``"negations"``, ``"numbers"`` or ``"llm"``.
    """

    text: str
    changes: tuple[tuple[str, str], ...]
    kind: str


@dataclass(frozen=True, slots=True)
class _Change:
    start: int
    end: int
    old: str
    new: str


def quota(words: int, share: float, most: int) -> int:
    """How many words of a document to turn round: a share, at least 1, at most ``most``."""
    return min(most, max(1, round(share * words)))


def perturb(text: str, n: int, rng: random.Random) -> Perturbed | None:
    """Turn ``n`` words round, spread over the text.

    Antonyms come first. Where there is none, verbs are negated or a "not" taken away; where
    there is no such verb either, numbers are changed.

    Args:
        text: The document.
        n: How many words, at most; where fewer can be, those.
        rng: Of the choice among neighbours.

    Returns:
        None where nothing can be turned round.
    """
    words = split_words(text)
    for kind, find in (("antonyms", _antonyms), ("negations", _negations), ("numbers", _numbers)):
        candidates = find(words)
        if candidates:
            chosen = _spread(candidates, n, rng)
            changes = tuple((change.old, change.new) for change in chosen)
            return Perturbed(_apply(text, words, chosen), changes, kind)
    return None


def changed_words(text: str, copy: str) -> tuple[tuple[str, str], ...] | None:
    """Compare a copy made by a model with the text, word by word.

    Returns:
        The words that differ, or None where the copy is not the text with a few words replaced.
    """
    one, other = split_words(text), split_words(copy)
    if len(one) != len(other):
        return None
    return tuple(
        (core(a.text), core(b.text))
        for a, b in zip(one, other, strict=True)
        if core(a.text).casefold() != core(b.text).casefold()
    )


def _antonyms(words: Sequence[Word]) -> list[_Change]:
    found = []
    for word in words:
        stem = core(word.text)
        new = ANTONYMS.get(stem.casefold())
        if new:
            found.append(_replace(word, stem, _cased(new, stem)))
    return found


def _negations(words: Sequence[Word]) -> list[_Change]:
    found = []
    for i, word in enumerate(words):
        if word.text.casefold() not in _AUXILIARIES:
            continue
        following = words[i + 1] if i + 1 < len(words) else None
        if following and following.text.casefold() == "not":
            old = f"{word.text} {following.text}"
            found.append(_Change(word.start, following.end, old, word.text))
        else:
            found.append(_Change(word.start, word.end, word.text, f"{word.text} not"))
    return found


def _numbers(words: Sequence[Word]) -> list[_Change]:
    found = []
    for word in words:
        first = _NUMBER.search(word.text)
        if first:
            # Another leading digit of the same length: 500 becomes 900, 1998 becomes 5998.
            digit = (int(first.group()) + 3) % 9 + 1
            new = word.text[: first.start()] + str(digit) + word.text[first.end() :]
            found.append(_Change(word.start, word.end, word.text, new))
    return found


def _replace(word: Word, stem: str, new: str) -> _Change:
    start = word.start + word.text.index(stem)
    return _Change(start, start + len(stem), stem, new)


def _cased(new: str, old: str) -> str:
    if old.isupper() and len(old) > 1:
        return new.upper()
    return new.capitalize() if old[:1].isupper() else new


def _spread(candidates: Sequence[_Change], n: int, rng: random.Random) -> list[_Change]:
    """One candidate from each of n equal stretches of the candidates."""
    n = min(n, len(candidates))
    edges = [i * len(candidates) // n for i in range(n + 1)]
    return [candidates[rng.randrange(a, b)] for a, b in itertools.pairwise(edges)]


def _apply(text: str, words: Sequence[Word], changes: Sequence[_Change]) -> str:
    """Make the changes, last first; "a" and "an" before a changed word follow it."""
    before = {words[i].end: words[i - 1] for i in range(1, len(words))}
    for change in reversed(changes):
        text = text[: change.start] + change.new + text[change.end :]
        article = next((w for end, w in before.items() if end >= change.end), None)
        if article and article.text.casefold() in ("a", "an") and change.new[:1].isalpha():
            right = "an" if _AN.match(change.new) else "a"
            text = text[: article.start] + _cased_article(right, article.text) + text[article.end :]
    return text


def _cased_article(right: str, old: str) -> str:
    return right.capitalize() if old[0].isupper() else right
