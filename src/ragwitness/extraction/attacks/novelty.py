"""Ask for what no seen passage answers: our own attack.

Each prompt is built word by word from words that occur in the corpus but stand together in no seen
passage: a seen passage matches one or two of them, some unseen record three or four. What is
minimised is the expected novelty z of :mod:`~ragwitness.extraction.attacks.memory`; there is no
anchor, no bandit and no weight of exploration. Blind, it is composite prompts whose fragments
avoid what was asked.
"""

from __future__ import annotations

from dataclasses import dataclass

from ragwitness.extraction.attacks.adaptive import Adaptive, AdaptiveConfig, ranged

_POOL = 60  # seen words among which the next is chosen
_FRESH = 18  # and public words that were never seen
_SETS = 12  # sets of words that an embedder chooses from
_BEGIN = 4  # passages without which there is nothing to build from


@dataclass(frozen=True, slots=True)
class NoveltyConfig(AdaptiveConfig):
    """How prompts are built.

    Attributes:
        words: Words of a prompt, at most.
    """

    words: int = ranged(15, 1)


class Novelty(Adaptive):
    """Asks for what no seen passage answers."""

    name = "novelty"
    default = NoveltyConfig()
    config: NoveltyConfig

    def __init__(self, config: AdaptiveConfig | None = None) -> None:
        super().__init__(config)
        self._askable: list[str] = []
        self._known = -1

    def propose(self) -> str:
        """Return a prompt of the lowest z found; a fragment before there is anything to avoid."""
        if not self.ready():
            return self.command(self.fragment())
        if self.memory.embedder is not None:
            return self.by_vectors()
        return self.command(self.by_words(self.config.words))

    def ready(self) -> bool:
        """Whether enough has leaked to build from."""
        if len(self.memory.passages) != self._known:
            self._known, self._askable = len(self.memory.passages), self.memory.askable()
        return self._known >= _BEGIN and len(self._askable) >= 4 * self.config.words

    def by_words(self, size: int, beside: str | None = None) -> str:
        """Return words of low z beside what stands in the prompt anyway; None for the command."""
        others = self.config.command if beside is None else beside
        chosen = self.compose(size, self._pool, others)
        self.asked.update(chosen)
        return " ".join(chosen)

    def _pool(self) -> list[str]:
        fresh = self.public_words(_FRESH)
        strange = [word for word in fresh if word not in self.memory and word not in self.asked]
        return self.rng.sample(self._askable, min(_POOL, len(self._askable))) + strange

    def by_vectors(self) -> str:
        """Return, of several prompts of seen words, the one of the lowest z by the embedder."""
        size = self.config.words // 2 + 1
        return self.first(
            [self.command(" ".join(self.rng.sample(self._askable, size))) for _ in range(_SETS)]
        )
