"""From word probabilities to what the audit classifier reads (§4.2.3).

``counts`` are the paper's features: how many probabilities fall in each of m intervals. Counts
grow with the length of the document, which the classifier then learns; ``frequencies`` divide
by the number of words and add what counts cannot hold: the share of unread words, the mean
log-odds against the proxy, and in single-answer mode how much of the suffix the answer said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragwitness.membership.srag.reading import UNREAD
from ragwitness.types import Evidence, Interval

__all__ = ["counts", "frequencies", "log_odds", "mean_log_odds"]

_FLOOR = 1e-4


def counts(probabilities: Sequence[Interval], intervals: int = 10) -> NDArray[np.float64]:
    """Return F(s) of Eq. 5, shape (m,); p = 1 belongs to the last interval.

    A censored probability is spread evenly over the intervals it may lie in. Unread words are
    in none.
    """
    edges = np.linspace(0.0, 1.0, intervals + 1)
    total = np.zeros(intervals)
    for p in probabilities:
        if p == UNREAD:
            continue
        if p.high - p.low < 1e-12:
            total[min(int(intervals * p.low), intervals - 1)] += 1.0  # Eq. 4
        else:
            overlap = np.minimum(edges[1:], p.high) - np.maximum(edges[:-1], p.low)
            total += np.clip(overlap, 0.0, None) / (p.high - p.low)
    return total


def log_odds(probability: Interval, baseline: float) -> float:
    """Return log p / p0 with a censored p at its upper bound; 0 for an unread word.

    The bound favours membership, for calibration documents as for audited ones, so a p-value
    from this score stays valid.
    """
    if probability == UNREAD:
        return 0.0
    return math.log(max(probability.high, _FLOOR)) - math.log(max(baseline, _FLOOR))


def mean_log_odds(evidence: Sequence[Evidence]) -> float:
    """Mean of :func:`log_odds` over the probe words; needs no training."""
    return float(np.mean([log_odds(item.probability, item.baseline) for item in evidence]))


def frequencies(evidence: Sequence[Evidence], intervals: int = 10) -> NDArray[np.float64]:
    """Return shares per interval, share of unread words, mean log-odds, shape (m + 2,)."""
    probabilities = [item.probability for item in evidence]
    n = len(probabilities)
    unread = sum(p == UNREAD for p in probabilities) / n
    return np.array([*(counts(probabilities, intervals) / n), unread, mean_log_odds(evidence)])
