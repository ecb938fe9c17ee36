"""Two baselines that need no model: redaction, and the words that many records share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.synthesis.generator import Fate, Maker, Steps, Synthesis, checked, maker
from ragwitness.synthesis.guard import SyntheticGuard
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
