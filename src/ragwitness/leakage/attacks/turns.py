"""Attacks of several prompts that belong together: escalation, memory, planted documents.

Every target can be asked, since no prompt needs a session. The next prompt quotes the earlier
answer, as a client does that keeps the conversation itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from ragwitness.core.types import Document
from ragwitness.leakage.attacks.base import Attacking, Limits, batches
from ragwitness.leakage.attacks.single_turn import PROMPTS, different_fragments
from ragwitness.text.secrets import Secret

_QUOTED = 40  # words of an answer in the next prompt


@dataclass(frozen=True, slots=True)
class EscalationConfig:
    """A question, then requests for its source in the words of ``prompts.toml``.

    Attributes:
        texts: Public texts that questions are cut from; the package's corpus where empty.
        topic: A subject whose words the questions begin with.
        limits: How much is asked.
    """

    texts: Sequence[str] = ()
    topic: str = ""
    limits: Limits = field(default_factory=Limits)


class Escalation:
    """Asks, and quotes each answer to ask for the text that it is taken from."""

    name = "escalation"

    def __init__(self, config: EscalationConfig = EscalationConfig()) -> None:
        self.config = config

    def steps(self) -> Attacking:
        """Return the attack."""
        config, limits, turns = self.config, self.config.limits, PROMPTS["turns"]
        count = max(1, limits.prompts // len(turns))
        pieces = different_fragments(count, limits.rng(), config.texts, config.topic)
        for batch in batches(pieces, limits.size):
            quoted = [""] * len(batch)
            for turn in turns[: limits.prompts]:
                pairs = zip(batch, quoted, strict=True)
                answers = yield [
                    limits.ask(turn.format(information=piece, answer=answer))
                    for piece, answer in pairs
                ]
                quoted = [" ".join(answer.text.split()[-_QUOTED:]) for answer in answers]
        return None


@dataclass(frozen=True, slots=True)
class MarkedConfig:
    """Prompts of a section of ``prompts.toml``, some with a mark that no other text holds.

    Attributes:
        section: ``"system-prompt"``, ``"memory"`` or ``"planted"``.
        limits: How much is asked.
    """

    section: str = "system-prompt"
    limits: Limits = field(default_factory=Limits)


class Marked:
    """Sends the prompts of a section; a mark that comes back elsewhere has crossed a border."""

    def __init__(self, config: MarkedConfig = MarkedConfig()) -> None:
        self.config, self.name = config, config.section
        digest = hashlib.sha256(f"{config.section} {config.limits.seed}".encode()).hexdigest()
        self._mark = digest[:6], digest[6:12]

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """The mark, as a secret to look for; none of the system prompt, which its owner lists."""
        if self.config.section == "system-prompt":
            return ()
        return (Secret("".join(self._mark), f"{self.config.section} mark", ""),)

    @property
    def documents(self) -> tuple[Document, ...]:
        """The documents to plant, with the mark in two parts: a quote of them does not hold it."""
        texts = PROMPTS[self.config.section].get("documents", ())
        halves = dict(zip(("first", "second"), self._mark, strict=True))
        return tuple(
            Document(f"ragwitness-{self._mark[0]}-{n}", text.format(**halves))
            for n, text in enumerate(texts)
        )

    def steps(self) -> Attacking:
        """Return the attack."""
        limits, mark = self.config.limits, "".join(self._mark)
        prompts = PROMPTS[self.config.section]["prompts"][: limits.prompts]
        for prompt in prompts:
            yield [limits.ask(prompt.format(mark=mark))]
        return "needs its documents (--plant) in the system" if self.documents else None
