"""Distance threshold: passages that are not near enough to the query are left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ragwitness.defenses.base import Defense
from ragwitness.errors import InputError
from ragwitness.rag.index import DenseIndex, Hit
from ragwitness.rag.pipeline import Lookup, RagSystem

__all__ = ["DistanceThreshold", "calibrate_threshold"]


@dataclass(frozen=True)
class DistanceThreshold(Defense):
    """Drops hits beyond a threshold; a query with no near passage is answered without any.

    Attributes:
        threshold: In dense retrieval by L2 the largest distance that stays; elsewhere the
            least score (BM25, inner product) that stays.
    """

    narrows = True
    reads_scores = True

    threshold: float

    def __post_init__(self) -> None:
        """Refuse what is no number."""
        if not math.isfinite(self.threshold):
            raise InputError(f"The threshold must be a finite number, not {self.threshold}.")

    @property
    def name(self) -> str:
        """The threshold."""
        return f"threshold({self.threshold!r})"

    def select(self, hits: list[Hit], lookup: Lookup) -> list[Hit]:
        """Return the hits within the threshold, one that lies on it included."""
        if lookup.distances:
            return [hit for hit in hits if -hit.score <= self.threshold]
        return [hit for hit in hits if hit.score >= self.threshold]


def calibrate_threshold(
    system: RagSystem, questions: Sequence[str], quantile: float = 0.95
) -> DistanceThreshold:
    """Return the strictest threshold that leaves benign questions their nearest passage.

    Args:
        system: An undefended system that retrieves.
        questions: Benign questions, none of which is evaluated later; those that find
            nothing at all are left out.
        quantile: Share of them that must keep at least their nearest passage.

    Raises:
        InputError: The quantile is not in (0, 1], or no question finds anything.
    """
    if not 0 < quantile <= 1:
        raise InputError(f"The quantile must lie in (0, 1], not {quantile}.")
    found = [hits[0].score for hits in map(system.retrieve, questions) if hits]
    if not found:
        raise InputError(
            "No benign question finds a passage, so no threshold can be calibrated.",
            "Give questions that the database answers.",
        )
    keep = math.ceil(quantile * len(found) - 1e-9)
    least = sorted(found, reverse=True)[keep - 1]
    distances = isinstance(system.index, DenseIndex) and system.config.metric == "l2"
    return DistanceThreshold(-least if distances else least)
