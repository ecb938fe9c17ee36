"""What every index offers, and the order of hits that all of them keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Metric: TypeAlias = Literal["l2", "ip"]


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved passage.

    Attributes:
        index: Position of the passage among those that the index was built from.
        score: Higher is nearer: BM25, inner product, or negative L2 distance.
    """

    index: int
    score: float


class Index(Protocol):
    """Retrieval over a fixed list of passages."""

    @property
    def name(self) -> str:
        """What is in use, for people."""

    def __len__(self) -> int: ...

    def search(self, query: str, k: int) -> list[Hit]:
        """Return at most ``k`` hits, nearest first, ties in order of the passages.

        A blank query finds nothing.
        """


def best(scores: NDArray[np.float32], k: int) -> list[Hit]:
    """Return the ``k`` highest scores, ties by position, without sorting them all.

    Args:
        scores: Scores of all passages, shape (n,).
        k: Number of hits wanted; there are fewer where there are fewer scores.
    """
    k = min(k, len(scores))
    if k < 1:
        return []
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    candidates = np.flatnonzero(scores >= least)
    order = candidates[np.argsort(-scores[candidates], kind="stable")][:k]
    return [Hit(int(i), float(scores[i])) for i in order]
