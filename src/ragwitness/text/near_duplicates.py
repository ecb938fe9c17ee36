"""Copies of a document: texts that differ in nothing that a reader would call another text."""

from __future__ import annotations

import functools
import hashlib
import re
import unicodedata
from collections.abc import Sequence

import numpy as np

from ragwitness.core.types import Document
from ragwitness.text.canonical import canonical_text
from ragwitness.text.overlap import Vocabulary, plain_tokens, shared_runs
from ragwitness.text.subsequence import SubsequenceIndex
from ragwitness.text.words import content_tokens

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


_RUN = 16  # tokens in a row that two texts of one source hardly share by chance


NEAR = 0.8
"""ROUGE-L F1 with a record, or share in long runs, from which on a public text tells it."""
_LONG = 10  # tokens
_MOST_READ = 2000  # words: in a whole book most of a record stands in order by chance


def overlapping(public: Sequence[str], records: Sequence[str]) -> list[int]:
    """Return the places of public texts that nearly are a private record, or hold or are of one.

    For the owner alone, before anything is made: what is found is no part of any output.
    """
    # Texts are what they read as, whatever is put between their letters and words.
    public, records = (
        list(map(canonical_text, public)),
        list(dict.fromkeys(map(canonical_text, records))),
    )
    vocabulary, content = Vocabulary(), Vocabulary(content_tokens)
    private, told = vocabulary.tokenize(records), vocabulary.tokenize(public)
    known, in_order = SubsequenceIndex(private), SubsequenceIndex(content.tokenize(records))
    # A text of few words is like many others by chance: there only the same words count.
    same = {" ".join(plain_tokens(text)) for text in records}
    # A part of a record, or several records: most of the text stands in long runs of theirs.
    parts = shared_runs(private, told, _RUN).recovered >= NEAR * np.maximum(told.sizes, _RUN)
    # A record among other words: the texts that hold most of one which is public as a whole.
    bare = shared_runs(told, private, _RUN).recovered >= NEAR * np.maximum(private.sizes, _RUN)
    given = [text for text, out in zip(records, bare, strict=True) if out]
    whole = vocabulary.tokenize(given)
    holds = shared_runs(told, whole, _RUN).outputs
    for place in np.flatnonzero(holds).tolist():
        one = shared_runs(vocabulary.tokenize([public[place]]), whole, _RUN)
        holds[place] = bool((one.recovered >= NEAR * whole.sizes).any())
    return [
        place
        for place, text in enumerate(public)
        if " ".join(plain_tokens(text)) in same
        or parts[place]
        or holds[place]
        or (len(told[place]) >= _LONG and next(known.above_f1(told[place], NEAR), None) is not None)
        or in_order.tells(content.tokenize([text])[0][:_MOST_READ], NEAR, 2 * _LONG)
    ]
