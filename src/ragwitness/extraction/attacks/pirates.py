"""A black-box attack by relevance-sampled anchors (Pirates of the RAG, Di Maio et al., ECAI 2025).

Words of new passages become anchors, drawn by a softmax over relevance; those that bring back only
what is known lose relevance and die. Of those drawn, the ones of the lowest z are asked about.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ragwitness.extraction.attacks.adaptive import Adaptive, AttackerConfig, ranged
from ragwitness.extraction.attacks.information import LONGEST
from ragwitness.text.runs import plain_tokens

_SHARPEST = 100.0  # relevance is at most 1, and exp(100) still a number
_DEAD = 0.05  # relevance below which an anchor is not drawn any more
_FIRST, _ALIVE = 10, 30  # fragments of the first anchors; anchors below which more are added
_DRAWN = 60  # anchors drawn for each that is chosen


@dataclass(frozen=True, slots=True)
class PiratesConfig(AttackerConfig):
    """Anchors of a prompt, and the published sharpness of the softmax over relevance.

    The published 3 anchors stand in a text that a language model writes round them; as bare words
    they weigh less than the command, and bring less than random prompts do.
    """

    anchors: int = ranged(LONGEST, 1)
    beta: float = ranged(1.0, 0, _SHARPEST)


class Pirates(Adaptive):
    """Asks about anchors drawn by relevance, and learns which of them still lead anywhere."""

    name = "pirates"
    default = PiratesConfig()
    config: PiratesConfig

    def __init__(self, config: AttackerConfig | None = None) -> None:
        super().__init__(config)
        self._relevance: dict[str, float] = {}
        self._sent: dict[str, list[str]] = {}

    def propose(self) -> str:
        """Return a wish to know about a few anchors, with an injection command."""
        # Where few anchors are alive, public words become new ones.
        if sum(value >= _DEAD for value in self._relevance.values()) < _ALIVE:
            for _ in range(_FIRST):
                self._enlist(self.memory.askable(self.fragment()))
        alive = {word: value for word, value in self._relevance.items() if value >= _DEAD}
        if not alive:
            return self.command(self.fragment())
        # Softmax over relevance; of the anchors drawn, those that together promise most.
        words, weights = list(alive), [math.exp(self.config.beta * one) for one in alive.values()]
        about = [] if self.memory.passages else plain_tokens(self.config.topic)
        lead = about and [self.rng.choice(about)]  # the topic, before anything leaked
        draw = partial(self.rng.choices, words, weights, k=_DRAWN)
        chosen = self.compose(self.config.anchors, draw, self.config.command, lead)
        prompt = self.command(f"{', '.join(chosen)}.")
        self._sent[prompt] = chosen
        return prompt

    def learn(self, prompt: str, new: Sequence[int]) -> None:
        """Move relevance half the way to whether the anchors brought anything new."""
        for anchor in self._sent.get(prompt, ()):
            self._relevance[anchor] = (self._relevance[anchor] + bool(new)) / 2
        for number in new:
            self._enlist(self.memory.askable(self.memory.passages[number]))

    def _enlist(self, words: Sequence[str]) -> None:
        """Make words anchors of full relevance, except those that are there already."""
        fresh = [word for word in words if word not in self._relevance]
        self._relevance |= dict.fromkeys(fresh, 1.0)
