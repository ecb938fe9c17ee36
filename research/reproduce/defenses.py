"""Two defenses of MBA's WWW 2025 text that the package does not hold: order, and the database."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from ragwitness.core.types import Document
from ragwitness.models.base import LanguageModel
from ragwitness.rag.defenses.base import Defense
from ragwitness.rag.defenses.rewriting import QueryRewriting
from ragwitness.rag.index import Hit
from ragwitness.rag.pipeline import Lookup

SHUFFLED, DATABASE = "shuffled", "paraphrased database"


class Shuffled(Defense):
    """Shows the retrieved passages in an order that follows from themselves alone."""

    name = SHUFFLED

    def select(self, hits: list[Hit], lookup: Lookup) -> list[Hit]:
        """Return the first k hits in another order, then the others."""
        shown = hits[: lookup.k]
        random.Random(str(sorted(hit.index for hit in shown))).shuffle(shown)
        return shown + hits[lookup.k :]


def paraphrased(documents: Sequence[Document], model: LanguageModel) -> list[Document]:
    """Return the documents as a model paraphrases them, under their own names."""
    writer = QueryRewriting(model)
    return [replace(one, text=writer.rewrite(one.text) or one.text) for one in documents]
