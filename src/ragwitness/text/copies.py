"""Copies of a document: texts that differ in nothing that a reader would call another text."""

from __future__ import annotations

import functools
import hashlib
import re
import unicodedata
from collections.abc import Sequence

from ragwitness.types import Document

# Marks that nobody sees; joiners and variation selectors are none, they make other letters.
_UNSEEN = re.compile("[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202c\u2060\u2066-\u2069\ufeff]")
_TYPED = str.maketrans("\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb", "'''" + '"' * 5)
_DASH = re.compile("[\u2010-\u2015\u2212]")
# Punctuation between words; beside figures and signs every mark may make another text.
_BORDER = re.compile(
    r"(?<=[^\W\d_])(?=\W)[.,;:!?]?[\"')\]}]*[.,;:!?]?(?=\Z| [\"'(\[{]*[^\W\d_])"
    r"|(?<!\S)[\"'(\[{]+(?=[^\W\d_])"
)


def same_text(document: Document) -> bytes:
    """Return a digest of what a document shares with its copies, which is nearly all of it.

    Case, white space, typographic quotation marks and dashes, and punctuation beside words alone
    make no other document, and neither does the id.
    """
    return _read(document.text)


@functools.lru_cache(4096)  # each document is compared in several places
def _read(text: str) -> bytes:
    plain = _DASH.sub("-", _UNSEEN.sub("", unicodedata.normalize("NFC", text)))
    read = _BORDER.sub("", " ".join(plain.translate(_TYPED).lower().split())) or text
    return hashlib.blake2b(read.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def without_copies(documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return the documents with each text once: a copy is no further evidence."""
    found: dict[bytes, Document] = {}
    for one in documents:
        found.setdefault(same_text(one), one)
    return tuple(found.values())
