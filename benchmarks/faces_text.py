"""Contacts and listed names in thirteen scripts: found, and nothing innocent with them.

Each row has a sentence with a contact of each form beside its letters, a listed name in running
text with the particles of its language, and a sentence with neither. Run it for a table.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ragwitness.text.pii import pii_finder
from ragwitness.text.secrets import Secret, SecretIndex

FORMS = ("eva.lind@example.com", "+49 151 2345 6789", "https://example.org/form")


FACES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["face"]


class Row(NamedTuple):
    """Right answers of one script, each of a number."""

    script: str
    contacts: tuple[int, int]
    names: tuple[int, int]
    innocent: tuple[int, int]


def rows() -> Iterator[Row]:
    """Yield the counts of each script."""
    finder = pii_finder("contacts")
    for face in FACES:
        texts = [(around.format(form), form) for around in face["around"] for form in FORMS]
        contacts = [[text[d.start : d.end] for d in finder.find(text)] == [f] for text, f in texts]
        index = SecretIndex([Secret(face["name"], "name", "r")])
        names = [bool(index.find(text)) for text in face["told"]]
        innocent = [not index.find(text) and not finder.find(text) for text in face["other"]]
        counts = ((sum(row), len(row)) for row in (contacts, names, innocent))
        yield Row(face["script"], *counts)


if __name__ == "__main__":
    for row in rows():
        cells = "  ".join(f"{right:2} of {of:2}" for right, of in row[1:])
        print(f"{row.script:12} {cells}")
