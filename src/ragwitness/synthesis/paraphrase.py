"""Each record in other words: SAGE's baselines."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from ragwitness.core.types import Document
from ragwitness.synthesis.agents import MakingConfig, RoleMethod, shown
from ragwitness.synthesis.generator import Maker, Steps, Synthesis, maker, until_passed
from ragwitness.synthesis.guard import SyntheticGuard
from ragwitness.synthesis.roles import GENERATOR
from ragwitness.synthesis.rules import Rules
from ragwitness.synthesis.sage import CHECKS, ask_text

ResultType = Literal["plain", "privacy", "checklist"]

NO_RISKS = "The generated data should *NOT* have privacy risks."
"""Para(GPT-4o, Privacy), App. A.6: one sentence more."""

_WORDS = """\
Tell the text between <<< and >>> in other words and another order. The result must be {form}.\
{privacy}{advice} Write the new text alone.

{text}"""
_PRIVACY = """\
 It must tell of nobody in particular; leave out or blur whatever touches one of these points:
{checks}
"""


class Paraphrase(RoleMethod):
    """Has each record told in other words.

    Args:
        kind: ``"plain"``, ``"privacy"`` (one sentence more, A.6) or ``"checklist"`` (SAGE's six
            checks, Table 18).
        config: Settings.
    """

    roles = (GENERATOR,)

    def __init__(self, kind: ResultType = "plain", config: MakingConfig | None = None) -> None:
        super().__init__(config)
        self.kind = kind

    @property
    def name(self) -> str:
        """``paraphrase``, with its kind where that is not plain."""
        return "paraphrase" if self.kind == "plain" else f"paraphrase-{self.kind}"

    def most(self, records: int) -> int:
        """Return the most queries."""
        return records * max(1, self.config.rounds) * self.config.asking.attempts

    def begin(self, documents: Sequence[Document], guard: SyntheticGuard) -> Steps[Maker]:
        """Return the maker; nothing is learnt of the corpus, unless rules tell a text."""
        yield from ()
        rules = Rules(documents, guard)
        return maker(self.config.longest, lambda document: self._make(document, guard, rules))

    def _make(self, document: Document, guard: SyntheticGuard, rules: Rules) -> Steps[Synthesis]:
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
