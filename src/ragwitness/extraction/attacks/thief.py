"""An adaptive attack that goes on from what has leaked (RAG-Thief, Jiang et al. 2024).

Chunks of one document overlap, or follow one another: the end of a leaked passage retrieves what
comes after it, its beginning what comes before. The paper lets a language model invent ten
continuations of each leaked chunk; here the leaked words themselves retrieve, which needs no model
and sends fewer prompts per chunk.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ragwitness.extraction.attacks.base import REPEAT, Ask, Attacking, Limits, SeenLeaks, require
from ragwitness.extraction.attacks.information import LONGEST, fragments
from ragwitness.text.words import split_words
from ragwitness.types import Answer


@dataclass(frozen=True, slots=True)
class ThiefConfig:
    """Continuation of leaked passages.

    Attributes:
        command: What makes the model repeat its passages.
        words: Words of the end or the beginning of a passage that retrieve the next.
        limits: How much it may ask.
    """

    command: str = REPEAT
    words: int = LONGEST
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Refuse edges without words."""
        require("words", self.words, 1)


class Thief:
    """Asks with the ends and beginnings of leaked passages, the latest first; else at random."""

    name = "thief"

    def __init__(self, config: ThiefConfig = ThiefConfig()) -> None:
        self.config = config

    def steps(self) -> Attacking:
        """Return the attack."""
        limits, rng, seen = self.config.limits, self.config.limits.rng(), SeenLeaks()
        edges: deque[str] = deque()
        asked: set[str] = set()
        left = limits.prompts
        while left:
            batch: list[Ask] = []
            # 1. Ask with the latest edges; where none is left, with a random fragment.
            while len(batch) < min(limits.batch, left):
                edge = edges.pop() if edges else fragments(1, rng)[0]
                if edge not in asked:
                    asked.add(edge)
                    batch.append(limits.ask(f"{edge} {self.config.command}"))
            answers = yield batch
            left -= len(batch)
            # 2. A new passage brings two more edges.
            for ask, answer in zip(batch, answers, strict=True):
                if seen.add(answer, ask.query.prompt):
                    edges.extend(edge for edge in self._edges(answer) if edge not in asked)

    def _edges(self, answer: Answer) -> list[str]:
        """The beginning and the end of a passage, the end to be asked with first."""
        words, size = split_words(answer.text), self.config.words
        if len(words) < size:
            return []
        first = answer.text[: words[size - 1].end]
        return [first, answer.text[words[-size].start : words[-1].end]]
