"""Each record in other words: SAGE's baselines, and the published one that copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from ragwitness.defenses.synthetic.agents import MakingConfig, ask, shown
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
from ragwitness.defenses.synthetic.sage import CHECKS, ask_text
from ragwitness.types import Document

Kind = Literal["plain", "checklist", "published"]

_WORDS = """\
Tell the text between <<< and >>> in other words and another order. The result must be {form}.\
{privacy}{advice} Write the new text alone.

{text}"""
_PRIVACY = """\
 It must tell of nobody in particular; leave out or blur whatever touches one of these points:
{checks}
"""
# Table 17 asks to extract and forbids to edit: what is called paraphrase there is copying.
_EXTRACT = """\
Copy out the parts of this text that are useful or important, and change nothing in them.

{text}

Useful parts:"""


class Paraphrase:
    """Has each record told in other words.

    Args:
        kind: ``"plain"``, ``"checklist"`` (with SAGE's six checks, Table 18), or ``"published"``
            (Table 17, extractive; our conditions are not enforced, for evaluation only).
        config: Settings.
    """

    asks = True

    def __init__(self, kind: Kind = "plain", config: MakingConfig | None = None) -> None:
        self.kind = kind
        self.config = config or MakingConfig()
        if kind == "published":
            self.config = replace(self.config, asking=self.config.asking.as_published())

    @property
    def name(self) -> str:
        """``paraphrase``, with its kind where that is not plain."""
        return "paraphrase" if self.kind == "plain" else f"paraphrase-{self.kind}"

    def describe(self) -> dict[str, str]:
        """Return every setting."""
        return {"method": self.name, **self.config.describe()}

    def most(self, records: int) -> int:
        """Return the most queries."""
        versions = 1 if self.kind == "published" else max(1, self.config.rounds)
        return records * versions * self.config.asking.attempts

    def begin(self, documents: Sequence[Document], guard: SyntheticGuard) -> Steps[Maker]:  # noqa: ARG002
        """Return the maker; nothing is learnt of the corpus."""
        yield from ()
        return maker(self.config.longest, lambda document: self._make(document, guard))

    def _make(self, document: Document, guard: SyntheticGuard) -> Steps[Synthesis]:
        if self.kind == "published":
            # Table 17: one question, and whatever comes back is kept.
            prompt = _EXTRACT.format(text=document.text)
            text = yield from ask(prompt, str.strip, self.config.asking)
            return unchecked(Synthesis(document.id, Fate.UNGUARDED, text), guard)
        checks = "\n".join(f"- {check}" for check in CHECKS)

        def tell(advice: str, turn: int) -> Steps[str]:
            prompt = _WORDS.format(
                form=self.config.domain.form,
                privacy=_PRIVACY.format(checks=checks) if self.kind == "checklist" else "",
                advice=f" An earlier attempt could not be used. {advice}" if advice else "",
                text=shown(document.text),
            )
            return ask_text(prompt, self.config, document.text, turn)

        return (yield from until_passed(document.id, tell, self.config.rounds, guard))
