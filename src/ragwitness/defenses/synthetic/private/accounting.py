"""Exact privacy of votes with discrete Gaussian noise, and the noise for an epsilon.

A record changes one bin of a round's histogram by one, whatever was published before. With noise
N_Z(0, v) on every bin the loss at a bin's noise k is then (1 - 2k) / 2v (Canonne, Kamath &
Steinke 2020, Thm. 7), and that of T adaptive rounds (T - 2S) / 2v, where S is the sum of T
such noises: one sum over the integers gives delta(epsilon) without any bound in between.
Noise on the reals (``ragwitness.privacy.accounting.gaussian``) is near it and no bound of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ragwitness.errors import InputError

__all__ = ["delta_of", "epsilon_of", "group_epsilon", "variance_for"]

_STEPS = 1000  # of the variance in one
_SMALL = 4  # below this variance sums of noises are convolved
_SLACK = 1e-9  # relative; rounding errors of the sums are below 1e-12
_LARGEST = 10**10  # of the sum's variance: arrays beyond would not fit


def delta_of(epsilon: float, variance: Fraction, votes: int) -> float:
    """Return the smallest delta at an epsilon.

    Args:
        epsilon: At least 0.
        variance: Parameter v of the noise on each bin.
        votes: Bins that a record changes by one, all rounds together.
    """
    sums, chances = _noise(variance, votes)
    margin = epsilon - (votes - 2 * sums) / (2 * float(variance))
    counted = margin < 0
    return float(chances[counted] @ -np.expm1(margin[counted])) * (1 + _SLACK)


def epsilon_of(delta: float, variance: Fraction, votes: int) -> float:
    """Return an epsilon at a delta, the smallest to 1e-6 of its value and never below it."""
    high = 1.0
    while delta_of(high, variance, votes) > delta:
        high *= 2
    if delta_of(0.0, variance, votes) <= delta:
        return 0.0
    return _switch(lambda e: delta_of(e, variance, votes) <= delta, false=0.0, true=high)


def variance_for(epsilon: float, delta: float, votes: int) -> Fraction:
    """Return the least variance, in thousandths, with which the votes are (epsilon, delta)-private.

    Raises:
        InputError: So much noise is needed that nothing could be chosen.
    """
    from ragwitness.privacy.accounting.gaussian import mu_for

    about = votes / mu_for(epsilon, delta) ** 2  # on the reals; of the right order
    if about * votes > _LARGEST:
        raise InputError(
            f"epsilon {epsilon:g} over {votes} rounds asks for noise of standard deviation"
            f" {math.sqrt(about):,.0f} on every count.",
            "Take a larger --epsilon or fewer --rounds.",
        )
    high = max(1, math.ceil(about * _STEPS))
    while delta_of(epsilon, Fraction(high, _STEPS), votes) > delta:
        high *= 2
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        if delta_of(epsilon, Fraction(middle, _STEPS), votes) <= delta:
            high = middle
        else:
            low = middle
    return Fraction(high, _STEPS)


def group_epsilon(delta: float, variance: Fraction, rounds: int, records: int) -> float:
    """Return an epsilon for several records of one person, who may vote for one bin.

    By zero-concentrated privacy, rho = records^2 rounds / 2v, and its best conversion (Canonne,
    Kamath & Steinke 2020, Prop. 12): an upper bound, whichever bins they vote for.
    """
    from ragwitness.privacy.accounting.renyi import moments_epsilon

    return moments_epsilon(records * math.sqrt(rounds / variance), delta)


def _noise(variance: Fraction, votes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the values of a sum of noises that can matter, and their chances."""
    if variance >= _SMALL:
        # A sum of t + 1 noises is one of t and one more: completing the square leaves a sum over
        # the integers of a Gaussian of variance v t / (t + 1) at an offset, which by Poisson
        # summation varies with it by less than a share 5 exp(-pi^2 v) < 1e-16.
        return _one(float(variance) * votes)
    support, one = _one(float(variance))
    reach, chances = int(support[-1]), one
    for _ in range(votes - 1):
        chances = np.convolve(chances, one)
    return np.arange(-reach * votes, reach * votes + 1, dtype=float), chances


def _one(variance: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    reach = math.ceil(math.sqrt(2 * 100 * variance)) + 1  # beyond, exp(-100)
    support = np.arange(-reach, reach + 1, dtype=float)
    weights = np.exp(-support * support / (2 * variance))
    return support, weights / weights.sum()


def _switch(holds: Callable[[float], bool], *, false: float, true: float) -> float:
    while true - false > 1e-6 * true:
        middle = (true + false) / 2
        true, false = (middle, false) if holds(middle) else (true, middle)
    return true
