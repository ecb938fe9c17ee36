"""Marked documents, and a system that reads its passages perfectly, with manners and defences."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from ragwitness.core.types import Document
from ragwitness.membership.marks.key import MarksKey
from ragwitness.membership.marks.lots import find_lots, word_pool
from ragwitness.text.sample import load_sample
from ragwitness.text.words import plain_tokens

VARIABLE = "MARKED_COPIES"
_TOWNS = "Arnstedt Belmont Corsica Dunmore Elbing Falkirk Grenoble Hamptons Isfahan Jackson".split()
_PLACES = ("wealthy merchant", "ancient cloister", "crooked bridge", "southern station")
_LOTS = (
    "poor|meagre|thin|scant",
    "quickly|swiftly|rapidly|promptly",
    "claimed|stated|declared|insisted",
)


def document(number: int, sentences: int = 9) -> Document:
    """Return a text with as many marks as sentences."""
    lines = (
        f"The report of {_TOWNS[number % 10]} about the {_PLACES[n % 4]} was by clerk {number}{n}"
        f" called {{{_LOTS[n % 3]}}} and then laid aside until winter."
        for n in range(sentences)
    )
    return Document(f"report {number}.txt", " ".join(lines))


def marked(documents: Sequence[Document]) -> MarksKey:
    """Return a key with the owner's marks alone."""
    pool = word_pool([*documents, *load_sample()])
    return MarksKey.fresh([find_lots(one, 0, pool, random.Random(one.id)) for one in documents])


def copies(key: MarksKey) -> list[str]:
    """Return the copies that are shared."""
    return [one.copy(drawn) for one, drawn in zip(key.documents, key.drawn, strict=True)]


_QUOTED = re.compile('[\u201c\u201e"](\u2026?)(.*?)\\s*(\u2026?)[\u201d\u201c"](?!\\w)')


def reader(
    texts: Sequence[str],
    *,
    prior: Callable[[list[str]], str] | None = min,
    says: str = "It was \u201c{}\u201d.",
    filtered: int = 0,
) -> Callable[[str], str]:
    """Return a system that goes on past what a question quotes, or chooses among what it names.

    Args:
        texts: Its documents.
        prior: How it chooses among alternatives that it does not know; None declines.
        says: Its words for a choice.
        filtered: Withhold answers with this number of words of a text in a row; 0 none.
    """
    held = [plain_tokens(text) for text in texts]
    runs = {tuple(t[at : at + filtered]) for t in held for at in range(len(t))} if filtered else ()

    def behind(run: Sequence[str], room: int) -> list[str] | None:
        for text in held:
            for at in range(len(text) - len(run)):
                if text[at : at + len(run)] == list(run):
                    return text[at + len(run) : at + len(run) + room]
        return None

    def answered(prompt: str) -> str:
        quoted = [(bool(m[1] or m[3]), m[2]) for m in _QUOTED.finditer(prompt)]
        lefts = [plain_tokens(text) for cut, text in quoted if cut]
        choices = [text for cut, text in quoted if not cut]
        for left in lefts:
            if (after := behind(left, 6)) is None:
                continue
            if not choices:
                return f"\u201c\u2026{' '.join([*left, *after])}\u201d"
            whole = f" {' '.join(after)} "
            match = [one for one in choices if whole.startswith(f" {' '.join(plain_tokens(one))} ")]
            return says.format(max(match, key=len)) if match else "I do not know."
        return says.format(prior(choices)) if choices and prior else "I do not know."

    def filter_(prompt: str) -> str:
        text = answered(prompt)
        words = plain_tokens(text)
        held_back = any(tuple(words[at : at + filtered]) in runs for at in range(len(words)))
        return "I cannot repeat that." if filtered and held_back else text

    return filter_


def tell(prompt: str) -> str:
    """Answer out of the folder of copies that a variable names."""
    folder = Path(os.environ[VARIABLE])
    return reader([path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.txt"))])(
        prompt
    )
