"""Tantivy: BM25 over words in an index on disk, for more passages than fit in memory."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ragwitness.crypto.hashing import text_digest
from ragwitness.errors import InputError, import_extra
from ragwitness.rag.index.base import Hit, settled
from ragwitness.rag.index.lexical import index_words

_FORM = b"ragwitness words 1"  # raised when the words of a text or the fields change
_WORDS, _PLACE = "words", "place"
_HEAP = 128_000_000  # bytes of postings held while building
_ROUNDING = 2e-6  # relative; the terms of a score are added in single precision, in any order


class TantivyIndex:
    """BM25 as Tantivy counts it; see :class:`~.base.Index`.

    The words are those of :class:`~.lexical.LexicalIndex`, and a query is words and nothing else:
    it never passes through Tantivy's query language. A score is Tantivy's own, with k1 = 1.2 and
    b = .75, and with the lengths of passages over 40 words rounded down to one byte; so near ties
    may come in another order than in :class:`~.lexical.LexicalIndex`.

    Args:
        texts: The passages.
        folder: Where the index is kept and found again, one folder for each list of passages;
            None keeps it in a temporary folder until the process ends.

    Raises:
        InputError: The folder cannot be written, or an index in it cannot be read.
        MissingExtraError: Tantivy is not installed.
    """

    name = "lexical (Tantivy BM25)"

    def __init__(self, texts: Sequence[str], folder: Path | None = None) -> None:
        self._tantivy = import_extra("tantivy", "The Tantivy index", "tantivy")
        self._size = len(texts)
        kept = folder or Path(tempfile.mkdtemp(prefix="ragwitness-"))
        if folder is None:
            weakref.finalize(self, shutil.rmtree, kept, ignore_errors=True)
        home = kept / text_digest(texts, _FORM)[:32]
        try:
            if not home.is_dir():
                self._build(texts, kept, home)
            self._index = self._tantivy.Index.open(str(home))
            found = self._index.searcher().num_docs
        except (OSError, ValueError) as error:
            raise InputError(
                f"The index in {home} cannot be used: {error}.",
                "Delete that folder, and it is built again; or choose another one.",
            ) from error
        if found != self._size:
            raise InputError(
                f"The index in {home} holds {found} passages instead of {self._size}.",
                "Delete that folder, and it is built again.",
            )
        self._schema = self._index.schema

    def __len__(self) -> int:
        return self._size

    def search(self, query: str, k: int) -> list[Hit]:
        """Return at most ``k`` hits, nearest first; see :class:`~.base.Index`."""
        words = Counter(index_words(query))
        if not words:
            return []
        # A word that is asked for twice counts twice, as in the other index of words.
        make = self._tantivy.Query
        terms = [
            make.boost_query(make.term_query(self._schema, _WORDS, word), float(count))
            for word, count in words.items()
        ]
        asked = make.boolean_query([(self._tantivy.Occur.Should, term) for term in terms])
        return settled(lambda most: self._fetch(asked, most), k, self._size)

    def _fetch(self, asked: Any, most: int) -> list[Hit]:
        searcher = self._index.searcher()
        found = searcher.search(asked, most, count=False).hits
        places = searcher.fast_field_values(_PLACE, [address for _, address in found])
        hits: list[Hit] = []
        for (score, _), place in zip(found, places, strict=True):
            # Equal passages may differ in the last bit of their score; they are a tie.
            if hits and score > hits[-1].score * (1 - _ROUNDING):
                score = hits[-1].score
            hits.append(Hit(place, score))
        return hits

    def _build(self, texts: Sequence[str], kept: Path, home: Path) -> None:
        """Write the index beside its place and move it there whole."""
        kept.mkdir(parents=True, exist_ok=True)
        fields = self._tantivy.SchemaBuilder()
        fields.add_text_field(_WORDS, tokenizer_name="whitespace", index_option="freq")
        fields.add_unsigned_field(_PLACE, fast=True)
        draft = Path(tempfile.mkdtemp(prefix=".building-", dir=kept))
        try:
            index = self._tantivy.Index(fields.build(), str(draft))
            # One thread: more would put the passages into parts in the order in which they come.
            writer = index.writer(_HEAP, 1)
            for place, text in enumerate(texts):
                row = self._tantivy.Document()
                row.add_text(_WORDS, " ".join(index_words(text)))
                row.add_unsigned(_PLACE, place)
                writer.add_document(row)
            writer.commit()
            writer.wait_merging_threads()
            with suppress(OSError):  # another process was first; its index is the same
                draft.rename(home)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
