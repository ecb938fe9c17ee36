"""Two baselines that need no model: redaction, and the words that many records share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.synthesis.agents import GENERATOR, MakingConfig, RoleMethod, shown
from ragwitness.synthesis.generator import (
    Fate,
    Maker,
    Steps,
    Synthesis,
    checked,
    maker,
    until_passed,
)
from ragwitness.synthesis.guard import SyntheticGuard
from ragwitness.synthesis.rules import Rules
from ragwitness.synthesis.sage import CHECKS, ask_text
from ragwitness.text.pii import Personal, pii_finder
from ragwitness.text.secrets import Secret, SecretIndex
from ragwitness.text.words import STOP_WORDS, plain_tokens

_LONGEST = 1_000_000
_MARK = re.compile(r"\W+")


class Redact:
    """Puts ``<KIND>`` in the place of contact details, numbers and known secrets.

    Everything else is copied, so the conditions on copying do not apply to it.

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
        self._own: dict[str, list[int]] = {}
        for place, secret in enumerate(self._secrets):
            self._own.setdefault(secret.record, []).append(place)
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
        """Return a record's text without what was found in it."""
        text = document.text
        # Forms first: where two finds begin together, they say more than "secret".
        found = [*self._pii.find(text), *self._known(document)]
        out, place = [], 0
        for one in sorted(found, key=lambda one: (one.start, -one.end)):
            if one.end <= place:
                continue
            out += [text[place : one.start], f"<{one.kind}>" if one.start >= place else ""]
            place = one.end
        return "".join([*out, text[place:]])

    def _known(self, document: Document) -> list[Personal]:
        whole = self._index.find(document.text)
        # Of a name that stands in this record or is listed for it, each word is taken too.
        places = {one.secret for one in whole} | set(self._own.get(document.id, ()))
        own = list(dict.fromkeys(replace(self._secrets[at], record="") for at in sorted(places)))
        found = [(one, self._secrets[one.secret]) for one in whole]
        found += [
            (one, own[one.secret]) for one in SecretIndex(own, parts=True).find(document.text)
        ]
        return [
            Personal(one.start, one.end, _MARK.sub("_", secret.kind).upper() or "SECRET")
            for one, secret in found
        ]


class Keywords:
    """The words of a record that stand in at least ``k`` different records, in no order of its own.

    Args:
        k: Least number of records with different text.

    Raises:
        InputError: ``k`` is below 2.
    """

    name = "keywords"
    asks = False

    def __init__(self, k: int = 10) -> None:
        if k < 2:
            raise InputError(f"k must be at least 2, not {k}.")
        self.k = k

    def describe(self) -> dict[str, str]:
        """Return every setting."""
        return {"method": self.name, "a word is kept in": f"at least {self.k} records"}

    def most(self, records: int) -> int:  # noqa: ARG002
        """No query."""
        return 0

    def begin(self, documents: Sequence[Document], guard: SyntheticGuard) -> Steps[Maker]:
        """Count the words; return the maker."""
        yield from ()
        counts: Counter[str] = Counter()
        # Different texts: a record that was copied k times must not pass its words.
        for text in {document.text for document in documents}:
            counts.update(_words(text))
        kept = frozenset(word for word, count in counts.items() if count >= self.k)
        return maker(_LONGEST, lambda document: self._make(document, kept, guard))

    def _make(
        self, document: Document, kept: frozenset[str], guard: SyntheticGuard
    ) -> Steps[Synthesis]:
        yield from ()
        words = sorted(_words(document.text) & kept)
        if not words:
            reason = f"no word of it stands in {self.k} records"
            return Synthesis(document.id, Fate.WITHHELD, reason=reason)
        return checked(Synthesis(document.id, Fate.WITHHELD, ", ".join(words)), guard)


def _words(text: str) -> set[str]:
    """Words that carry meaning; numbers identify and are left out."""
    return {word for word in plain_tokens(text) if word.isalpha()} - STOP_WORDS


# Each record in other words: SAGE's baselines.


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
