"""The loop: attributes, text, judgements and rewrites, then our own conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ragwitness.defenses.sage.attributes import Attribute, identify
from ragwitness.defenses.sage.extract import extract
from ragwitness.defenses.sage.generate import generate
from ragwitness.defenses.sage.privacy import judge
from ragwitness.defenses.sage.rewrite import rewrite
from ragwitness.defenses.synthetic.asking import StoppedError
from ragwitness.defenses.synthetic.base import Fate, Maker, Steps, Synthesis, checked, flaw
from ragwitness.defenses.synthetic.config import MakingConfig
from ragwitness.defenses.synthetic.guard import Guard
from ragwitness.types import Document

__all__ = ["Sage", "stage_one"]


class Sage:
    """SAGE with hard conditions.

    Args:
        config: Settings; with 0 rounds it is stage 1 alone.
    """

    asks = True

    def __init__(self, config: MakingConfig | None = None) -> None:
        self.config = config or MakingConfig()

    @property
    def name(self) -> str:
        """``sage``, or ``stage-1`` without judgements."""
        return "sage" if self.config.rounds else "stage-1"

    def describe(self) -> dict[str, str]:
        """Return every setting."""
        return {"method": self.name, **self.config.describe()}

    def most(self, records: int) -> int:
        """Return the most queries: identification, and per record what all rounds take."""
        domain = self.config.domain
        once = 0 if domain.attributes else max(1, len(domain.parts))
        each = 2 + max(0, 2 * self.config.rounds - 1)
        return self.config.asking.attempts * (once + records * each)

    def begin(self, documents: Sequence[Document], guard: Guard) -> Steps[Maker]:
        """Identify the attributes; return the maker."""
        attributes = yield from identify(documents, self.config, guard)
        return lambda document: self._make(document, attributes, guard)

    def _make(
        self, document: Document, attributes: Sequence[Attribute], guard: Guard
    ) -> Steps[Synthesis]:
        made = Synthesis(document.id, Fate.UNUSABLE)
        if reason := flaw(document.text, self.config.longest):
            return replace(made, reason=reason)
        try:
            text = yield from stage_one(document, attributes, self.config)
            if not self.config.rounds:
                return checked(replace(made, text=text), guard)
            return (yield from self._refine(document, text, guard))
        except StoppedError as stop:
            return replace(made, fate=stop.fate, reason=stop.reason)

    def _refine(self, document: Document, text: str, guard: Guard) -> Steps[Synthesis]:
        """Judge and rewrite until the agent and the conditions agree, or the rounds are over."""
        rounds = self.config.rounds
        made = Synthesis(document.id, Fate.WITHHELD)
        for turn in range(1, rounds + 1):
            said = yield from judge(text, document, self.config, turn)
            made = replace(checked(replace(made, text=text), guard), rounds=turn)
            if said.safe and made.fate is Fate.PASSED:
                return made
            if turn < rounds:
                broken = guard.violation(text)
                feedback = "\n".join(
                    filter(None, (said.suggestions, broken.advice if broken else ""))
                )
                text = yield from rewrite(text, feedback, self.config, turn, document.text)
        # Fail closed: without the agent's word no text passes, even one that breaks no condition.
        reason = made.reason or f"the privacy agent did not call it safe in {rounds} rounds"
        return replace(made, fate=Fate.WITHHELD, text="", reason=reason)


def stage_one(
    document: Document, attributes: Sequence[Attribute], config: MakingConfig
) -> Steps[str]:
    """Return the text of stage 1.

    Raises:
        StoppedError: The model gave nothing that can be used.
    """
    pairs = yield from extract(document, attributes, config)
    text = yield from generate(pairs, config, document.text)
    return text
