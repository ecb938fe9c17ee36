"""Similarity and perplexity together: S2MIA-T and S2MIA-M.

Both are fitted on labelled documents that are not reported on, such as those of a shadow system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import InputError

__all__ = ["Boosted", "Thresholds", "fit_classifier", "fit_thresholds"]

_FEWEST = 5  # documents of each kind


@dataclass(frozen=True, slots=True)
class Thresholds:
    """S2MIA-T: a member is similar enough, and said with a perplexity low enough.

    Attributes:
        similarity: Least similarity of a member.
        perplexity: Largest perplexity of a member.
        accuracy: Share of the fitted documents that are judged right; too good an estimate for
            any others.
    """

    similarity: float
    perplexity: float
    accuracy: float

    def score(self, features: Sequence[Sequence[float]]) -> NDArray[np.float64]:
        """Return 1 for a member, 0 for a non-member, shape (n,), for features of shape (n, 2)."""
        table = _table(features)
        return _judge(table, self.similarity, self.perplexity).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Boosted:
    """S2MIA-M: gradient boosting over both features.

    Attributes:
        fitted: Anything with ``predict_proba``.
    """

    fitted: Any

    def score(self, features: Sequence[Sequence[float]]) -> NDArray[np.float64]:
        """Return the probability of membership, shape (n,), for features of shape (n, 2)."""
        return np.asarray(self.fitted.predict_proba(_table(features)), dtype=np.float64)[:, 1]


def fit_thresholds(
    features: Sequence[Sequence[float]], labels: Sequence[bool], *, steps: int = 100
) -> Thresholds:
    """Choose both thresholds by search over a grid, for the most right answers on these documents.

    The grid holds observed values, so that it fits any scale. Where several pairs are equally
    right the strictest wins: highest similarity first, then lowest perplexity.

    Args:
        features: Similarity and perplexity of each document, shape (n, 2).
        labels: True for members, shape (n,).
        steps: Most values tried per feature.

    Raises:
        InputError: Fewer than five members or non-members, or features of another shape.
    """
    table, members = _checked(features, labels)
    best = Thresholds(float("inf"), float("-inf"), -1.0)
    for similarity in _grid(table[:, 0], steps)[::-1]:
        for perplexity in _grid(table[:, 1], steps):
            right = float((_judge(table, similarity, perplexity) == members).mean())
            if right > best.accuracy:
                best = Thresholds(float(similarity), float(perplexity), right)
    return best


def fit_classifier(
    features: Sequence[Sequence[float]], labels: Sequence[bool], *, seed: int = 0
) -> Boosted:
    """Train gradient-boosted trees, which stand for the paper's XGBoost.

    Args:
        features: Similarity and perplexity of each document, shape (n, 2).
        labels: True for members, shape (n,).
        seed: Of the trees.

    Raises:
        InputError: Fewer than five members or non-members, or features of another shape.
    """
    from sklearn.ensemble import GradientBoostingClassifier

    table, members = _checked(features, labels)
    trees = GradientBoostingClassifier(n_estimators=100, max_depth=3, random_state=seed)
    return Boosted(trees.fit(table, members))


def _judge(table: NDArray[np.float64], similarity: float, perplexity: float) -> NDArray[np.bool_]:
    judged: NDArray[np.bool_] = (table[:, 0] >= similarity) & (table[:, 1] <= perplexity)
    return judged


def _grid(values: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    different = np.unique(values)
    if len(different) <= steps:
        return different
    return different[np.linspace(0, len(different) - 1, steps).round().astype(np.int64)]


def _table(features: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    try:
        table = np.asarray(features, dtype=np.float64)
    except ValueError:
        table = np.empty(0)
    if table.ndim != 2 or table.shape[1] != 2 or not np.isfinite(table).all():
        raise InputError(
            "S2MIA combines two numbers per document, similarity and perplexity.",
            "Ask with access='gray' and leave documents without features out.",
        )
    return table


def _checked(
    features: Sequence[Sequence[float]], labels: Sequence[bool]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    table, members = _table(features), np.asarray(labels, dtype=np.bool_)
    if members.shape != (len(table),):
        raise InputError(f"{len(table)} rows of features have {members.size} labels.")
    fewest = int(min(members.sum(), (~members).sum()))
    if fewest < _FEWEST:
        raise InputError(
            f"Only {fewest} of the labelled documents are of one kind; {_FEWEST} are needed.",
            "Give more members and non-members.",
        )
    return table, members
