"""A lower bound on epsilon from an attack's scores in two worlds (Clopper-Pearson).

It holds for any mechanism: exact limits of the rates at which an attack calls runs with the
document and runs without it. ``experiments/attest/empirical.py`` writes one for a window.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragwitness.core.errors import InputError
from ragwitness.privacy.ranges import probability


@dataclass(frozen=True, slots=True)
class Floor:
    """A lower bound on a privacy parameter.

    Attributes:
        value: The bound on epsilon, never below 0.
        n: Number of guesses or scores behind it.
        confidence: Probability with which the parameter is at least ``value``.
        assumes: Assumption about the mechanism; empty where there is none.
    """

    value: float
    n: int
    confidence: float
    assumes: str = ""


def epsilon_one_run(correct: int, guesses: int, *, confidence: float = 0.95) -> Floor:
    """Return epsilon from guesses about planted documents in one run (2305.08846, Thm. 5.2).

    Each canary was planted by a fair coin; for some, the attack guesses its coin.
    Under pure epsilon (delta = 0) the number of correct guesses is at most a binomial with
    e^eps / (1 + e^eps); the largest epsilon that the count refutes is returned.

    Args:
        correct: Number of right guesses.
        guesses: Number of guesses, fixed in advance; the attack may abstain on the rest.
        confidence: Confidence of the bound.

    Raises:
        InputError: A count is outside its range.
    """
    if not 0 <= correct <= guesses or guesses < 1:
        raise InputError(
            f"One run needs 0 <= correct <= guesses and a guess, not {correct} and {guesses}."
        )

    from scipy.special import expit
    from scipy.stats import binom

    def refuted(epsilon: float) -> bool:
        tail = float(binom.sf(correct - 1, guesses, float(expit(epsilon))))
        return tail <= 1 - confidence

    if not refuted(0.0):
        return Floor(0.0, guesses, confidence)
    low, high = 0.0, 1.0
    # The p-value rises with epsilon: double until it is not refuted, then halve the bracket.
    while refuted(high) and high < 700:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return Floor(low, guesses, confidence)


Values = NDArray[np.float64]
_CUTS = 512
"""Thresholds that are tried on the half that chooses."""
_CAUTION = 10
"""That half is read at this part of the error; at the whole, thin tails win by chance."""


def epsilon_clopper_pearson(
    inside: ArrayLike, outside: ArrayLike, delta: float, *, confidence: float = 0.95, seed: int = 0
) -> Floor:
    """Return ln((TPR_low - delta) / FPR_high), with exact limits at half the error each.

    The threshold, and whether high or low scores are called, are chosen on one half of the
    scores and counted on the other.

    Args:
        inside: Scores of runs with the document, shape (m,).
        outside: Scores of runs without it, shape (n,).
        delta: Of the claim.
        confidence: Of the bound.
        seed: Of the halving.

    Raises:
        InputError: Too few scores, one not finite, or a value outside its range.
    """
    probability("delta", delta)
    error = 1 - probability("confidence", confidence)
    rng = np.random.default_rng(seed)
    members, others = rng.permutation(_scores(inside)), rng.permutation(_scores(outside))
    # 1. Halve the scores: one half chooses a threshold, the other counts at it.
    m, n = members.size // 2, others.size // 2
    pooled = np.concatenate([members[:m], others[:n]])
    cuts = np.unique(np.quantile(pooled, np.linspace(0, 1, _CUTS), method="nearest"))
    # 2. Choose: high scores called (+) or low ones (-), at the threshold with the largest bound.
    best, choice = -math.inf, (1.0, math.inf)
    for sign in (1.0, -1.0):
        tried = sign * cuts
        values = _floors(sign * members[:m], sign * others[:n], tried, error / _CAUTION, delta)
        if values.max() > best:
            best, choice = float(values.max()), (sign, float(tried[values.argmax()]))
    # 3. Count on the other half, at the whole error: nothing was chosen there.
    sign, cut = choice
    counted = _floors(sign * members[m:], sign * others[n:], np.array([cut]), error, delta)
    rest = members.size + others.size - m - n
    return Floor(max(0.0, float(counted[0])), rest, confidence)


def _floors(members: Values, others: Values, cuts: Values, error: float, delta: float) -> Values:
    """Epsilon at each threshold, by a lower limit of P(member >= cut), an upper of P(other)."""
    from scipy.stats import beta

    members, others = np.sort(members), np.sort(others)
    true = members.size - np.searchsorted(members, cuts)
    false = others.size - np.searchsorted(others, cuts)
    # Clopper-Pearson, half of the error on each side.
    low = np.where(true > 0, beta.ppf(error / 2, np.maximum(true, 1), members.size - true + 1), 0)
    above = beta.ppf(1 - error / 2, false + 1, np.maximum(others.size - false, 1))
    high = np.where(false < others.size, above, 1.0)
    # (epsilon, delta): TPR <= e^epsilon FPR + delta, solved for epsilon at the exact limits.
    return np.log(np.maximum(low - delta, 1e-300) / high)


def _scores(scores: ArrayLike) -> Values:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or values.size < 4:
        raise InputError(f"A bound needs at least 4 scores of each world, not {values.size}.")
    if not np.isfinite(values).all():
        raise InputError("Scores must be finite; leave unscorable runs out.")
    return values
