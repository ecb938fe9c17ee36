r"""Evidence that grows document by document: bets on labels, and a permutation test.

Documents of two kinds, ``ours`` and ``known``, are asked about in one random order. Under the null
"ours are exchangeable with the known ones", the labels of that order are a uniformly random
arrangement, whatever the scores are: the next label is ours with probability (ours left) / (all
left), as in drawing without replacement. A target that changes meanwhile changes scores, and the
order of labels knows nothing of it, so no drift can break this (docs/design/verdicts.md proves it).

Before each label is looked at, a stake is divided between its two values by a guess q from
everything seen so far, the score in question among it; it is multiplied by q / pi or
(1 - q) / (1 - pi), where pi is the probability above. Its mean stays 1 whatever the guess, so it is
a test martingale, and by Ville's inequality it ever reaches 1/alpha with probability at most alpha:
one may look after every document and stop as soon as it does. (Betting on labels: Podkopaev and
Ramdas, NeurIPS 2023; tests of exchangeability: Vovk, Gammerman and Shafer 2005, Ch. 7.)

The guess takes the rank p of a score among known ones so far for a draw from the density
kappa * p^(kappa - 1) where the document is ours, which small ranks favour, and from the uniform one
otherwise. Kappa need not be chosen: the stakes of ten values are averaged.
"""

from __future__ import annotations

import bisect
import math
import random
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ragwitness.core.errors import InputError

_KAPPAS = np.array([0.05, *np.arange(0.1, 0.95, 0.1)])
_TIE = 1e-12


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
        if not 0 < alpha < 1:
            raise InputError(f"alpha must lie between 0 and 1, not {alpha}.")
        self.path: list[float] = []
        self._enough = -math.log(alpha)
        self._ours, self._left = ours, ours + known
        self._stakes, self._seen = np.zeros(len(_KAPPAS)), list[float]()

    @property
    def best(self) -> float:
        """Largest value so far; 1 / e^best is an anytime-valid p-value."""
        return max(self.path, default=0.0)

    @property
    def decided(self) -> bool:
        """Whether 1/alpha was reached, under the null with chance alpha at most (Ville)."""
        return self.best >= self._enough

    def add(self, score: float | None, mine: bool) -> None:
        """Bet on the label of the next document in the order of asking.

        Args:
            score: None where it has none: no bet, but its label is known from now on.
            mine: The label.

        Raises:
            InputError: The score is not finite.
        """
        # 1. The label is a draw without replacement from those that are left.
        chance, self._left, self._ours = self._ours / self._left, self._left - 1, self._ours - mine
        if score is None:
            return
        # 2. How likely the rank is for ours, where it is 1 for a known one; ties share theirs.
        size = len(self._seen) + 1
        above = size - 1 - bisect.bisect_right(self._seen, _finite(score))
        upto = size - bisect.bisect_left(self._seen, score)
        likely = ((upto / size) ** _KAPPAS - (above / size) ** _KAPPAS) * size / (upto - above)
        # 3. Bayes: q = chance * likely / (chance * likely + 1 - chance), against chance.
        self._stakes += np.log((likely if mine else 1.0) / (chance * likely + 1 - chance))
        if not mine:
            bisect.insort(self._seen, score)
        top = float(self._stakes.max())
        self.path.append(top + math.log(float(np.exp(self._stakes - top).mean())))


def permutation_test(
    first: Sequence[float],
    second: Sequence[float],
    *,
    rng: random.Random,
    draws: int = 9999,
    most: int = 20_000,
) -> float:
    """Return the p-value of whether the first group's mean is larger, under exchange of all scores.

    Args:
        first: Scores of the first group, at least one.
        second: Scores of the second group, at least one.
        rng: Draws arrangements where there are too many to count.
        draws: Number of arrangements drawn then; the observed one is added,
            (b + 1) / (draws + 1).
        most: Largest number of arrangements of which all are counted.

    Raises:
        InputError: A group is empty, a score is not finite, or ``draws`` is below 1.
    """
    a, b = [_finite(x) for x in first], [_finite(x) for x in second]
    if not a or not b:
        raise InputError("A permutation test needs scores in both groups.")
    if draws < 1:
        raise InputError(f"draws must be at least 1, not {draws}.")
    pooled = np.array(a + b)
    # With the total fixed, the difference of means rises with the sum of the first group.
    scale = max(1.0, float(np.abs(pooled).sum()))
    least = float(pooled[: len(a)].sum()) - _TIE * scale
    count = math.comb(len(pooled), len(a))
    # All arrangements, where they can be counted: the p-value is exact.
    if count <= most:
        chosen = combinations(pooled.tolist(), len(a))
        above = sum(math.fsum(group) >= least for group in chosen)
        return above / count
    # Else drawn ones, with the observed one among them (Phipson and Smyth 2010).
    generator = np.random.default_rng(rng.getrandbits(64))
    above = sum(float(generator.permutation(pooled)[: len(a)].sum()) >= least for _ in range(draws))
    return (above + 1) / (draws + 1)


def _finite(score: float) -> float:
    if not math.isfinite(score):
        raise InputError("Scores must be finite; leave unscorable documents out.")
    return float(score)
