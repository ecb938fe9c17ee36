"""P-values: conformal ones and their correction, bets on labels, and a two-sample test.

A conformal p-value needs no model of the scores. If a document outside the database is
exchangeable with the ``n`` calibration documents, its p-value is at most ``a`` with probability
at most ``a`` (Vovk et al. 2005). P-values that share one calibration set are positively
dependent (PRDS), under which Benjamini-Hochberg still controls the false discovery rate
(Bates et al., Annals of Statistics 2023, Theorem 2).
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragwitness.core.errors import InputError

Groups = tuple[Sequence[str | None], Sequence[str | None]]
"""Groups of scores and of calibration scores; None is a group by itself."""


def conformal_p_values(
    scores: ArrayLike,
    calibration: ArrayLike,
    groups: Groups | None = None,
) -> NDArray[np.float64]:
    """Return (1 + number of calibration scores at least as high) / (n + 1) for each score.

    With groups each has one vote: its share of scores at least as high. The score's own group is
    one of them (Lee, Barber and Willett 2023, hierarchical conformal prediction). This is valid
    where groups are exchangeable with each other, and documents within one.

    Args:
        scores: Higher means more evidence against the null, shape (m,).
        calibration: Scores drawn under the null, shape (n,).
        groups: Which scores belong together, shapes (m,) and (n,); None takes each by itself.

    Returns:
        P-values, shape (m,).

    Raises:
        InputError: There is no calibration score, or a number is not finite.
    """
    null = np.asarray(calibration, dtype=np.float64)
    values = np.asarray(scores, dtype=np.float64)
    if not null.size:
        raise InputError("Conformal p-values need at least one calibration score.")
    if not (np.isfinite(null).all() and np.isfinite(values).all()):
        raise InputError("Scores must be finite; leave unscorable documents out.")
    # Votes for "at least as high", which counts ties against the accusation. A document is counted
    # among those that it is compared with (Vovk et al. 2005), hence the 1.
    order = np.argsort(null, kind="stable")
    weight = np.ones(null.size)
    if groups:
        names, numbers = _numbered(groups[1])
        weight = 1 / np.bincount(numbers)[numbers]
    tails = np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)
    above = tails[np.searchsorted(null[order], values, side="left")] + 1
    votes = np.full(values.size, weight.sum())
    if groups:
        # A document whose group has known documents is one more of that group.
        for index, group in enumerate(groups[0]):
            if (number := names.get(group or "")) is not None:
                members = null[numbers == number]
                higher = (members >= values[index]).sum()
                above[index] += (higher + 1) / (members.size + 1) - 1 - higher / members.size
                votes[index] -= 1
        above, votes = above.round(9), votes.round()
    return np.asarray(above / (votes + 1))


def _numbered(groups: Sequence[str | None]) -> tuple[dict[str, int], NDArray[np.int64]]:
    """Numbers of named groups, and the number of each document's."""
    names: dict[str, int] = {}
    numbers, count = np.zeros(len(groups), dtype=np.int64), 0
    for index, group in enumerate(groups):
        numbers[index] = count if group is None else names.setdefault(group, count)
        count += numbers[index] == count
    return names, numbers


def votes_of(groups: Sequence[str | None]) -> int:
    """Return how many groups there are; None is one by itself."""
    return groups.count(None) + len({*groups} - {None})


def largest_tie(scores: ArrayLike) -> int:
    """Return the largest number of equal scores; 0 without any."""
    counts = np.unique(np.asarray(scores, dtype=np.float64), return_counts=True)[1]
    return int(counts.max(initial=0))


