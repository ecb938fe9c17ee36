"""Are two sets of rows draws of one source? A classifier two-sample test, by permutation.

A classifier that is learnt on some rows and tells the others apart better than chance refuses that
the two sets are exchangeable (Lopez-Paz and Oquab, ICLR 2017). Its AUC is compared with that of
the same rows under random labels, which is exact for any number of rows. Beside it every named
column is compared by itself, and the largest difference of all columns with the largest under
random labels (Westfall and Young 1993), so that looking at many columns accuses nobody by chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError

_FOLDS = 5
_RIDGE = 0.3  # of a Gram matrix whose diagonal is about 1
_FEWEST = 5  # rows of each set, for a classifier to learn from


@dataclass(frozen=True, slots=True)
class TwoSample:
    """What tells two sets apart.

    Attributes:
        auc: Out-of-fold AUC of the classifier, above .5 where it tells them apart; NaN with fewer
            than 5 rows in a set.
        p_value: p-value of all tests together (Bonferroni).
        least: The least p-value that so many rows and permutations can give.
        columns: p-value of each named column, adjusted for all of them, shape (f,).
    """

    auc: float
    p_value: float
    least: float
    columns: NDArray[np.float64]


def two_sample(
    gram: NDArray[np.float64],
    named: NDArray[np.float64],
    first: int,
    rng: np.random.Generator,
    *,
    rounds: int = 499,
) -> TwoSample:
    """Compare the first rows with the others.

    Args:
        gram: Likeness of all rows to each other, positive semidefinite, shape (n, n).
        named: Columns to be compared one by one, shape (n, f).
        first: Rows of the first set.
        rng: Draws folds and permutations.
        rounds: Permutations.

    Raises:
        InputError: One of the sets is empty.
    """
    n = len(gram)
    if not 0 < first < n:
        raise InputError("Two sets are compared only where both hold something.")
    # Row 0 has the labels as they are, the others random ones: all are equally likely where the
    # sets are exchangeable.
    labels = np.tile(np.arange(n) < first, (rounds + 1, 1))
    labels[1:] = rng.permuted(labels[1:], axis=1)
    # 1. The columns: the largest standardised difference of all of them (max-T).
    differences = _differences(labels, named)
    most = differences.max(axis=1, initial=0.0)
    columns = np.array([np.mean(most >= found - 1e-12) for found in differences[0]])
    fewest, auc = min(first, n - first), math.nan
    parts = [float(columns.min(initial=1.0))]
    # 2. The classifier, on rows that it has not seen.
    if fewest >= _FEWEST:
        aucs = _aucs(labels @ _out_of_fold(gram, rng).T, labels)
        auc = float(aucs[0])
        parts.append(float(np.mean(aucs >= auc - 1e-12)))
    # 3. Both together. Few rows have few different labels.
    least = len(parts) * max(1 / (rounds + 1), 1 / math.comb(n, fewest))
    return TwoSample(auc, min(1.0, len(parts) * min(parts)), min(1.0, least), columns)


def _differences(labels: NDArray[np.bool_], named: NDArray[np.float64]) -> NDArray[np.float64]:
    """Difference of means in standard deviations, by labels and column, shape (rounds, f)."""
    centred = named - named.mean(axis=0)
    spread = centred.std(axis=0)
    scaled = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 1e-12)
    first = int(labels[0].sum())
    # The columns are centred, so one set's sum says both means.
    return np.asarray(np.abs(labels @ scaled) * (1 / first + 1 / (labels.shape[1] - first)))


def _out_of_fold(gram: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return H, shape (n, n): H @ y are out-of-fold predictions of ridge regression on labels y.

    Folds know no labels, so one matrix serves all permutations. The mean label of a fold's
    training rows is left out: it tells which fold a row is in, and nothing of the row.
    """
    n = len(gram)
    folds = rng.permutation(n) % min(_FOLDS, n)
    found = np.zeros((n, n))
    for fold in range(folds.max() + 1):
        held, learnt = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        inside, across = gram[np.ix_(learnt, learnt)], gram[np.ix_(held, learnt)]
        # Centred at the mean of the rows that are learnt from; the labels are too.
        means = inside.mean(axis=0)
        across = across - across.mean(axis=1, keepdims=True) - means + means.mean()
        inside = inside - means - means[:, None] + means.mean()
        weights = np.linalg.solve(inside + _RIDGE * np.eye(len(learnt)), across.T).T
        found[np.ix_(held, learnt)] = weights - weights.mean(axis=1, keepdims=True)
    return found


def _aucs(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> NDArray[np.float64]:
    """AUC of each row of scores for its row of labels, ties counted half, shape (rounds,)."""
    from scipy.stats import rankdata

    first = int(labels[0].sum())
    rest = labels.shape[1] - first
    ranks = rankdata(np.round(scores, 12), axis=1)
    return np.asarray(((ranks * labels).sum(axis=1) - first * (first + 1) / 2) / (first * rest))
