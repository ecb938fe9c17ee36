"""Scripted RAG systems over a handful of texts, which show the passage that they retrieve."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

_SYLLABLES = [
    f"{a}{b}{c}"
    for a in "bdfglmnprst"
    for b in "aeiou"
    for c in ("rin", "tal", "mon", "ver", "dos", "lek")
]


def made_texts(seed: str, count: int) -> list[str]:
    """Return texts of one kind, no two alike."""
    rng = random.Random(seed)
    return [" ".join(rng.choice(_SYLLABLES) for _ in range(60)) + "." for _ in range(count)]


INSIDE = made_texts("inside", 30)
MINE = made_texts("mine", 20)
OUTSIDE = made_texts("outside", 60)


class Indexed:
    """Answers with the text that shares most words with the question.

    Args:
        holds: What it holds.
        says: Of the text that was found; by default nothing of it.

    Attributes:
        asked: How many questions came.
    """

    def __init__(
        self, holds: Sequence[str], says: Callable[[str], str] = lambda _: "I found something."
    ) -> None:
        self.holds, self.says, self.asked = holds, says, 0

    def ask(self, prompt: str) -> dict[str, object]:
        self.asked += 1
        words = set(prompt.casefold().split())
        best = max(self.holds, key=lambda text: len(words & set(text.casefold().split())))
        return {"answer": self.says(best), "contexts": [best]}


class Chatty:
    """Holds nothing, and shows as its source the first words of whatever it is asked.

    How many is drawn for each question: what it seems to know differs from text to text.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def ask(self, prompt: str) -> dict[str, object]:
        words = prompt.split()
        rng = random.Random(f"{self.seed}|{prompt}")
        return {"answer": "So they say.", "contexts": [" ".join(words[: rng.randrange(9, 60)])]}


def leaking() -> Indexed:
    """Hold what it should not, and say all of it."""
    return Indexed([*MINE, *INSIDE], lambda text: text)


def innocent() -> Indexed:
    """Hold other texts, and say none of them."""
    return Indexed(INSIDE)


def silent(prompt: str) -> str:
    """Answer nothing."""
    return " \n"


def down(prompt: str) -> str:
    """Be out of order."""
    raise ConnectionError("refused")
