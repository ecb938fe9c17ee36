"""A crawler over a graph of what has leaked (RAGCrawler, 2026).

Entities are nodes, those of one passage are joined. A bandit chooses the node by what asking about
it brought, a confidence bound and the graph's prior; conditional marginal gain, the other words.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.extraction.attacks.adaptive import AttackerConfig, ranged
from ragwitness.extraction.attacks.base import Attacking
from ragwitness.extraction.attacks.novelty import Novelty, NoveltyConfig

_ENTITIES = 12  # of a passage
_LOOKED_AT = 40  # nodes among which the most promising is chosen
_NAME = "Name the people, places, things and subjects in this text, one on each line:\n\n{0}"
_SHOWN = 1500  # characters of a passage that the chat model is shown


@dataclass(frozen=True, slots=True)
class CrawlerConfig(NoveltyConfig):
    """The bandit: weights of the confidence bound, and of what a node's neighbours brought."""

    explore: float = ranged(0.5, 0)
    prior: float = ranged(0.5, 0)


class Crawler(Novelty):
    """Asks about the entity that promises most, together with what no seen passage joins to it."""

    name = "crawler"
    default = CrawlerConfig()
    config: CrawlerConfig

    def __init__(self, config: AttackerConfig | None = None) -> None:
        super().__init__(config)
        self._neighbours: dict[str, set[str]] = defaultdict(set)
        self._visits: Counter[str] = Counter()
        self._gains: Counter[str] = Counter()
        self._sent: dict[str, str] = {}
        self._unnamed: list[int] = []

    def prepare(self) -> Attacking:
        """Let the chat model name the entities of new passages."""
        waiting, self._unnamed = self._unnamed, []
        shown = [_NAME.format(self.memory.passages[number][:_SHOWN]) for number in waiting]
        said = yield from self.imagine(shown)
        for number, named in zip(waiting, said, strict=True):
            words = self.memory.askable(self.memory.passages[number])
            entities = named or sorted(words, key=lambda word: len(self.memory.postings(word)[0]))
            for one in entities[:_ENTITIES]:
                self._neighbours[one].update(entities[:_ENTITIES])
        return None

    def propose(self) -> str:
        """Return a prompt about the node that promises most; a fragment while there is no graph."""
        if not self.ready() or not self._neighbours:
            return self.worded(self.public)
        nodes = list(self._neighbours)
        node = max(self.rng.sample(nodes, min(_LOOKED_AT, len(nodes))), key=self._promise)
        size = self.config.words - len(node.split())
        prompt = self.worded(lambda beside: f"{node} {self.by_words(size, f'{node} {beside}')}")
        self._sent[prompt] = node
        self._visits[node] += 1
        return prompt

    def _promise(self, node: str) -> float:
        visits, sent = self._visits[node], len(self._sent)
        # The prior stands where a node was not asked about: what its neighbours brought.
        near = self._neighbours[node]
        asked = sum(self._visits[other] for other in near)
        prior = (1 + sum(self._gains[other] for other in near)) / (1 + asked)
        mean = (self._gains[node] + self.config.prior * prior) / (visits + self.config.prior + 1e-9)
        # UCB: the bound falls with the visits of this node and rises with all prompts sent.
        return mean + self.config.explore * math.sqrt(math.log(sent + 2) / (visits + 1))

    def learn(self, prompt: str, new: Sequence[int]) -> None:
        """Note what the node brought; new passages join the graph before the next batch."""
        super().learn(prompt, new)
        self._unnamed.extend(new)
        if prompt in self._sent:
            self._gains[self._sent[prompt]] += len(new)
