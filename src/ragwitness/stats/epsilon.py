"""Lower bounds on epsilon from an attack's scores: what a privacy claim must at least admit.

Three kinds, never to be mixed up. Clopper-Pearson holds for any mechanism. The two that go by
Gaussian privacy (mu) are larger, and hold only where the mechanism's trade-off function is
Gaussian, as with Gaussian noise on one score. The one-run bound holds for any mechanism, from
many planted documents in a single run instead of many runs. A bound on mu becomes one on epsilon
by ``ragwitness.privacy.accounting.gaussian.epsilon_at``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragwitness.errors import InputError
from ragwitness.stats.intervals import auc_interval

Values = NDArray[np.float64]
_CUTS = 512
"""Thresholds that are tried on the half that chooses."""
_CAUTION = 10
"""That half is read at this part of the error; at the whole, thin tails win by chance."""


@dataclass(frozen=True, slots=True)
class Floor:
    """A lower bound on a privacy parameter.

    Attributes:
        value: Of epsilon or mu, never below 0.
        n: Scores it was counted on, or guesses.
        confidence: With which the parameter is at least ``value``.
        assumes: What has to be true of the mechanism; empty where nothing has.
    """

    value: float
    n: int
    confidence: float
    assumes: str = ""


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
    _share("delta", delta)

    def floor(true_low: Values, false_high: Values) -> Values:
        # (epsilon, delta): TPR <= e^epsilon FPR + delta, solved for epsilon at the exact limits.
        return np.log(np.maximum(true_low - delta, 1e-300) / false_high)

    return _thresholded(inside, outside, floor, confidence, seed, "")


def mu_clopper_pearson(
    inside: ArrayLike, outside: ArrayLike, *, confidence: float = 0.95, seed: int = 0
) -> Floor:
    """Return mu from the same two limits: Phi^-1(TPR_low) - Phi^-1(FPR_high).

    Args:
        inside: Scores of runs with the document, shape (m,).
        outside: Scores of runs without it, shape (n,).
        confidence: Of the bound.
        seed: Of the halving.

    Raises:
        InputError: Too few scores, one not finite, or a value outside its range.
    """
    from scipy.special import ndtri

    def floor(true_low: Values, false_high: Values) -> Values:
        return np.asarray(
            # mu-GDP: Phi^-1(TPR) - Phi^-1(FPR) <= mu for every threshold (Dong, Roth and Su 2022).
            ndtri(np.maximum(true_low, 1e-300)) - ndtri(np.minimum(false_high, 1 - 1e-16))
        )

    return _thresholded(inside, outside, floor, confidence, seed, "a Gaussian trade-off function")


def mu_from_auc(inside: ArrayLike, outside: ArrayLike, *, confidence: float = 0.95) -> Floor:
    """Return sqrt(2) Phi^-1 of a lower limit of the AUC (DeLong's variance, logit scale).

    Args:
        inside: Scores of runs with the document, shape (m,).
        outside: Scores of runs without it, shape (n,).
        confidence: Of the bound, one-sided.

    Raises:
        InputError: Too few scores, one not finite, or a value outside its range.
    """
    from scipy.special import ndtri

    _share("confidence", confidence)
    members, others = _scores(inside), _scores(outside)
    labels = np.repeat([True, False], [members.size, others.size])
    low, _ = auc_interval(np.concatenate([members, others]), labels, max(0.0, 2 * confidence - 1))
    # Two normal scores mu apart have the AUC Phi(mu / sqrt 2).
    mu = math.sqrt(2) * float(ndtri(low)) if low > 0.5 else 0.0
    return Floor(mu, labels.size, confidence, "a Gaussian score of equal spread in both worlds")


def epsilon_one_run(
    correct: int, guesses: int, canaries: int, delta: float, *, confidence: float = 0.95
) -> Floor:
    """Return epsilon from guesses about planted documents in one run (2305.08846, Thm. 5.2).

    Each canary was planted by a fair coin of its own; for some, the attack says whether it was.
    Under (epsilon, delta) the number of correct guesses is hardly above a binomial with
    e^eps / (1 + e^eps); the largest epsilon that the count refutes is returned.

    Args:
        correct: Guesses that were right.
        guesses: Made, a number fixed in advance; the attack may abstain on the rest.
        canaries: Whose coin was thrown.
        delta: Of the claim, for one document.
        confidence: Of the bound.

    Raises:
        InputError: A count or value is outside its range.
    """
    if not 0 <= correct <= guesses <= canaries or guesses < 1:
        raise InputError(
            "One run needs 0 <= correct <= guesses <= canaries and a guess, not"
            f" {correct}, {guesses}, {canaries}."
        )
    if delta != 0:
        _share("delta", delta)
    error = 1 - _share("confidence", confidence)

    def refuted(epsilon: float) -> bool:
        return _one_run_p_value(correct, guesses, canaries, epsilon, delta) <= error

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


def _one_run_p_value(
    correct: int, guesses: int, canaries: int, epsilon: float, delta: float
) -> float:
    from scipy.special import expit
    from scipy.stats import binom

    chance = float(expit(epsilon))
    # Thm. 5.2, delta = 0: correct guesses are at most Binomial(guesses, e^eps / (1 + e^eps)).
    tail = float(binom.sf(correct - 1, guesses, chance))
    if not delta or not correct:
        return tail
    # Its delta term: 2 m delta times the steepest mean of the probabilities just below the count.
    below = np.cumsum(binom.pmf(np.arange(correct - 1, -1, -1), guesses, chance))
    steepest = float((below / np.arange(1, correct + 1)).max())
    return tail + 2 * canaries * delta * steepest


def _thresholded(
    inside: ArrayLike,
    outside: ArrayLike,
    floor: Callable[[Values, Values], Values],
    confidence: float,
    seed: int,
    assumes: str,
) -> Floor:
    error = 1 - _share("confidence", confidence)
    rng = np.random.default_rng(seed)
    members, others = rng.permutation(_scores(inside)), rng.permutation(_scores(outside))
    # 1. Halve the scores: one half chooses a threshold, the other counts at it.
    m, n = members.size // 2, others.size // 2
    pooled = np.concatenate([members[:m], others[:n]])
    cuts = np.unique(np.quantile(pooled, np.linspace(0, 1, _CUTS), method="nearest"))
    # 2. Choose: high scores called (+) or low ones (-), at the threshold with the largest bound.
    best, choice = -math.inf, (1.0, math.inf)
    for sign in (1.0, -1.0):
        limits = _limits(sign * members[:m], sign * others[:n], sign * cuts, error / _CAUTION)
        values = floor(*limits)
        if values.max() > best:
            best, choice = float(values.max()), (sign, float(sign * cuts[values.argmax()]))
    # 3. Count on the other half, at the whole error: nothing was chosen there.
    sign, cut = choice
    counted = _limits(sign * members[m:], sign * others[n:], np.array([cut]), error)
    rest = members.size + others.size - m - n
    return Floor(max(0.0, float(floor(*counted)[0])), rest, confidence, assumes)


def _limits(members: Values, others: Values, cuts: Values, error: float) -> tuple[Values, Values]:
    """Return a lower limit of P(member >= cut) and an upper one of P(other >= cut)."""
    from scipy.stats import beta

    members, others = np.sort(members), np.sort(others)
    true = members.size - np.searchsorted(members, cuts)
    false = others.size - np.searchsorted(others, cuts)
    # Clopper-Pearson, half of the error on each side.
    low = np.where(true > 0, beta.ppf(error / 2, np.maximum(true, 1), members.size - true + 1), 0)
    above = beta.ppf(1 - error / 2, false + 1, np.maximum(others.size - false, 1))
    return np.asarray(low), np.where(false < others.size, above, 1.0)


def _scores(scores: ArrayLike) -> Values:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or values.size < 4:
        raise InputError(f"A bound needs at least 4 scores of each world, not {values.size}.")
    if not np.isfinite(values).all():
        raise InputError("Scores must be finite; leave unscorable runs out.")
    return values


def _share(name: str, value: float) -> float:
    if not 0 < value < 1:
        raise InputError(f"{name} must be a number above 0 and below 1, not {value:g}.")
    return value
