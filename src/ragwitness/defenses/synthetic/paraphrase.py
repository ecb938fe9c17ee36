"""Each record in other words: SAGE's baselines, and the published one that copies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from ragwitness.defenses.synthetic.agents import MakingConfig, RoleMethod, ask, shown
from ragwitness.defenses.synthetic.base import (
    Fate,
    Maker,
    Steps,
    Synthesis,
    maker,
    unchecked,
    until_passed,
)
from ragwitness.defenses.synthetic.guard import SyntheticGuard
from ragwitness.defenses.synthetic.roles import GENERATOR
from ragwitness.defenses.synthetic.rules import Rules
from ragwitness.defenses.synthetic.sage import CHECKS, ask_text
from ragwitness.defenses.synthetic.sage_paper import NO_RISKS, PARAPHRASE, PARAPHRASE_JOE
from ragwitness.types import Document

Kind = Literal["plain", "privacy", "checklist"]

_WORDS = """\
Tell the text between <<< and >>> in other words and another order. The result must be {form}.\
{privacy}{advice} Write the new text alone.

{text}"""
_PRIVACY = """\
 It must tell of nobody in particular; leave out or blur whatever touches one of these points:
{checks}
"""
# As published (A.6): Table 17 asks to extract and forbids to edit, so that its paraphrase copies.
_PUBLISHED = {
    "plain": PARAPHRASE,
    "privacy": f"{NO_RISKS}\n\n{PARAPHRASE}",
    "checklist": PARAPHRASE_JOE,
}


class Paraphrase(RoleMethod):
    """Has each record told in other words.

    Args:
        kind: ``"plain"``, ``"privacy"`` (one sentence more, A.6) or ``"checklist"`` (SAGE's six
            checks, Table 18).
        config: Settings.
        published: The paper's prompt, asked once; our conditions are not enforced, for evaluation
            only.
    """

    roles = (GENERATOR,)

    def __init__(
        self, kind: Kind = "plain", config: MakingConfig | None = None, published: bool = False
    ) -> None:
        super().__init__(config, published)
        self.kind = kind

    @property
    def name(self) -> str:
        """``paraphrase``, with its kind where that is not plain."""
        kind = "" if self.kind == "plain" else f"-{self.kind}"
        return f"paraphrase{kind}{'-published' if self.published else ''}"

    def most(self, records: int) -> int:
        """Return the most queries."""
        versions = 1 if self.published else max(1, self.config.rounds)
        return records * versions * self.config.asking.attempts

    def begin(self, documents: Sequence[Document], guard: SyntheticGuard) -> Steps[Maker]:
        """Return the maker; nothing is learnt of the corpus, unless rules tell a text."""
        yield from ()
        rules = Rules(documents, guard)
        return maker(self.config.longest, lambda document: self._make(document, guard, rules))

    def _make(self, document: Document, guard: SyntheticGuard, rules: Rules) -> Steps[Synthesis]:
        if self.published:
            # Tables 17 and 18: one question, and whatever comes back is kept.
            prompt = _PUBLISHED[self.kind].format(input_context=document.text)
            said = rules.useful(document.text)
            rule = partial(str, said if self.kind == "plain" else rules.rewritten(said))
            text = yield from ask(prompt, str.strip, self.config.asking, role=GENERATOR, rule=rule)
            return unchecked(Synthesis(document.id, Fate.UNGUARDED, text), guard)
        checks = "\n".join(f"- {check}" for check in CHECKS)

        told = {"privacy": f" {NO_RISKS}", "checklist": _PRIVACY.format(checks=checks)}.get(
            self.kind, ""
        )

        def tell(advice: str, turn: int) -> Steps[str]:
            prompt = _WORDS.format(
                form=self.config.domain.form,
                privacy=told,
                advice=f" An earlier attempt could not be used. {advice}" if advice else "",
                text=shown(document.text),
            )
            rule = partial(rules.reworded, document.text)
            return ask_text(prompt, self.config, document.text, turn, rule=rule)

        return (yield from until_passed(document.id, tell, self.config.rounds, guard))
