"""One random split of a corpus: inside, outside, calibration, shadow."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragwitness.errors import InputError
from ragwitness.runs.calibration import distinct
from ragwitness.types import Document

__all__ = ["Split", "divide"]

_FEWEST = 40  # documents; with fewer no part is worth a figure


@dataclass(frozen=True, slots=True)
class Split:
    """Disjoint parts of one corpus.

    Attributes:
        indexed: What the target holds; ``members`` and ``known_in`` are part of it.
        members: Audited documents inside.
        non_members: Audited documents outside.
        known_in: Calibration documents inside: thresholds are chosen on them.
        known_out: Calibration documents outside: thresholds and p-values rest on them.
        shadow: Documents for the shadow system, outside.
    """

    indexed: tuple[Document, ...]
    members: tuple[Document, ...]
    non_members: tuple[Document, ...]
    known_in: tuple[Document, ...]
    known_out: tuple[Document, ...]
    shadow: tuple[Document, ...]


def divide(
    corpus: Sequence[Document], *, members: int, non_members: int, calibration: int, seed: int
) -> Split:
    """Index a random half of the corpus and draw the other parts.

    Copies of a text count once, or the same text would stand inside and outside. Where the
    corpus is too small for what is asked, the parts outside shrink alike.

    Args:
        corpus: Documents of one source.
        members: Audited documents inside.
        non_members: Audited documents outside.
        calibration: Calibration documents, inside and outside each.
        seed: Of the split.

    Raises:
        InputError: Fewer than 40 different documents.
    """
    shuffled = list(distinct(corpus))
    if len(shuffled) < _FEWEST:
        raise InputError(
            f"{len(shuffled)} different documents are too few to evaluate on.",
            f"Give a corpus of at least {_FEWEST}.",
        )
    random.Random(seed).shuffle(shuffled)
    half = len(shuffled) // 2
    inside, outside = shuffled[:half], shuffled[half:]
    share = min(1.0, 0.75 * len(outside) / (non_members + calibration))
    asked, spared = int(non_members * share), max(1, int(calibration * share))
    members = min(members, 3 * half // 4)
    return Split(
        indexed=tuple(inside),
        members=tuple(replace(d, member=True) for d in inside[:members]),
        non_members=tuple(replace(d, member=False) for d in outside[:asked]),
        known_in=tuple(inside[members : members + calibration]),
        known_out=tuple(outside[asked : asked + spared]),
        shadow=tuple(outside[asked + spared :]),
    )
