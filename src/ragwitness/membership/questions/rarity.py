"""How rare each word of a document is, by the auditor's proxy; and a summary made from it."""

from __future__ import annotations

from collections.abc import Sequence

from ragwitness.membership.questions.values import Value, find_values
from ragwitness.models import LanguageModel, word_scores
from ragwitness.text.words import core, split_words

__all__ = ["Rarity", "rarest", "topic"]

_STEP = 150  # words scored at a time; any proxy's context holds them
_FEWEST = 1


class Rarity:
    """Surprisal of each word under the proxy.

    Args:
        proxy: Must not have seen the target's database.
        text: The document.
    """

    def __init__(self, proxy: LanguageModel, text: str) -> None:
        self.text = text
        self.values = find_values(text)
        self._surprisal: dict[str, float] = {}
        for part in _parts(proxy, text):
            for scored in word_scores(proxy, part):
                # A word is rare where it is said first; said again it is expected.
                self._surprisal.setdefault(core(scored.word).casefold(), -scored.logprob)

    def of(self, word: str) -> float:
        """Return -log p of a word where it first stands, in nats; 0 for one that is not there."""
        return self._surprisal.get(core(word).casefold(), 0.0)


def _parts(proxy: LanguageModel, text: str) -> list[str]:
    """Cut the text so that the proxy can read each part; a word it cannot read is left out."""
    words, step = split_words(text), _STEP
    room = proxy.context_length // 2
    parts: list[str] = []
    place = 0
    while place < len(words):
        size = min(step, len(words) - place)
        part = text[words[place].start : words[place + size - 1].end]
        while proxy.count_tokens(part) > room and size > _FEWEST:
            size //= 2
            part = text[words[place].start : words[place + size - 1].end]
        if proxy.count_tokens(part) <= room:
            parts.append(part)
        place += size
    return parts


def rarest(rarity: Rarity, values: Sequence[Value], n: int) -> list[Value]:
    """Return the ``n`` rarest values, each word once, in reading order."""
    first: dict[str, Value] = {}
    for value in values:
        first.setdefault(value.text.casefold(), value)
    ordered = sorted(first.values(), key=lambda v: (-rarity.of(v.text), v.index))
    return sorted(ordered[:n], key=lambda v: v.index)


def topic(rarity: Rarity, n: int) -> str:
    """Return the document's rarest words as a phrase to find it by; empty where it has none."""
    words = [value.text for value in rarest(rarity, rarity.values, n) if value.kind != "number"]
    return f"On {', '.join(words)}:" if words else ""
