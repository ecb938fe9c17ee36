"""Exact privacy of votes with discrete Gaussian noise, and the noise for an epsilon.

A record changes one bin of a round's histogram by one, whatever was published before. With noise
N_Z(0, v) on every bin the loss at a bin's noise k is then (1 - 2k) / 2v (Canonne, Kamath &
Steinke 2020, Thm. 7). The loss of T adaptive rounds is (T - 2S) / 2v, where S is the sum of T such
noises. One sum over the integers gives delta(epsilon) without any bound in between.
Noise on the reals (``ragwitness.privacy.gaussian``) is near it and no bound of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve

from ragwitness.core.errors import InputError
from ragwitness.privacy.sampler import discrete_gaussian, system_bits

_STEPS = 1000  # of the variance in one
_SMALL = 4  # below this variance sums of noises are convolved
_SLACK = 1e-9  # relative; rounding errors of the sums are below 1e-12
_ROUNDING = 1e-13  # of a convolution by Fourier transform, beside deltas far above it
_LARGEST = 10**10  # of the sum's variance: arrays beyond would not fit


def delta_of(epsilon: float, variance: Fraction, votes: int) -> float:
    """Return the smallest delta at an epsilon.

    Args:
        epsilon: Privacy parameter, at least 0.
        variance: Parameter v of the noise on each bin.
        votes: Number of bins that a record changes by one, over all rounds.
    """
    sums, chances = _noise(variance, votes)
    # delta(epsilon) = E[max(0, 1 - e^(epsilon - loss))] over the loss (T - 2S) / 2v.
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
    return _switch(lambda e: delta_of(e, variance, votes) <= delta, high)


def variance_for(epsilon: float, delta: float, votes: int) -> Fraction:
    """Return the least variance, in thousandths, with which the votes are (epsilon, delta)-private.

    Raises:
        InputError: The noise would be too large for any choice.
    """
    from ragwitness.privacy.gaussian import mu_for

    about = votes / mu_for(epsilon, delta) ** 2  # on the reals; of the right order
    if about * votes > _LARGEST:
        raise InputError(
            f"epsilon {epsilon:g} over {votes} rounds asks for noise of standard deviation"
            f" {math.sqrt(about):,.0f} on every count.",
            "Take a larger --epsilon or fewer --rounds.",
        )
    high = max(1, math.ceil(about * _STEPS))
    # delta falls as the noise grows: double, then halve the bracket, in thousandths.
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


_GRID = 1e-3  # of the losses of several runs; each is rounded up to it


def composed_epsilon(delta: float, spends: Sequence[tuple[Fraction, int]]) -> float:
    """Return an epsilon for several runs over the same records, at most that of their plain sum.

    With one noise for all, their votes add up exactly. With several, the losses are rounded up to a
    grid, and their distributions convolved (privacy loss distributions, Koskela et al. 2020). This
    bounds the sum from above. Zero-concentrated privacy is taken where it gives less.

    Args:
        delta: Failure probability of all runs together.
        spends: Variance of the noise, and counts that a record changes, of each run.
    """
    from ragwitness.privacy.gaussian import moments_epsilon

    votes: dict[Fraction, int] = {}
    for variance, count in spends:
        votes[variance] = votes.get(variance, 0) + count
    if len(votes) == 1:
        ((variance, count),) = votes.items()
        return epsilon_of(delta, variance, count)
    rho = sum(count / (2 * float(variance)) for variance, count in votes.items())
    bound = moments_epsilon(math.sqrt(2 * rho), delta)
    # Per noise: the loss (T - 2S) / 2v in steps of the grid, rounded up.
    chances, lowest = np.ones(1), 0
    for variance, count in votes.items():
        sums, weights = _noise(variance, count)
        steps = np.ceil((count - 2 * sums) / (2 * float(variance)) / _GRID).astype(np.int64)
        least = int(steps.min())
        histogram = np.bincount(steps - least, weights=weights)
        chances, lowest = fftconvolve(chances, histogram), lowest + least
    losses = (lowest + np.arange(len(chances))) * _GRID
    chances = np.maximum(chances, 0.0)

    def delta_at(epsilon: float) -> float:
        counted = losses > epsilon
        return float(chances[counted] @ -np.expm1(epsilon - losses[counted])) + _ROUNDING

    if delta_at(bound) > delta:
        return bound
    return 0.0 if delta_at(0.0) <= delta else _switch(lambda e: delta_at(e) <= delta, bound)


def group_epsilon(delta: float, variance: Fraction, rounds: int, records: int) -> float:
    """Return an epsilon for several records of one person, who may vote for one bin.

    By zero-concentrated privacy, rho = records^2 rounds / 2v, and its best conversion (Canonne,
    Kamath & Steinke 2020, Prop. 12): an upper bound, whichever bins they vote for.
    """
    from ragwitness.privacy.gaussian import moments_epsilon

    return moments_epsilon(records * math.sqrt(rounds / variance), delta)


def _noise(variance: Fraction, votes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the values of a sum of noises that can matter, and their chances."""
    if variance >= _SMALL:
        # A sum of t + 1 noises is one of t and one more. Completing the square leaves a sum over
        # the integers of a Gaussian of variance v t / (t + 1) at an offset. By Poisson summation it
        # varies with the offset by less than a share 5 exp(-pi^2 v) < 1e-16.
        return _one(float(variance) * votes)
    # Little noise: the sum of T noises by convolution, exactly.
    support, single = _one(float(variance))
    reach, chances = int(support[-1]), single
    for _ in range(votes - 1):
        chances = np.convolve(chances, single)
    return np.arange(-reach * votes, reach * votes + 1, dtype=float), chances


