"""What every adaptive attack shares: propose prompts, read the answers, remember what leaked."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar

from ragwitness.extraction.attacks.base import REPEAT, Ask, Attacking, Limits, Thought, require
from ragwitness.extraction.attacks.information import fragments, public_texts
from ragwitness.extraction.attacks.memory import Draft, Memory
from ragwitness.models.base import Embedder
from ragwitness.text.runs import plain_tokens
from ragwitness.types import Answer

_DRAWS = 20  # fragments of which the least asked is taken; draws of a prompt not yet sent
_THOUGHT = 200  # most tokens of what the chat model says


@dataclass(frozen=True, slots=True)
class AttackerConfig:
    """What every adaptive attack is given.

    A ``command`` that makes a model repeat its passages, public ``texts`` and a ``topic`` to begin
    with, an ``embedder`` that judges what is new in place of words, perhaps a ``chat`` model.
    """

    command: str = REPEAT
    texts: Sequence[str] = ()
    topic: str = ""
    embedder: Embedder | None = None
    chat: bool = False
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Refuse settings outside of their range, as :func:`ranged` gives it."""
        for one in fields(self):
            if "range" in one.metadata:
                require(one.name, getattr(self, one.name), *one.metadata["range"])


def ranged(default: float, least: float, most: float = math.inf) -> Any:
    """Return a field of a configuration that takes numbers of a range."""
    return field(default=default, metadata={"range": (least, most)})


class Adaptive(ABC):
    """An attack whose prompts follow from what leaked; subclasses say what is asked next."""

    name: ClassVar[str]
    default: ClassVar[AttackerConfig]

    def __init__(self, config: AttackerConfig | None = None) -> None:
        self.config = config or self.default
        self.memory, self.rng = Memory(self.config.embedder), self.config.limits.rng()
        self.chat = self.config.chat
        self.lost: str | None = None  # why the chat model is not asked any more
        self.asked: set[str] = set()  # words

    def steps(self) -> Attacking:
        """Return the attack; in the end it says how much of the corpus it believes it saw."""
        return (yield from type(self)(self.config)._attack())

    def _attack(self) -> Attacking:
        limits, sent = self.config.limits, set[str]()
        while len(sent) < limits.prompts:
            # 1. Propose a batch; what was sent before is drawn again.
            yield from self.prepare()
            batch: list[str] = []
            for _ in range(_DRAWS * limits.size):
                if len(batch) == limits.size or len(sent) == limits.prompts:
                    break
                if (prompt := self.propose()) not in sent:
                    sent.add(prompt)
                    batch.append(prompt)
            if not batch:
                break
            # 2. Ask, and remember what leaked.
            answers = yield [limits.ask(prompt) for prompt in batch]
            for prompt, answer in zip(batch, answers, strict=True):
                self.learn(prompt, self.memory.add(answer.text, prompt))
        said = [self.memory.told()] if self.memory.passages else []
        if self.lost is not None:
            said.append(f"went on without its chat model, which stopped: {self.lost.rstrip('.')}")
        return "; ".join(said) or None

    def prepare(self) -> Attacking:
        """Ask the chat model, if there is one, before the next batch."""
        yield from ()
        return None

    @abstractmethod
    def propose(self) -> str:
        """Return a prompt."""

    def learn(self, prompt: str, new: Sequence[int]) -> None:  # noqa: B027  # not all learn more
        """Read what a prompt brought: the numbers of passages that are news."""

    def imagine(
        self, questions: Sequence[str]
    ) -> Generator[list[Ask], list[Answer], list[list[str]]]:
        """Return the lines that the chat model says; none without it, or once it has stopped."""
        if not self.chat or not questions:
            return [[] for _ in questions]
        answers = yield [Ask(Thought(question, _THOUGHT)) for question in questions]
        self.lost = next((one.error for one in answers if one.error is not None), None)
        self.chat = self.lost is None
        lines = [[] if one.error is not None else one.text.splitlines() for one in answers]
        bare = [[line.strip("-*0123456789.) ") for line in some] for some in lines]
        return [[line for line in some if line] for some in bare]

    @cached_property
    def texts(self) -> list[str]:
        """Public texts."""
        return public_texts(self.config.texts)

    def fragment(self) -> str:
        """Return, of several random public fragments, the one with the most words never asked."""
        drawn = fragments(_DRAWS, self.rng, self.texts, self.config.topic)
        best = max(drawn, key=lambda one: len(set(plain_tokens(one)) - self.asked))
        self.asked.update(plain_tokens(best))
        return best

    @cached_property
    def _vocabulary(self) -> tuple[list[str], list[float]]:
        each = (dict.fromkeys(plain_tokens(one)) for one in self.texts)
        counts = Counter(word for words in each for word in words if len(word) > 2)
        counts.update(dict.fromkeys(plain_tokens(self.config.topic), len(self.texts)))
        return list(counts), list(accumulate(math.sqrt(count) for count in counts.values()))

    def public_words(self, count: int) -> list[str]:
        """Return random public words; those of many texts and of the topic are the likelier."""
        words, weights = self._vocabulary
        return self.rng.choices(words, cum_weights=weights, k=count)

    def command(self, information: str) -> str:
        """Return a prompt of information and command."""
        return f"{information} {self.config.command}".rstrip()

    def compose(
        self, size: int, draw: Callable[[], Iterable[str]], beside: str, begun: Sequence[str] = ()
    ) -> list[str]:
        """Return words, each the one of those drawn with which, beside the rest, z is lowest."""
        chosen = list(begun)
        draft = Draft(self.memory, plain_tokens(f"{beside} {' '.join(begun)}"))
        while len(chosen) < size:
            pool = [word for word in dict.fromkeys(draw()) if word not in chosen]
            if not pool:
                break
            chosen.append(draft.best(pool))
            draft.take(chosen[-1])
        return chosen

    def lowest(self, prompts: Sequence[str]) -> int:
        """Return the place of the prompt of the lowest z; the first of equals."""
        return int(self.memory.novelty(prompts).argmin())
