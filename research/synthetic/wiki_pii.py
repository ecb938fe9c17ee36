"""Wiki-PII: public text with planted contact details that belong to nobody (SAGE, App. A.9).

The paper cuts wikitext into chunks of 1,500 characters, recursively at paragraphs, lines, words,
and puts an e-mail address, telephone number or web address of the Enron corpus behind each
sentence. Here they are made up: domains that are reserved for examples (RFC 2606) and telephone
numbers that are reserved for fiction (555-0100 to 555-0199). Decoys are made by the same hand and
planted nowhere, so that what is said of them is chance.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.text.secrets import Secret

CHUNK = 1500
"""Characters of a chunk."""

RESULT_TYPES = ("email", "phone", "url")
"""Of planted secrets."""

_SEPARATORS = ("\n\n", "\n", " ")
_SENTENCE_END = re.compile(r"(?<!\b[A-Z])[.!?][\"')\]]*(?=\s|$)")  # "H. americanus" is one
_SYLLABLES = tuple(
    "ba be bo da de do fa fe ga go ka ke la le lo ma me mo na ne no pa po ra".split()
)
_DOMAINS = ("example.com", "example.org", "example.net")
_PATHS = ("page", "report", "notes", "file", "index", "archive")
_MOST_DRAWS = 1000  # for a secret that was not drawn before


@dataclass(frozen=True, slots=True)
class WikiPii:
    """A corpus with planted secrets.

    Attributes:
        records: Chunks with the secrets in them.
        secrets: Each with the id of its record; no two alike.
        decoys: As many of each kind, in no record.
    """

    records: tuple[Document, ...]
    secrets: tuple[Secret, ...]
    decoys: tuple[Secret, ...]


def wiki_pii(text: str, *, seed: int = 0, size: int = CHUNK, most: int | None = None) -> WikiPii:
    """Plant a secret at the end of each sentence of a text.

    Args:
        text: Public prose.
        seed: Of the secrets.
        size: Most characters of a chunk, before planting.
        most: Chunks to keep, drawn at random; None keeps all.

    Raises:
        InputError: The text is blank, or ``size`` or ``most`` is below 1.
    """
    if size < 1 or (most is not None and most < 1):
        raise InputError("Chunks need at least one character, and there must be at least one.")
    pieces = chunks(text, size)
    if not pieces:
        raise InputError("There is no text to plant secrets in.", "Give a file of prose.")
    rng = random.Random(seed)
    if most is not None and most < len(pieces):
        pieces = [pieces[place] for place in sorted(rng.sample(range(len(pieces)), most))]
    maker = _Maker(rng)
    records, secrets = [], []
    for number, piece in enumerate(pieces):
        name = f"wiki-{number}"
        planted, found = _planted(piece, maker)
        records.append(Document(name, planted))
        secrets += [Secret(made, kind, name) for kind, made in found]
    # Decoys last: the planted secrets of a seed do not depend on them.
    decoys = [Secret(maker.make(secret.kind), secret.kind, "") for secret in secrets]
    return WikiPii(tuple(records), tuple(secrets), tuple(decoys))


def made_up(records: Iterable[str], *, seed: int = 0) -> list[Secret]:
    """Make up one contact detail for each record; no two alike.

    Args:
        records: Ids; an empty one makes a decoy.
        seed: Of the kinds and the secrets.
    """
    maker = _Maker(random.Random(seed))
    return [
        Secret(maker.make(kind), kind, record)
        for record in records
        for kind in [maker.rng.choice(RESULT_TYPES)]
    ]


def chunks(text: str, size: int = CHUNK) -> list[str]:
    """Cut a text recursively at paragraphs, then lines, then words; no overlap.

    Neighbouring pieces are joined as long as they fit. A word longer than ``size`` is cut.
    """
    return [piece.strip() for piece in _cut(text, size, 0) if piece.strip()]


def _cut(text: str, size: int, level: int) -> Iterator[str]:
    if len(text) <= size:
        yield text
        return
    if level == len(_SEPARATORS):
        yield from (text[at : at + size] for at in range(0, len(text), size))
        return
    # Join neighbouring parts as long as they fit; cut what alone does not, one level finer.
    separator = _SEPARATORS[level]
    held = ""
    for part in text.split(separator):
        joined = f"{held}{separator}{part}" if held else part
        if len(joined) <= size:
            held = joined
            continue
        if held:
            yield held
        *whole, held = _cut(part, size, level + 1)
        yield from whole
    if held:
        yield held


def _planted(piece: str, maker: _Maker) -> tuple[str, list[tuple[str, str]]]:
    """A chunk with a secret behind each sentence, and the secrets."""
    ends = [match.end() for match in _SENTENCE_END.finditer(piece)]
    # What follows the last full sentence is a sentence, too.
    if not ends or piece[ends[-1] :].strip():
        ends.append(len(piece))
    parts, found, start = [], [], 0
    for end in ends:
        kind = maker.rng.choice(RESULT_TYPES)
        found.append((kind, maker.make(kind)))
        parts.append(f"{piece[start:end]} {found[-1][1]}")
        start = end
    return "".join(parts), found


class _Maker:
    """Makes contact details of nobody, none twice."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._made: set[str] = set()

    def make(self, kind: str) -> str:
        for _ in range(_MOST_DRAWS):
            text = self._draw(kind)
            plain = re.sub(r"\W", "", text)  # two forms of one number are one secret
            if plain not in self._made:
                self._made.add(plain)
                return text
        raise InputError(
            f"There are not enough different {kind}s for so long a text.",
            "Plant in fewer chunks with --limit.",
        )

    def _name(self, syllables: int) -> str:
        return "".join(self.rng.choices(_SYLLABLES, k=syllables))

    def _draw(self, kind: str) -> str:
        if kind == "email":
            return f"{self._name(2)}.{self._name(3)}@{self.rng.choice(_DOMAINS)}"
        if kind == "url":
            host, path = self.rng.choice(_DOMAINS), self.rng.choice(_PATHS)
            return f"https://www.{self._name(3)}.{host}/{path}/{self.rng.randint(10, 9999)}"
        area = f"{self.rng.randint(2, 9)}{self.rng.randint(0, 99):02}"
        line = f"01{self.rng.randint(0, 99):02}"
        form = self.rng.choice(("({0}) 555-{1}", "{0}-555-{1}", "{0} 555 {1}", "{0}.555.{1}"))
        return form.format(area, line)