def benjamini_hochberg(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return step-up adjusted p-values (q-values), shape (m,).

    Rejecting where q <= a controls the false discovery rate at a.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    # Step-up (Benjamini and Hochberg 1995): q of rank r is the least p_s n / s over ranks s >= r.
    scaled = p[order] * p.size / np.arange(1, p.size + 1)
    # 0.05 * 3 / 3 is 0.05: a value that differs from a short decimal in its last bits is that one.
    short = scaled.round(12)
    scaled = np.where(np.abs(short - scaled) <= 4 * np.spacing(scaled), short, scaled)
    q = np.empty_like(p)
    q[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return q


def documents_needed(alpha: float, tests: int = 1) -> int:
    """Smallest calibration set whose best p-value can survive the correction.

    Args:
        alpha: Level after correction.
        tests: Number of documents asked about.
    """
    _check_level(alpha)
    # The least p-value, 1 / (n + 1), must be at most alpha / tests.
    return math.ceil(tests / alpha - 1e-9) - 1


def _check_level(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie between 0 and 1, not {alpha:g}.")


# Evidence that grows document by document: bets on labels.
#
# Documents of two kinds, ``ours`` and ``known``, are asked about in one random order. Under the
# null "ours are exchangeable with the known ones", the labels of that order are a uniformly random
# arrangement, whatever the scores are. So the next label is ours with probability (ours left) /
# (all left), as in drawing without replacement. A target that changes meanwhile changes scores, and
# the order of labels does not depend on it, so no drift can break this (docs/design/verdicts.md).
#
# Before each label is seen, a stake is divided between its two values by a guess q from all earlier
# scores and labels and the score in question. It is multiplied by q / pi or (1 - q) / (1 - pi),
# where pi is the probability above. Its mean stays 1 whatever the guess, so it is a test
# martingale. By Ville's inequality it ever reaches 1/alpha with probability at most alpha: one may
# look after every document and stop as soon as it does. (Betting on labels: Podkopaev and Ramdas,
# NeurIPS 2023; tests of exchangeability: Vovk, Gammerman and Shafer 2005, Ch. 7.)
#
# The guess models the rank p of a score among earlier known ones. Where the document is ours, its
# density is kappa * p^(kappa - 1), which favours small ranks; otherwise it is uniform. Kappa need
# not be chosen: the stakes of ten values are averaged.

_KAPPAS = np.array([0.05, *np.arange(0.1, 0.95, 0.1)])


class LabelBets:
    """Bets on which documents of one random order are ours, as their scores come in.

    Args:
        ours: Documents of ours in that whole order.
        known: Documents known to be outside in it.
        alpha: Level.

    Attributes:
        path: ln of the martingale after each document that has a score.

    Raises:
        InputError: ``alpha`` is not in (0, 1).
    """

    def __init__(self, ours: int, known: int, *, alpha: float = 0.05) -> None:
        _check_level(alpha)
        self.path: list[float] = []
        self._enough = -math.log(alpha)
        self._ours, self._left = ours, ours + known
        self._stakes, self._known = np.zeros(len(_KAPPAS)), list[float]()

    @property
    def best(self) -> float:
        """Largest value so far; 1 / e^best is an anytime-valid p-value."""
        return max(self.path, default=0.0)

    @property
    def decided(self) -> bool:
        """Whether 1/alpha was reached, under the null with chance alpha at most (Ville)."""
        return self.best >= self._enough

    def add(self, score: float | None, ours: bool) -> None:
        """Bet on the label of the next document in the order of asking.

        Args:
            score: None where it has none: no bet, but the label is used from now on.
            ours: The label.

        Raises:
            InputError: The score is not finite.
        """
        # 1. The label is a draw without replacement from the remaining ones.
        chance = self._ours / self._left
        self._left, self._ours = self._left - 1, self._ours - ours
        if score is None:
            return
        # 2. The likelihood of the rank for ours, against 1 for a known one; ties share theirs.
        size = len(self._known) + 1
        above = size - 1 - bisect.bisect_right(self._known, _finite(score))
        upto = size - bisect.bisect_left(self._known, score)
        likely = ((upto / size) ** _KAPPAS - (above / size) ** _KAPPAS) * size / (upto - above)
        # 3. Bayes: q = chance * likely / (chance * likely + 1 - chance), against chance.
        self._stakes += np.log((likely if ours else 1.0) / (chance * likely + 1 - chance))
        if not ours:
            bisect.insort(self._known, score)
        top = float(self._stakes.max())
        self.path.append(top + math.log(float(np.exp(self._stakes - top).mean())))


def _finite(score: float) -> float:
    if not math.isfinite(score):
        raise InputError("Scores must be finite; leave unscorable documents out.")
    return float(score)


# Are two sets of rows draws of one source? A classifier two-sample test, by permutation.
#
# A classifier that learns on some rows and separates the others better than chance rejects that the
# two sets are exchangeable (Lopez-Paz and Oquab, ICLR 2017). Its AUC is compared with that of the
# same rows under random labels, which is exact for any number of rows. Every named column is also
# compared by itself. The largest difference of all columns is compared with the largest under
# random labels (Westfall and Young 1993), so that many columns cause no false alarm by chance.

_FOLDS = 5
_RIDGE = 0.3  # of a Gram matrix whose diagonal is about 1
_FEWEST = 5  # rows of each set, for a classifier to learn from


@dataclass(frozen=True, slots=True)
class TwoSample:
    """How two sets differ.

    Attributes:
        auc: Out-of-fold AUC of the classifier, above .5 where the sets differ; NaN with fewer
            than 5 rows in a set.
        p_value: p-value of all tests together (Bonferroni).
        least: The least possible p-value with these numbers of rows and permutations.
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
        raise InputError("Two sets are compared only where neither is empty.")
    # Row 0 has the labels as they are, the others random ones: all are equally likely where the
    # sets are exchangeable.
    labels = np.tile(np.arange(n) < first, (rounds + 1, 1))
    labels[1:] = rng.permuted(labels[1:], axis=1)
    # 1. The columns: the largest standardised difference of all of them (max-T).
    differences = _differences(labels, named)
    largest = differences.max(axis=1, initial=0.0)
    columns = np.array([np.mean(largest >= value - 1e-12) for value in differences[0]])
    fewest, auc = min(first, n - first), math.nan
    p_values = [float(columns.min(initial=1.0))]
    # 2. The classifier, on rows outside its training set.
    if fewest >= _FEWEST:
        aucs = _aucs(labels @ _out_of_fold(gram, rng).T, labels)
        auc = float(aucs[0])
        p_values.append(float(np.mean(aucs >= auc - 1e-12)))
    # 3. Both together. Few rows have few different labels.
    tests = len(p_values)
    least = tests * max(1 / (rounds + 1), 1 / math.comb(n, fewest))
    return TwoSample(auc, min(1.0, tests * min(p_values)), min(1.0, least), columns)


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
    training rows is left out: it depends on the fold of a row, and not on the row.
    """
    n = len(gram)
    folds = rng.permutation(n) % min(_FOLDS, n)
    hat = np.zeros((n, n))
    for fold in range(folds.max() + 1):
        test, train = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        inside, across = gram[np.ix_(train, train)], gram[np.ix_(test, train)]
        # Centred at the mean of the training rows; the labels are too.
        means = inside.mean(axis=0)
        across = across - across.mean(axis=1, keepdims=True) - means + means.mean()
        inside = inside - means - means[:, None] + means.mean()
        weights = np.linalg.solve(inside + _RIDGE * np.eye(len(train)), across.T).T
        hat[np.ix_(test, train)] = weights - weights.mean(axis=1, keepdims=True)
    return hat


def _aucs(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> NDArray[np.float64]:
    """AUC of each row of scores for its row of labels, ties counted half, shape (rounds,)."""
    from scipy.stats import rankdata

    first = int(labels[0].sum())
    rest = labels.shape[1] - first
    ranks = rankdata(np.round(scores, 12), axis=1)
    return np.asarray(((ranks * labels).sum(axis=1) - first * (first + 1) / 2) / (first * rest))
