"""Attacks with a mark of their own: the system prompt, memory across sessions, planted documents.

Every target can be asked, since no prompt needs a session.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from ragwitness.core.types import Document
from ragwitness.leakage.attacks.base import Attacking, Limits
from ragwitness.leakage.attacks.single_turn import PROMPTS
from ragwitness.text.secrets import Secret


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