def _one(variance: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    reach = math.ceil(math.sqrt(2 * 100 * variance)) + 1  # beyond, exp(-100)
    support = np.arange(-reach, reach + 1, dtype=float)
    weights = np.exp(-support * support / (2 * variance))
    return support, weights / weights.sum()


def _switch(holds: Callable[[float], bool], true: float) -> float:
    """Return the least number, from 0 to one at which it does, at which something holds."""
    false = 0.0
    while true - false > 1e-6 * true:
        middle = (true + false) / 2
        true, false = (middle, false) if holds(middle) else (true, middle)
    return true


# Choices by noisy votes; no record is looked at, so they cost no privacy.


def shares(noisy: Sequence[int], slots: int, least: float) -> NDArray[np.int64]:
    """Share out the next round's places by the votes above a floor.

    Lin et al. draw with replacement (Algorithm 1); largest remainders give every candidate
    the expected number of places, rounded, without the scatter of a draw.

    Args:
        noisy: Counts with noise, shape (m,).
        slots: Places.
        least: Floor, taken off every count; negative counts are none. Where nothing is left, all
            are alike.

    Returns:
        Places per candidate, shape (m,), with sum ``slots``.
    """
    # Lin et al., Algorithm 1: the share of a candidate follows its votes above a floor.
    weights = np.maximum(np.asarray(noisy, dtype=float) - least, 0.0)
    if not weights.any():
        weights = np.ones_like(weights)
    exact = weights * (slots / weights.sum())
    allotted: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    missing = slots - int(allotted.sum())
    # Largest remainders get what rounding down left over.
    allotted[np.argsort(allotted - exact, kind="stable")[:missing]] += 1
    return allotted


def best(noisy: Sequence[int], most: int, least: float) -> list[int]:
    """Return the places of the highest counts above a floor, the highest first."""
    order = sorted(range(len(noisy)), key=lambda place: -noisy[place])
    return [n for n in order[:most] if noisy[n] > least]


# Votes of the records for their nearest candidates, and the noise on them.
#
# A record's vote must not depend on any other record, down to the last bit: otherwise it would
# change more than one count. Records are embedded one by one, because the padding of a batch
# changes the last digits of a vector. They are compared in whole numbers, independent of the order
# of summation.

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts to unit vectors, shape (n, dim)."""

Draw = Callable[[Fraction], int]
"""From the variance parameter to one discrete Gaussian."""

_STEPS_VOTES = 1 << 15  # per unit; sums of 2^20 products of two are still exact doubles
_ROWS = 1024  # records compared at once


def system_noise(variance: Fraction) -> int:
    """Draw exact noise from the operating system's entropy, which cannot be reproduced."""
    return discrete_gaussian(variance, system_bits())


def vectors_of(texts: Sequence[str], embed: Embed) -> NDArray[np.float32]:
    """Return each text's vector in whole numbers, made apart from all others, shape (n, dim)."""
    return np.concatenate([grid(embed([text])) for text in texts])


def grid(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors in whole numbers; what is not a number becomes 0."""
    return np.rint(np.nan_to_num(vectors).clip(-1, 1) * np.float32(_STEPS_VOTES))


def nearest(records: NDArray[np.float32], candidates: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the votes per candidate: one per record, for its highest cosine; ties to the first.

    A record whose vector is zero has none and abstains.

    Args:
        records: Vectors from :func:`vectors_of`, shape (n, dim).
        candidates: Vectors from :func:`grid`, shape (m, dim).

    Returns:
        Counts, shape (m,), with a sum of at most n (Lin et al. 2024, Algorithm 2).
    """
    counts = np.zeros(len(candidates), np.int64)
    columns = candidates.T.astype(np.float64)
    for start in range(0, len(records), _ROWS):
        rows = records[start : start + _ROWS].astype(np.float64)
        # Whole numbers in doubles are exact: the order of summation moves no vote.
        chosen = np.argmax(rows[rows.any(axis=1)] @ columns, axis=1)
        counts += np.bincount(chosen, minlength=len(candidates))
    return counts


def with_noise(counts: NDArray[np.int64], variance: Fraction, draw: Draw) -> list[int]:
    """Return every count with independent noise, those without a vote included."""
    return [int(count) + draw(variance) for count in counts]
