"""How many members an audit can be expected to find, before it asks anything (ours).

A verdict depends on scores through their ranks alone. So the simulation replaces a score by its
false-positive rate: the share of documents outside that score at least as high. It is uniform for
a document outside, and small for a member that scores well. The simulated procedure is that of
``membership/verdicts.py``: conformal p-values among documents known to be outside,
Benjamini-Hochberg over all documents in question, ``in`` where q <= alpha.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import InputError
from ragwitness.stats.p_values import benjamini_hochberg, conformal_p_values

_MOST_ROUNDS, _FEWEST_ROUNDS = 2000, 200
_DRAWS = 1_000_000  # scores drawn in all; larger audits have fewer rounds
_MIDDLE = (5, 95)  # percentiles of the simulated audits


@dataclass(frozen=True, slots=True)
class Binormal:
    """Normal scores of equal spread on both sides, as far apart as an AUC says.

    Attributes:
        auc: Area under the ROC curve, from .5 for chance to 1.
    """

    auc: float

    def __post_init__(self) -> None:
        """Refuse an AUC outside of this range."""
        if not 0.5 <= self.auc <= 1:
            raise InputError(
                f"The AUC must lie between .5 and 1, not {self.auc:g}.",
                "An audit below .5 is no better than a coin.",
            )

    def rates(self, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        """Draw 1 - Phi(z + d), where d = sqrt(2) Phi^-1(AUC)."""
        from scipy.special import ndtr, ndtri

        # AUC = Phi(d / sqrt 2) for normal scores of equal spread, d apart.
        gap = math.sqrt(2) * float(ndtri(self.auc))
        return np.asarray(ndtr(-(rng.standard_normal(n) + gap)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class AuditPower:
    """The outcome of simulated audits.

    Attributes:
        found: Expected share of members called in; NaN where no audit had a member.
        low: Share below which 5 % of the audits stayed.
        high: Share above which 5 % of the audits went.
        false: Expected number of documents outside called in.
        false_share: Expected share of documents outside among those called in (the false
            discovery rate).
        rounds: Simulated audits.
        auc: Separation of members and others.
    """

    found: float
    low: float
    high: float
    false: float
    false_share: float
    rounds: int
    auc: float


def expected_power(
    separation: Binormal,
    *,
    documents: int,
    known_out: int,
    inside_share: float = 0.5,
    alpha: float = 0.05,
    rounds: int | None = None,
) -> AuditPower:
    """Simulate the verdicts of whole audits.

    Args:
        separation: Distribution of members' false-positive rates.
        documents: Number of scored documents in question.
        known_out: Number of scored documents known to be outside; without any nothing is called
            in.
        inside_share: Probability that a document in question is inside.
        alpha: Level of the verdicts.
        rounds: Number of simulated audits; None takes 2,000, and fewer where an audit is large.

    Raises:
        InputError: A level or a share is out of range, or there is no document.
    """
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie between 0 and 1, not {alpha:g}.")
    if not 0 < inside_share <= 1:
        raise InputError(f"The share inside must be above 0 and at most 1, not {inside_share:g}.")
    if documents < 1 or known_out < 0:
        raise InputError(f"There is no audit of {documents} documents with {known_out} known ones.")
    fitting = _DRAWS // (documents + known_out)
    n = rounds or max(_FEWEST_ROUNDS, min(_MOST_ROUNDS, fitting))
    rng = np.random.default_rng(0)
    counts = np.empty((n, 3))  # members, members called in, others called in
    for row in counts:
        # One audit: the documents inside, those called in, and both.
        inside = rng.random(documents) < inside_share
        called = _called_in(separation, inside, known_out, alpha, rng)
        row[:] = inside.sum(), (called & inside).sum(), (called & ~inside).sum()
    members, hits, false = counts.T
    some = members > 0
    low, high = (
        np.percentile(hits[some] / members[some], _MIDDLE) if some.any() else (math.nan, math.nan)
    )
    return AuditPower(
        found=float(hits.sum() / members.sum()) if some.any() else math.nan,
        low=float(low),
        high=float(high),
        false=float(false.mean()),
        false_share=float((false / np.maximum(1, hits + false)).mean()),
        rounds=n,
        auc=separation.auc,
    )


def _called_in(
    separation: Binormal,
    inside: NDArray[np.bool_],
    known_out: int,
    alpha: float,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Draw one audit's scores and decide them as ``judge`` does, shape (documents,)."""
    if not known_out:
        return np.zeros(inside.size, dtype=np.bool_)
    # Documents outside: uniform; members: as the separation says. Low rates are high scores.
    rates = rng.random(inside.size)
    rates[inside] = separation.rates(rng, int(inside.sum()))
    p_values = conformal_p_values(-rates, -rng.random(known_out))
    return np.asarray(benjamini_hochberg(p_values) <= alpha, dtype=np.bool_)


def needed_together(alpha: float, documents: int, known_out: int) -> int | None:
    """Fewest documents that must be called in together for any to be; None: it cannot be.

    The least p-value is 1 / (m + 1), and Benjamini-Hochberg calls r of n documents in where it is
    at most alpha r / n.

    Args:
        alpha: Level after correction.
        documents: n, documents asked about.
        known_out: m, documents known to be outside.
    """
    # 1 / (m + 1) <= alpha r / n, solved for r.
    fewest = max(1, math.ceil(documents / (alpha * (known_out + 1)) - 1e-9))
    return fewest if fewest <= documents else None
