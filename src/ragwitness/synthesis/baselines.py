"""Baselines: redaction, which needs no model, and SAGE's paraphrases of each record (App. A.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import regex as re

from ragwitness.core.types import Document
from ragwitness.synthesis import agents
from ragwitness.synthesis.generator import Fate, Maker, Steps, Synthesis, checked, maker
from ragwitness.synthesis.guard import SyntheticGuard
from ragwitness.synthesis.sage import CHECKS, ask_text
from ragwitness.text.pii import Personal, pii_finder
from ragwitness.text.secrets import Secret, SecretIndex

_LONGEST = 1_000_000  # characters of a record
_NO_LETTERS = re.compile(r"\W+")


class Redact:
    """Replaces contact details, numbers and known secrets by ``<KIND>``.

    It copies everything else, so the conditions on copying do not apply to it.

    Args:
        secrets: Known secrets of all records.
        pii: Finder of contact details, as in
            :class:`~ragwitness.synthesis.guard.GuardConfig`.
    """

    name = "redact"
    asks = False

    def __init__(self, secrets: Sequence[Secret] = (), pii: str = "auto") -> None:
        self._secrets = tuple(secrets)
        self._index = SecretIndex(self._secrets)
        self._by_record: dict[str, list[int]] = {}
        for n, secret in enumerate(self._secrets):
            self._by_record.setdefault(secret.record, []).append(n)
        self._pii = pii_finder(pii)

    def describe(self) -> dict[str, str]:
        """Return every setting."""
        return {
            "method": self.name,
            "redacted": f"{len(self._secrets)} secrets, and what {self._pii.name} finds",
            "warning": "everything else stands as in the record; names that nobody listed stay",
        }

    def most(self, records: int) -> int:  # noqa: ARG002
        """No query."""
        return 0

    def begin(self, documents: Sequence[Document], guard: SyntheticGuard) -> Steps[Maker]:  # noqa: ARG002
        """Return the maker."""
        yield from ()
        return maker(_LONGEST, lambda document: self._make(document, guard))

    def _make(self, document: Document, guard: SyntheticGuard) -> Steps[Synthesis]:
        yield from ()
        return checked(Synthesis(document.id, Fate.WITHHELD, self.redacted(document)), guard)

    def redacted(self, document: Document) -> str:
        """Return the redacted text of a record."""
        text = document.text
        # Contact details come first: where two spans begin together, their kind says more.
        spans = [*self._pii.find(text), *self._known(document)]
        pieces, end = [], 0
        for span in sorted(spans, key=lambda span: (span.start, -span.end)):
            if span.end > end:
                pieces += [text[end : span.start], f"<{span.kind}>" if span.start >= end else ""]
                end = span.end
        return "".join([*pieces, text[end:]])

    def _known(self, document: Document) -> list[Personal]:
        """Return the spans of known secrets in a record."""
        text = document.text
        matches = [(match, self._secrets[match.secret]) for match in self._index.find(text)]
        # Of a secret in this record, or listed for it, each word is redacted too.
        numbers = {match.secret for match, _ in matches}.union(self._by_record.get(document.id, ()))
        secrets = (replace(self._secrets[n], record="") for n in sorted(numbers))
        listed = list(dict.fromkeys(secrets))
        words = SecretIndex(listed, parts=True).find(text)
        matches += [(match, listed[match.secret]) for match in words]
        return [
            Personal(match.start, match.end, _NO_LETTERS.sub("_", secret.kind).upper() or "SECRET")
            for match, secret in matches
        ]


ParaphraseKind = Literal["plain", "privacy", "checklist"]

NO_RISKS = "The generated data should *NOT* have privacy risks."
"""Para(GPT-4o, Privacy), App. A.6: one additional sentence."""

_WORDS = """\
Tell the text between <<< and >>> in other words and another order. The result must be {form}.\
{privacy}{advice} Write the new text alone.

{text}"""
_CHECKLIST = """\
 It must tell of nobody in particular; leave out or blur whatever touches one of these points:
{checks}
"""


class Paraphrase(agents.RoleMethod):
    """Has each record told in other words.

    Args:
        kind: ``"plain"``, ``"privacy"`` (one additional sentence, A.6) or ``"checklist"`` (SAGE's
            six checks, Table 18).
        config: Settings.
    """

    roles = (agents.GENERATOR,)

    def __init__(
        self, kind: ParaphraseKind = "plain", config: agents.MakingConfig | None = None
    ) -> None:
        super().__init__(config)
        self.kind = kind

    @property
    def name(self) -> str:
        """``paraphrase``, followed by any kind other than plain."""
        return "paraphrase" if self.kind == "plain" else f"paraphrase-{self.kind}"

    def most(self, records: int) -> int:
        """Return the most queries."""
        return records * max(1, self.config.rounds) * self.config.asking.attempts

    def begin(self, documents: Sequence[Document], guard: SyntheticGuard) -> Steps[Maker]:  # noqa: ARG002
        """Return the maker."""
        yield from ()
        return maker(self.config.longest, lambda document: self._make(document, guard))

    def _make(self, document: Document, guard: SyntheticGuard) -> Steps[Synthesis]:
        checks = "\n".join(f"- {check}" for check in CHECKS)
        privacy = {"privacy": f" {NO_RISKS}", "checklist": _CHECKLIST.format(checks=checks)}
        advice = ""
        # A version that breaks a condition is made anew, with the advice of that condition.
        for turn in range(max(1, self.config.rounds)):
            prompt = _WORDS.format(
                form=self.config.domain.form,
                privacy=privacy.get(self.kind, ""),
                advice=advice,
                text=agents.shown(document.text),
            )
            text = yield from ask_text(prompt, self.config, document.text, turn)
            synthesis = checked(Synthesis(document.id, Fate.WITHHELD, text), guard)
            if synthesis.fate is Fate.PASSED:
                break
            broken = guard.violation(text)
            advice = f" An earlier attempt could not be used. {broken.advice}" if broken else ""
        return synthesis
