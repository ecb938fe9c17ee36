"""Known secrets, and where they stand in other texts.

Recognising names by a model is the wrong tool where the corpus is one's own: its owner knows its
secrets. A secret is found where its words stand one after the other, whatever the case, the
punctuation and the grouping of digits.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, TypeAlias

from ragwitness.errors import InputError
from ragwitness.kit.files import write_rows
from ragwitness.text.runs import plain_tokens

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

    stored_name: ClassVar[str] = "Secret"

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


_Sought: TypeAlias = dict[str, dict[int, dict[tuple[str, ...], list[int]]]]
"""Places of secrets by their first token, their length and their tokens."""


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
        self._split = split
        self._sought: list[tuple[Callable[[str], str], _Sought]] = [
            (form, self._begun(form, secrets)) for form in (plain, normalised)
        ]

    def _begun(self, form: Callable[[str], str], secrets: Sequence[Secret]) -> _Sought:
        found: _Sought = {}
        for place, secret in enumerate(secrets):
            # By first token, then length: a text is walked once, however many secrets there are.
            tokens = tuple(self._split(form(secret.text)))
            if sum(map(len, tokens)) >= _FEWEST:
                lengths = found.setdefault(tokens[0], {})
                lengths.setdefault(len(tokens), {}).setdefault(tokens, []).append(place)
        return found

    def pairs(self, texts: Sequence[str]) -> set[tuple[int, int]]:
        """Return the places of a text and a secret in it, for every find."""
        found: set[tuple[int, int]] = set()
        for form, sought in self._sought:
            for place, text in enumerate(texts):
                tokens = self._split(form(text))
                # At each token: secrets that begin with it, by their lengths.
                for start, token in enumerate(tokens):
                    for length, known in sought.get(token, {}).items():
                        met = known.get(tuple(tokens[start : start + length]), ())
                        found.update((place, secret) for secret in met)
        return found


# Ledgers of secrets as files: one JSON object per line, ``{"text", "kind", "record"}``.


def write_secrets(path: Path, secrets: Iterable[Secret]) -> None:
    """Write a ledger.

    Raises:
        InputError: The file cannot be written.
    """
    write_rows(path, map(asdict, secrets))


def read_secrets(path: Path) -> list[Secret]:
    """Read a ledger; ``kind`` and ``record`` may be missing. No secret is ever repeated here.

    Raises:
        InputError: The file cannot be read, or a line holds no secret.
    """
    found = []
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    found.append(_secret(line, f"{path}:{number}"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"Cannot read {path}: {reason}.", _FORM) from error
    if not found:
        raise InputError(f"{path} holds no secret.", _FORM)
    return found


_FORM = 'Each line is a JSON object such as {"text": "…", "kind": "name", "record": "id"}.'


def _secret(line: str, where: str) -> Secret:
    try:
        row = json.loads(line)
        text = row["text"]
        kind, record = row.get("kind", "secret"), row.get("record", "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{where} is not a secret.", _FORM) from None
    if not (isinstance(text, str) and any(char.isalnum() for char in text)):
        raise InputError(f"{where}: the text of the secret is empty or not text.", _FORM)
    return Secret(text, str(kind), str(record))
