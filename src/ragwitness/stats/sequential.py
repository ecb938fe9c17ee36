r"""Evidence that grows document by document: test martingales, and a permutation test.

Let p_1, p_2, ... be independent p-values under the null. For each kappa in (0, 1) the product of
kappa * p_t^(kappa - 1) is a test martingale: it starts at 1, its mean stays at most 1, and by
Ville's inequality it ever reaches 1/alpha with probability at most alpha. So one may look after
every document and stop as soon as it does. Kappa need not be chosen (Vovk and Wang, Annals of
Statistics 2021, Sec. 2; Vovk, Nouretdinov and Gammerman, ICML 2003): the product is integrated
over it, kappa^t exp((1 - kappa) S) with S = -sum ln p, which bets nearly as well as the best kappa.

P-values that share one calibration set are not independent. :func:`online_p_values` are: the rank
of each score among the calibration scores *and all scores before it*, since ranks of exchangeable
arrivals among what came before are independent. A true alternative slowly pollutes its own
comparison, so give many calibration scores. Ties count against the score, which makes a p-value
only larger and, since the bets fall with p, the evidence only smaller.
"""

from __future__ import annotations

import bisect
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ragwitness.errors import InputError

_ENOUGH = 200  # terms of the series beyond the point where they start to fall
_TIE = 1e-12


def online_p_values(scores: Iterable[float], calibration: Sequence[float]) -> Iterator[float]:
    """Yield each score's p-value among the calibration and all earlier scores.

    Args:
        scores: Higher means more evidence against the null; read one at a time.
        calibration: Scores drawn under the null, at least one.

    Raises:
        InputError: No calibration score, or a score that is not finite.
    """
    known = sorted(map(_finite, calibration))
    if not known:
        raise InputError("Sequential p-values need at least one calibration score.")
    for score in scores:
        # The score counts itself, then joins what later scores are compared with.
        above = len(known) - bisect.bisect_left(known, _finite(score))
        yield (1 + above) / (len(known) + 1)
        bisect.insort(known, score)


def log_mixture(total: float, count: int) -> float:
    """Return ln of the integral of kappa^count exp((1 - kappa) total) over kappa in (0, 1).

    Args:
        total: S, the sum of -ln p; at least 0.
        count: How many p-values.
    """
    if total == 0:
        return -math.log(count + 1)
    # = sum over k of total^k / ((count+1) ... (count+1+k)): all terms positive, no overflow.
    k = np.arange(int(2 * total) + _ENOUGH)
    terms = k * math.log(total) - np.cumsum(np.log(count + 1.0 + k))
    top = float(terms.max())
    return top + math.log(float(np.exp(terms - top).sum()))


def bet(p_values: Iterable[float]) -> Iterator[tuple[float, float]]:
    """Yield each p-value with ln of the martingale after it.

    Args:
        p_values: Independent under the null, in the order they come; read one at a time.

    Raises:
        InputError: A p-value is not in (0, 1].
    """
    total = 0.0
    for count, p in enumerate(p_values, start=1):
        # The whole product is integrated over kappa: it depends on S and t alone.
        if not 0 < p <= 1:
            raise InputError("P-values must lie in (0, 1].")
        total += max(0.0, -math.log(p))
        yield p, log_mixture(total, count)


@dataclass(frozen=True, slots=True)
class Permutation:
    """A permutation test of a difference of means.

    Attributes:
        difference: Mean of the first group minus mean of the second.
        p_value: Share of arrangements whose difference is at least as large.
        arrangements: Counted, the observed one among them.
        exact: Whether these are all there are.
    """

    difference: float
    p_value: float
    arrangements: int
    exact: bool


def permutation_test(
    first: Sequence[float],
    second: Sequence[float],
    *,
    rng: random.Random,
    draws: int = 9999,
    most: int = 20_000,
) -> Permutation:
    """Test whether the first group's mean is larger, under exchange of all scores.

    Args:
        first: At least one score.
        second: At least one score.
        rng: Draws arrangements where there are too many to count.
        draws: How many then; the observed arrangement is added, (b + 1) / (draws + 1).
        most: Arrangements up to which all are counted.

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
    difference = float(np.mean(a) - np.mean(b))
    # All arrangements, where they can be counted: the p-value is exact.
    if count <= most:
        chosen = combinations(pooled.tolist(), len(a))
        above = sum(math.fsum(group) >= least for group in chosen)
        return Permutation(difference, above / count, count, exact=True)
    # Else drawn ones, with the observed one among them (Phipson and Smyth 2010).
    generator = np.random.default_rng(rng.getrandbits(64))
    above = sum(float(generator.permutation(pooled)[: len(a)].sum()) >= least for _ in range(draws))
    return Permutation(difference, (above + 1) / (draws + 1), draws + 1, exact=False)


def _finite(score: float) -> float:
    if not math.isfinite(score):
        raise InputError("Scores must be finite; leave unscorable documents out.")
    return float(score)
