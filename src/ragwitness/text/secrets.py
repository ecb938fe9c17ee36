"""Known secrets, and where they stand in other texts.

Recognising names by a model is the wrong tool where the corpus is one's own: its owner knows its
secrets. One index finds them for the ledger, for the conditions on synthetic texts and for
redaction, in the spellings of :mod:`ragwitness.text.spellings`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.core.files import read_rows
from ragwitness.text.spellings import Spelling, identity, meant, row_of, spellings

_PARTS = r"[-.\s\u2010-\u2015]"
CONTACTS = (
    re.compile(
        r"(?<![\w.+-])[\w.+-]++(?:[@\uff20][\w-]+(?:[.\uff0e][\w-]+)+|\s?[(\[{]\s?(?i:at)\s?[)\]}]"
        r"\s?[\w-]+(?:(?:\.|\s?[(\[{]?\b(?i:dot)\b[)\]}]?\s?)[^\W\d_][\w-]+)+"
        r"|(?i: (?:dot [\w+-]+ ){0,3}at (?!(?:an?|the|this|that|my|y?our|their|its|any|every)\b)"
        r"[\w-]+(?: dot [\w-]+){0,3}? dot (?:com|org|net|edu|gov|info|io|de|uk|fr)\b))"
    ),
    re.compile(
        rf"(?<!\d)(?:\(\d{{3}}\){_PARTS}{{0,2}}\d{{3}}{_PARTS}?|\(?\d{{3}}\)?{_PARTS}\d{{3}}{_PARTS})"
        r"\d{4}(?!\d)|(?<![\w+])\+(?!\d(?: \d){6,8}(?! ?\d))[1-9]"
        r"(?:[ ().\-/\u00a0\u2010-\u2015]{0,2}\d){7,14}(?!\d)"
        r"|(?<![\w.,+-])00(?:1\d{10}|[2-9]\d{8,12})(?!\w)"
    ),
    re.compile(r"(?:https?://|www\.)[^\s<>\"')]+[^\s<>\"').,;:!?]"),
)
"""E-mail and web addresses, telephone numbers as in North America or behind a country's code."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A private fact in a record.

    Attributes:
        text: As it stands there.
        kind: ``"name"``, ``"contact"``, ``"canary"``, or whatever the owner calls it.
        record: Id of the record.
    """

    stored_name: ClassVar[str] = "Secret"

    text: str
    kind: str
    record: str


def contacts(text: str) -> frozenset[str]:
    """Return the e-mail addresses, telephone numbers and web addresses of a text.

    The expressions published with SAGE miss telephone numbers written "(713) 853-1234" or
    "713 853 1234" and cut the domain off web addresses; these do not.
    """
    return frozenset(found for kind in CONTACTS for found in kind.findall(text))


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """A secret in a text, ``text[start:end]``.

    Attributes:
        start: Of the range.
        end: Of the range.
        secret: Its place among those sought.
    """

    start: int
    end: int
    secret: int


_KEY = 4  # letters by which spellings are looked up
_SHORT = 24  # characters; a longer secret finds itself


class SecretIndex:
    """Finds secrets in texts however they are written; made once for as many texts as there are.

    Args:
        secrets: What is sought. Numbers of fewer than three digits and single letters are not.
        parts: Whether each word of a name is sought too, alone.
    """

    def __init__(self, secrets: Sequence[Secret], *, parts: bool = False) -> None:
        self._known: dict[str, dict[Spelling, list[int]]] = {}
        for place, secret in enumerate(secrets):
            for one in spellings(secret.text, secret.kind, parts=parts):
                self._known.setdefault(one.letters, {}).setdefault(one, []).append(place)
        # By first letters, then length: a text is walked once, however many secrets there are.
        lengths: dict[str, set[int]] = {}
        for letters in self._known:
            lengths.setdefault(letters[:_KEY], set()).add(len(letters))
        self._lengths = {key: tuple(sorted(found)) for key, found in lengths.items()}
        self._keys = sorted({len(key) for key in lengths})

    def find(self, text: str) -> list[Found]:
        """Return every find in a text, in order; finds may overlap."""
        return sorted(set(self._found(text))) if self._known else []

    def _found(self, text: str) -> Iterator[Found]:
        row = row_of(text)
        letters, begins = row.letters, row.begins
        # 1. What is read by its meaning.
        for start, end, letters_meant in meant(row):
            for spelling, places in self._known.get(letters_meant, {}).items():
                if spelling.check in ("number", "name"):
                    yield from (Found(*row.span(start, end), place) for place in places)
        # 2. What begins where a word begins: spellings that begin alike, by their lengths.
        for start in begins[:-1]:
            for key in self._keys:
                for length in self._lengths.get(letters[start : start + key], ()):
                    end = min(start + length, len(letters))
                    for spelling, places in self._known.get(letters[start:end], {}).items():
                        if spelling.stands(row, start):
                            span = row.span(row.at(start), row.at(end - 1) + 1)
                            yield from (Found(*span, place) for place in places)

    def pairs(self, texts: Sequence[str]) -> set[tuple[int, int]]:
        """Return the places of a text and a secret in it, for every find."""
        return {(place, one.secret) for place, text in enumerate(texts) for one in self.find(text)}


def distinct(secrets: Sequence[Secret]) -> NDArray[np.int64]:
    """Number secrets so that those that are one, however written, share a number.

    Returns:
        Shape (secrets,), from 0 in the order of their first listing.
    """
    numbers: dict[tuple[str, str], int] = {}
    keys = [(one.kind, identity(one.text, one.kind)) for one in secrets]
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


# Ledgers of secrets as files: one JSON object per line, ``{"text", "kind", "record"}``.


def read_secrets(path: Path) -> list[Secret]:
    """Read a ledger; ``kind`` and ``record`` may be missing. No secret is ever repeated here.

    Raises:
        InputError: The file cannot be read, or a line holds no secret.
    """
    rows = enumerate(read_rows(path, _FORM), 1)
    found = [_secret(row, f"Secret {number} of {path}") for number, row in rows]
    if not found:
        raise InputError(f"{path} holds no secret.", _FORM)
    return found


_FORM = 'Each line is a JSON object such as {"text": "…", "kind": "name", "record": "id"}.'


def _secret(row: dict[str, Any], where: str) -> Secret:
    text: Any = row.get("text")
    kind, record = str(row.get("kind") or "secret"), row.get("record", "")
    # Half of a surrogate pair is no text: nobody could write it down again.
    whole = isinstance(text, str) and not any("\ud800" <= char <= "\udfff" for char in text)
    if not (whole and any(char.isalnum() for char in text)):
        raise InputError(f"{where}: the text of the secret is empty or not text.", _FORM)
    # What is never sought would always count as kept.
    if len(text) <= _SHORT and not SecretIndex([Secret(text, kind, "")]).find(f"I {text} i"):
        raise InputError(
            f"{where}: the secret is too short to be sought: single letters, two small letters, and"
            " numbers of fewer than three digits, stand in every text.",
            "List it together with the words around it, or leave it out.",
        )
    return Secret(text, kind, str(record))
