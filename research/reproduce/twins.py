"""A world of near-duplicates: every indexed document has an edited twin beside it."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ragwitness.core.types import Document

_EVERY = 8  # words; one in so many is another one in the twin
_LONG = 5  # letters of a word that is exchanged


def with_twins(documents: Sequence[Document], seed: int = 0) -> tuple[Document, ...]:
    """Return the documents, each followed by a copy with an eighth of its words exchanged.

    Words of at least five letters are exchanged for such words of the other documents, so that a
    twin reads like its own document and says something else.

    Args:
        documents: What an index is to hold.
        seed: Of the edits; a document's edits follow from its id and not from its place.
    """
    pools = {one.id: [word for word in one.text.split() if len(word) >= _LONG] for one in documents}
    names = sorted(pools)
    found = []
    for document in documents:
        rng = random.Random(f"{seed}:{document.id}")
        words = document.text.split()
        places = [at for at, word in enumerate(words) if len(word) >= _LONG]
        for at in rng.sample(places, min(len(places), max(1, len(words) // _EVERY))):
            if theirs := pools[rng.choice(names)]:
                words[at] = rng.choice(theirs)
        found += [document, Document(f"{document.id} (twin)", " ".join(words))]
    return tuple(found)
