"""An attack that gives its prompts to what works at this system.

Its arms share one memory: prompts of expected novelty by words, with few words, by the embedder
where there is one, inside an ordinary question without any command (for systems that refuse or
filter commands), and fragments of public text, with a command or without. Which arm proposes a
prompt is drawn by the belief that it brings most new passages (Thompson sampling).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ragwitness.extraction.attacks.adaptive import AdaptiveConfig
from ragwitness.extraction.attacks.novelty import Novelty, NoveltyConfig

_QUESTION = "What is known about {0}?"
_FEW = 5  # words of a short prompt
_FADING = 0.995  # weight that what an arm brought keeps with each further prompt


@dataclass(frozen=True, slots=True)
class AutoConfig(NoveltyConfig):
    """How prompts are built, whichever arm proposes them."""


class Auto(Novelty):
    """Gives its prompts to what works: draws an arm for each, by what the arms brought."""

    name = "auto"
    default = AutoConfig()
    config: AutoConfig

    def __init__(self, config: AdaptiveConfig | None = None) -> None:
        super().__init__(config)
        self._arms: dict[str, Callable[[], str]] = {
            "fragment": lambda: self.command(self.fragment()),
            "plain fragment": lambda: _QUESTION.format(self.fragment()),
            "words": lambda: self.command(self.by_words(self.config.words)),
            "few words": lambda: self.command(self.by_words(min(_FEW, self.config.words))),
            "plain words": lambda: _QUESTION.format(self.by_words(self.config.words, _QUESTION)),
        }
        if self.memory.embedder is not None:
            self._arms["vectors"] = self.by_vectors
        # Passages brought and prompts sent, by arm; each begins with one prompt that brought one.
        self._brought = dict.fromkeys(self._arms, 1.0)
        self._tried = dict.fromkeys(self._arms, 1.0)
        self._sent: dict[str, str] = {}

    def propose(self) -> str:
        """Return the prompt of the arm drawn; a fragment before anything leaked."""
        arms = list(self._arms) if self.ready() else list(self._arms)[:2]
        drawn = {
            arm: self.rng.gammavariate(self._brought[arm], 1 / self._tried[arm]) for arm in arms
        }
        arm = max(drawn, key=lambda one: drawn[one])
        prompt = self._arms[arm]()
        self._sent[prompt] = arm
        return prompt

    def learn(self, prompt: str, new: Sequence[int]) -> None:
        """Credit the arm; what was long ago counts less."""
        for arm in self._arms:
            self._brought[arm] = 0.1 + (self._brought[arm] - 0.1) * _FADING
            self._tried[arm] = 0.1 + (self._tried[arm] - 0.1) * _FADING
        self._brought[self._sent[prompt]] += len(new)
        self._tried[self._sent[prompt]] += 1
