"""Ask for what no seen passage answers: our own attack.

Prompts are fragments of public text with words never asked before, until enough passages came that
their prompts drew. Then some are built of words that occur in the corpus but stand together in no
seen passage, so that z (see ``memory``) is low. Which kind goes out is drawn by the belief that it
brings new passages (Thompson sampling).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from ragwitness.extraction.attacks.base import REPEAT, Attacking, Limits, require
from ragwitness.extraction.attacks.information import fragments, public_texts
from ragwitness.extraction.attacks.memory import Draft, Memory
from ragwitness.models.base import Embedder
from ragwitness.text.runs import plain_tokens

_DRAWS = 20  # fragments of which the least asked is taken; draws of a prompt not yet sent
_BEGIN = 30  # passages without which words of the corpus draw the same few again and again
_POOL, _FRESH = 60, 18  # seen words among which the next is chosen; public words never seen
_SETS = 12  # sets of words that an embedder chooses from


@dataclass(frozen=True, slots=True)
class NoveltyConfig:
    """How prompts are built, and what the attacker knows.

    Prompts are of at most so many ``words`` of the corpus, or of a fragment of public ``texts``
    that begins with words of the ``topic``, and of a ``command`` that makes a model repeat its
    passages. An ``embedder`` judges what is new in place of words.
    """

    words: int = 15
    command: str = REPEAT
    texts: Sequence[str] = ()
    topic: str = ""
    embedder: Embedder | None = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        require("words", self.words, 1)


class Novelty:
    """Asks for what no seen passage answers."""

    name = "novelty"

    def __init__(self, config: NoveltyConfig | None = None) -> None:
        self.config = config or NoveltyConfig()
        self._memory = Memory(f"{self.config.command} {self.config.topic}", self.config.embedder)
        self._rng, self._asked = self.config.limits.rng(), set[str]()
        words = self._by_words if self.config.embedder is None else self._by_vectors
        # The kinds of prompts, and what makes one.
        self._forms: dict[str, Callable[[], str]] = {"words": words, "fragment": self._fragment}
        # Of each kind [prompts that brought a new passage, others]: each begins with one of either.
        self._news = {kind: [1, 1] for kind in self._forms}

    def steps(self) -> Attacking:
        """Return the attack."""
        return (yield from Novelty(self.config)._attack())

    def _attack(self) -> Attacking:
        limits, sent = self.config.limits, dict[str, str]()
        while len(sent) < limits.prompts:
            # 1. Propose a batch; what was sent before is drawn again.
            batch = list[str]()
            for _ in range(_DRAWS * limits.size):
                if len(batch) == limits.size or len(sent) == limits.prompts:
                    break
                kind = self._kind()
                prompt = f"{self._forms[kind]()} {self.config.command}".rstrip()
                if prompt not in sent:
                    sent[prompt] = kind
                    batch.append(prompt)
            if not batch:
                break
            # 2. Ask, remember what was shown, and learn which kind brings news.
            ready = self._ready
            answers = yield [limits.ask(prompt) for prompt in batch]
            for prompt, answer in zip(batch, answers, strict=True):
                new = self._memory.add(answer.text, prompt)
                if ready:
                    self._news[sent[prompt]][not new] += 1
        return None

    @property
    def _ready(self) -> bool:
        return self._memory.shown >= _BEGIN

    def _kind(self) -> str:
        belief = {kind: self._rng.betavariate(*news) for kind, news in self._news.items()}
        return max(belief, key=belief.__getitem__) if self._ready else "fragment"

    @cached_property
    def _texts(self) -> list[str]:
        return public_texts(self.config.texts)

    def _fragment(self) -> str:
        """Of several random public fragments, the one with the most words never asked."""
        drawn = fragments(_DRAWS, self._rng, self._texts, self.config.topic)
        best = max(drawn, key=lambda one: len(set(plain_tokens(one)) - self._asked))
        self._asked.update(plain_tokens(best))
        return best

    def _by_words(self) -> str:
        """Words of the corpus, each the one of those drawn with which z is lowest."""
        chosen, draft = list[str](), Draft(self._memory, plain_tokens(self.config.command))
        while len(chosen) < self.config.words:
            pool = [word for word in self._pool() if word not in chosen]
            if not pool:
                break
            chosen.append(draft.best(pool))
            draft.take(chosen[-1])
        self._asked.update(chosen)
        return " ".join(chosen)

    def _pool(self) -> list[str]:
        words, weights = self._public
        fresh, seen = self._rng.choices(words, cum_weights=weights, k=_FRESH), self._memory.askable
        strange = [word for word in fresh if word not in self._memory and word not in self._asked]
        return list(dict.fromkeys(self._rng.sample(seen, min(_POOL, len(seen))) + strange))

    @cached_property
    def _public(self) -> tuple[list[str], list[float]]:
        """Public words and their summed weights: those of many texts are the likelier."""
        each = (dict.fromkeys(plain_tokens(one)) for one in self._texts)
        counts = Counter(word for words in each for word in words if len(word) > 2)
        counts.update(dict.fromkeys(plain_tokens(self.config.topic), len(self._texts)))
        return list(counts), list(accumulate(math.sqrt(count) for count in counts.values()))

    def _by_vectors(self) -> str:
        """Of several sets of seen words, the one of the lowest z by the embedder."""
        seen, size = self._memory.askable, self.config.words // 2 + 1
        some = [" ".join(self._rng.sample(seen, min(size, len(seen)))) for _ in range(_SETS)]
        asked = [f"{one} {self.config.command}" for one in some]
        return some[int(self._memory.novelty(asked).argmin())]
