"""SAGE's paraphrases as published (App. A.6): one question, and whatever comes back is kept."""

from __future__ import annotations

from ragwitness.core.types import Document
from ragwitness.synthesis.agents import GENERATOR, MakingConfig, ask
from ragwitness.synthesis.baselines import NO_RISKS, Paraphrase, ParaphraseKind
from ragwitness.synthesis.generator import Fate, Steps, Synthesis
from ragwitness.synthesis.guard import SyntheticGuard
from research.synthetic.published import PARAPHRASE, PARAPHRASE_JOE, as_published, unchecked

# Table 17 asks to extract and forbids to edit, so that its paraphrase copies.
_PROMPTS = {
    "plain": PARAPHRASE,
    "privacy": f"{NO_RISKS}\n\n{PARAPHRASE}",
    "checklist": PARAPHRASE_JOE,
}


class PublishedParaphrase(Paraphrase):
    """The paper's prompt, asked once; our conditions are not enforced.

    Args:
        kind: As for :class:`~ragwitness.synthesis.baselines.Paraphrase`.
        config: Settings.
    """

    def __init__(self, kind: ParaphraseKind = "plain", config: MakingConfig | None = None) -> None:
        super().__init__(kind, as_published(config))

    @property
    def name(self) -> str:
        """``paraphrase-published``, with its kind where that is not plain."""
        return f"{super().name}-published"

    def most(self, records: int) -> int:
        """Return the most queries."""
        return records * self.config.asking.attempts

    def _make(self, document: Document, guard: SyntheticGuard) -> Steps[Synthesis]:
        # Tables 17 and 18.
        prompt = _PROMPTS[self.kind].format(input_context=document.text)
        text = yield from ask(prompt, str.strip, self.config.asking, role=GENERATOR)
        return unchecked(Synthesis(document.id, Fate.UNGUARDED, text), guard)
