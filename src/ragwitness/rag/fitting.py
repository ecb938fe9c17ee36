"""Makes passages, question and answer fit what the generator can read; and counts what went."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ragwitness.models.base import ChatPrompt, LanguageModel
from ragwitness.rag.chunk import word_spans
from ragwitness.types import Message, Role

__all__ = ["FitCounts", "FitLog", "chat_overhead", "fit_passages"]

# A text's tokens may differ by a few inside a conversation.
_SLACK = 8


@dataclass(frozen=True, slots=True)
class FitCounts:
    """What had to go so that prompts fit.

    Attributes:
        prompts: Prompts built.
        shortened: Prompts that lost at least part of a passage.
        dropped: Passages left out whole.
        cut: Passages cut at a word.
    """

    prompts: int = 0
    shortened: int = 0
    dropped: int = 0
    cut: int = 0


class FitLog:
    """Counts over the life of a system; safe across threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = FitCounts()

    @property
    def counts(self) -> FitCounts:
        """The counts so far."""
        return self._counts

    def add(self, *, dropped: int, cut: int) -> None:
        """Record one prompt."""
        with self._lock:
            was = self._counts
            self._counts = FitCounts(
                was.prompts + 1,
                was.shortened + bool(dropped or cut),
                was.dropped + dropped,
                was.cut + cut,
            )


def fit_passages(
    passages: Sequence[str], fits: Callable[[Sequence[str]], bool]
) -> tuple[list[str], int, int]:
    """Shorten a ranked list of passages until it fits.

    Whole passages go first, the lowest-ranked before the others; the last one left is cut
    at a word, and goes too where not one word of it fits.

    Args:
        passages: Best first.
        fits: Whether the prompt over these passages can be read.

    Returns:
        The passages kept, how many were dropped whole, and how many were cut (0 or 1).
    """
    kept = list(passages)
    while len(kept) > 1 and not fits(kept):
        kept.pop()
    dropped = len(passages) - len(kept)
    if not kept or fits(kept):
        return kept, dropped, 0
    cut = _cut_at_word(kept[0], lambda text: fits([text]))
    return ([cut], dropped, 1) if cut else ([], dropped + 1, 0)


def _cut_at_word(text: str, fits: Callable[[str], bool]) -> str:
    """The longest beginning of whole words that fits; empty where there is none."""
    ends = [end for _, end in word_spans(text)]
    low, high = 0, len(ends) - 1
    while low < high:  # invariant: the first `low` words fit, `high + 1` and more do not
        middle = (low + high + 1) // 2
        if fits(text[: ends[middle - 1]]):
            low = middle
        else:
            high = middle - 1
    return text[: ends[low - 1]] if low else ""


def chat_overhead(generator: LanguageModel) -> int:
    """Return the tokens of a conversation beyond its texts: role markers, end tokens, a date."""
    word = "a"
    shortest = ChatPrompt((Message(Role.SYSTEM, word), Message(Role.USER, word)))
    read = generator.score([word], after=[shortest])[0].prompt_tokens
    return max(0, read - 2 * generator.count_tokens(word)) + _SLACK
