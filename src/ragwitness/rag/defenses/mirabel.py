"""Mirabel: hides the nearest passage where it is nearer than by chance.

Choi et al., Findings of EMNLP 2025 (arXiv 2505.22061), §4: the similarities of a query to a
database are about normal. The largest of n of them then follows a Gumbel distribution. A query made
from a stored document lies beyond its critical value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ragwitness.core.errors import InputError
from ragwitness.rag.defenses.base import Defense
from ragwitness.rag.index import Hit
from ragwitness.rag.pipeline import Lookup

# With fewer, one score's spread around itself would decide.
_FEWEST = 3


@dataclass(frozen=True)
class Mirabel(Defense):
    """Hides the nearest passage where its score is an outlier; the next ones move up.

    Distances of unit vectors are turned into cosines, as in the paper. BM25 scores are far
    from normal (most passages score 0), so there the level means nothing.

    Attributes:
        rho: Significance level (§5.1: 0.05). Algorithm 1 does not keep it: at rho = 5 % it hides
            0.3 % of 4000 sets of 1000 normal scores, and 2.4 % of sets of 20.
    """

    rho: float = 0.05

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be tested."""
        if not 0 < self.rho < 1:
            raise InputError(f"Mirabel's rho must lie between 0 and 1, not {self.rho}.")

    @property
    def name(self) -> str:
        """The level; rule and scope are part of the name by which stored answers know it."""
        return f"mirabel(rho={self.rho!r} rule=algorithm scope=passage)"

    def candidates(self, k: int, size: int) -> int:  # noqa: ARG002
        """All passages (Alg. 1, lines 1-4)."""
        return size

    def select(self, hits: list[Hit], lookup: Lookup) -> list[Hit]:
        """Return the hits without the target of a member attack query, if it is one (§4.2)."""
        if not hits or not self.detects([hit.score for hit in hits], lookup):
            return hits
        # §4.2: the target is hidden, and the passages behind it move up.
        return hits[1:]

    def detects(self, found: Sequence[float], lookup: Lookup) -> bool:
        """Whether the largest score is an outlier (Alg. 1).

        Args:
            found: The retriever's scores, largest first; what it does not return scores 0,
                or as little as the least that it does.
            lookup: The search.
        """
        scores = np.full(max(len(lookup.passages), len(found)), min([0.0, *found]))
        scores[: len(found)] = found
        if lookup.distances:
            scores = 1 - scores**2 / 2  # |a - b|^2 = 2 - 2 cos(a, b) for unit vectors
        threshold = hide_threshold(scores, self.rho)
        return threshold is not None and float(scores.max()) > threshold


def hide_threshold(scores: ArrayLike, rho: float = 0.05) -> float | None:
    """Return the critical value of the largest of n scores (Alg. 1, lines 5-9).

    Args:
        scores: Scores of all passages, shape (n,).
        rho: Significance level.

    Returns:
        The threshold, or None where fewer than three scores, or others that are all equal,
        say nothing of their spread.
    """
    values = np.sort(np.asarray(scores, dtype=np.float64))
    n = values.size
    if n < _FEWEST:
        return None
    others = values[:-1]  # line 6: without the largest, once
    mean, spread = float(others.mean()), float(others.std())
    if spread <= 1e-12 * max(1.0, abs(mean)):
        return None
    root = math.sqrt(2 * math.log(n))  # line 7: Eq. 7 in the limit
    critical = -math.log(-math.log1p(-rho))  # line 8
    return mean + spread * root + critical * spread / root  # line 9, Eq. 8
