"""Known secrets, and where they stand in other texts.

Recognising names by a model is the wrong tool where the corpus is one's own: its owner knows its
secrets. A secret is found where its words stand one after the other, whatever the case, the
punctuation and the grouping of digits.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ragwitness.text.runs import shared_runs
from ragwitness.text.tokens import Tokenized, Vocabulary, plain_tokens

__all__ = ["CONTACTS", "Secret", "SecretIndex", "contacts", "contacts_of", "normalised", "plain"]

CONTACTS = (
    re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    re.compile(r"(?<!\d)\(?\d{3}\)?[-.\s]\d{3}[-.\s]\d{4}(?!\d)"),
    re.compile(r"(?:https?://|www\.)[^\s<>\"')]+[^\s<>\"').,;:!?]"),
)
"""E-mail addresses, telephone numbers as written in North America, web addresses."""

_GROUPED = re.compile(r"(?<=\d)[\s().\-/+]+(?=\d)")
_FEWEST = 3  # characters; shorter secrets are found everywhere


@dataclass(frozen=True, slots=True)
class Secret:
    """A private fact in a record.

    Attributes:
        text: As it stands there.
        kind: ``"name"``, ``"contact"``, ``"canary"``, or whatever the owner calls it.
        record: Id of the record.
    """

    text: str
    kind: str
    record: str


def plain(text: str) -> str:
    """Return a text in one Unicode form."""
    return unicodedata.normalize("NFKC", text)


def normalised(text: str) -> str:
    """Return a text in the form in which secrets are compared: digits joined, one Unicode form."""
    return _GROUPED.sub("", plain(text))


def contacts(text: str) -> frozenset[str]:
    """Return the e-mail addresses, telephone numbers and web addresses of a text.

    The expressions published with SAGE miss telephone numbers written "(713) 853-1234" or
    "713 853 1234" and cut the domain off web addresses; these do not.
    """
    return frozenset(found for kind in CONTACTS for found in kind.findall(text))


def contacts_of(records: Iterable[tuple[str, str]]) -> list[Secret]:
    """Return the contact details in records.

    Args:
        records: Id and text of each.
    """
    return [
        Secret(text, "contact", name)
        for name, record in records
        for text in sorted(contacts(record))
    ]


@dataclass(frozen=True, slots=True)
class _Sought:
    """The secrets of one length, in one form."""

    form: Callable[[str], str]
    tokens: Tokenized
    places: tuple[int, ...]
    vocabulary: Vocabulary
    length: int


class SecretIndex:
    """Finds secrets in texts; made once for as many texts as there are.

    Every secret is sought twice, with digits grouped as written and with digits joined.

    Args:
        secrets: What is sought; those of fewer than three characters are not.
        split: Cuts a text into tokens.
    """

    def __init__(
        self, secrets: Sequence[Secret], split: Callable[[str], list[str]] = plain_tokens
    ) -> None:
        self._parts = [
            part for form in (plain, normalised) for part in _by_length(secrets, form, split)
        ]

    def pairs(self, texts: Sequence[str]) -> set[tuple[int, int]]:
        """Return the places of a text and a secret in it, for every find."""
        found: set[tuple[int, int]] = set()
        for part in self._parts:
            said = part.vocabulary.tokenize(map(part.form, texts))
            hits = shared_runs(said, part.tokens, part.length)
            known: dict[bytes, list[int]] = defaultdict(list)
            for i in np.flatnonzero(hits.records).tolist():
                known[part.tokens[i].tobytes()].append(part.places[i])
            for text in np.flatnonzero(hits.outputs).tolist():
                ids = said[text]
                for start in range(len(ids) - part.length + 1):
                    met = known.get(ids[start : start + part.length].tobytes(), ())
                    found.update((text, secret) for secret in met)
        return found


def _by_length(
    secrets: Sequence[Secret], form: Callable[[str], str], split: Callable[[str], list[str]]
) -> Iterator[_Sought]:
    """Secrets of one length are sought at once."""
    places: dict[int, list[int]] = defaultdict(list)
    texts = [form(secret.text) for secret in secrets]
    for place, text in enumerate(texts):
        tokens = split(text)
        if sum(map(len, tokens)) >= _FEWEST:
            places[len(tokens)].append(place)
    for length, found in places.items():
        vocabulary = Vocabulary(split)
        tokens_of = vocabulary.tokenize([texts[place] for place in found])
        yield _Sought(form, tokens_of, tuple(found), vocabulary, length)
