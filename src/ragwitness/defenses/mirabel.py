"""Mirabel: hides the nearest passage where it is nearer than chance explains.

Choi et al., Findings of EMNLP 2025 (arXiv 2505.22061), §4: the similarities of a query to a
database are about normal; the largest of n of them then follows a Gumbel distribution, and a
query made from a stored document lies beyond its critical value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from ragwitness.defenses.base import Defense
from ragwitness.errors import InputError
from ragwitness.rag.index.base import Hit
from ragwitness.rag.pipeline import Lookup

Rule: TypeAlias = Literal["algorithm", "equation", "grubbs"]
"""How far out the largest of n scores must lie; see :class:`Mirabel`."""

# With fewer, one score's spread around itself would decide.
_FEWEST = 3


@dataclass(frozen=True)
class Mirabel(Defense):
    """Hides the nearest passage where its score is an outlier; the next ones move up.

    Distances of unit vectors are turned into cosines, as in the paper. BM25 scores are far
    from normal (most passages score 0), so there the level means nothing; measure what it
    hides from benign questions (``ragwitness evaluate --benign``).

    Attributes:
        rho: Significance level (§5.1: 0.05).
        rule: ``"algorithm"`` is Algorithm 1; ``"equation"`` is Eq. 7 before it is simplified.
            Neither keeps its level: of 4000 sets of 1000 normal scores they hide 0.3 % and
            5.9 % at rho = 5 %, of sets of 20 scores 2.4 % and 18 %. ``"grubbs"``, ours, does
            at every n: the same statistic under its own distribution.
        scope: ``"passage"`` hides what the index found, or ``"document"`` every passage of its
            document: the paper's databases hold one passage per document.
    """

    whole_index = True
    reads_scores = True

    rho: float = 0.05
    rule: Rule = "algorithm"
    scope: Literal["passage", "document"] = "passage"

    def __post_init__(self) -> None:
        """Refuse values with which nothing can be tested."""
        if not 0 < self.rho < 1:
            raise InputError(f"Mirabel's rho must lie between 0 and 1, not {self.rho}.")
        if self.rule not in get_args(Rule):
            raise InputError(f"The rule must be one of {get_args(Rule)}, not {self.rule!r}.")
        if self.scope not in ("passage", "document"):
            raise InputError(f"scope must be 'passage' or 'document', not {self.scope!r}.")

    @property
    def name(self) -> str:
        """Every parameter."""
        return f"mirabel(rho={self.rho!r} rule={self.rule} scope={self.scope})"

    def candidates(self, k: int, size: int) -> int:  # noqa: ARG002
        """All passages (Alg. 1, lines 1-4)."""
        return size

    def select(self, hits: list[Hit], lookup: Lookup) -> list[Hit]:
        """Return the hits without the target of a member attack query, if it is one (§4.2)."""
        if not hits or not self.detects([hit.score for hit in hits], lookup):
            return hits
        target = hits[0]
        # §4.2: the target is hidden, and the passages behind it move up.
        if self.scope == "passage":
            return hits[1:]
        passages = lookup.passages
        document = passages[target.index].document
        return [hit for hit in hits if passages[hit.index].document != document]

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
        threshold = hide_threshold(scores, self.rho, self.rule)
        return threshold is not None and float(scores.max()) > threshold


def hide_threshold(scores: ArrayLike, rho: float = 0.05, rule: Rule = "algorithm") -> float | None:
    """Return the critical value of the largest of n scores (Alg. 1, lines 5-9).

    Args:
        scores: Scores of all passages, shape (n,).
        rho: Significance level.
        rule: The way to compute the critical value.

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
    if rule == "grubbs":
        return mean + spread * _studentized(n, rho)
    root = math.sqrt(2 * math.log(n))
    shift = root  # line 7: Eq. 7 in the limit
    # Eq. 7 before it is simplified: the location of the largest of n normal scores.
    if rule == "equation":
        shift = math.sqrt(max(0.0, root**2 - math.log(math.log(n)) - math.log(4 * math.pi)))
    critical = -math.log(-math.log1p(-rho))  # line 8
    return mean + spread * shift + critical * spread / root  # line 9, Eq. 8


def _studentized(n: int, rho: float) -> float:
    """How many deviations of the others the largest may lie above their mean.

    One normal score against the mean and unbiased deviation of the n - 1 others follows
    Student's t with n - 2 degrees of freedom, stretched by sqrt(n / (n - 1)); the union bound
    over the n scores is nearly exact for the largest (Grubbs 1950).
    """
    from scipy.stats import t

    unbiased = math.sqrt((n - 1) / (n - 2))
    return float(t.isf(rho / n, n - 2)) * math.sqrt(n / (n - 1)) * unbiased
