"""Exact composition of noise with known probabilities: the distribution of its privacy loss.

Let P be noise of whole numbers and Q the same, moved. The sum of T losses ln P/Q decides what
T answers reveal: delta(epsilon) = E_P[(1 - e^(epsilon - loss))+]. The losses are put on a grid by
splitting each atom between its two neighbours so that P's mass and Q's stay: the one that is
composed has the given one as post-processing, so nothing is understated (the idea of "connecting
the dots", Doroshenko et al. 2207.04380). The sum is taken by FFT under an exponential tilt, which
brings the part that delta depends on to the middle: rounding is then small beside delta itself, not
beside 1.

One pair serves every answer where the noise is log-concave and symmetric (docs/design/noise.md has
the proof), so questions may depend on earlier answers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.privacy.ranges import probability, whole

_SIZE = 1 << 17
_SPREAD = 14.0  # standard deviations of the tilted sum to either side
_TILTS = 16
_HALVINGS = 40
_FLAT = 1e3  # largest tilt, over the whole range of a loss
_MOST_EXPONENT = 700.0  # e to it is above every probability, times the least rounding there is
_MOST_SPAN = 600.0  # of losses whose exponentials all have their digits
_AWAY = (0.0, 1e-12, 1e-9)  # relative: from where quick sums look to where the sum itself agrees
_ROUNDING = 1e-9  # relative, of all floating-point steps together: far more than there is

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """Privacy loss of one answer.

    Attributes:
        at: Its values where both worlds give the outcome.
        masses: Their probabilities in the first world; the rest of 1 is outcomes that the second
            world never gives.
        lost: Probability of that rest.
    """

    at: Floats
    masses: Floats
    lost: float

    @classmethod
    def of(cls, pmf: Floats, move: int) -> Losses:
        """Return the loss of noise against the same noise moved.

        Args:
            pmf: Probabilities of neighbouring whole numbers, above 0, log-concave and symmetric.
            move: How far the noise is moved, at least 1.

        Raises:
            InputError: The move is no whole number above 0.
        """
        if whole("move", move) >= len(pmf):
            return cls(np.zeros(0), np.zeros(0), 1.0)
        first, second = pmf[move:], pmf[:-move]
        return cls(np.log(first) - np.log(second), first, float(pmf[:move].sum()))

    def rest(self, answers: int) -> float:
        """Return how often one of the answers is one that the second world never gives."""
        return -math.expm1(answers * math.log1p(-self.lost)) if self.lost < 1 else 1.0


def loss_epsilon(losses: Losses, answers: int, delta: float) -> float | None:
    """Return the least epsilon of ``answers`` adaptive answers at ``delta``, never too small.

    Args:
        losses: Losses of each answer.
        answers: How many, T.
        delta: Failure probability of the guarantee.

    Returns:
        None where no epsilon holds: outcomes that only one world gives are likelier than delta.

    Raises:
        InputError: A value is outside its range.
    """
    room = probability("delta", delta) - losses.rest(whole("answers", answers))
    if room <= 0:
        return None
    # Any tilt gives a true bound, and one near Chernoff's a tight one; where a single outcome has
    # more than delta, Chernoff's runs away, and a smaller one is better.
    tilt, chernoff = _chernoff(losses, answers, room)
    best = chernoff
    for _ in range(_TILTS):
        epsilon = _Curve.of(losses, answers, tilt, chernoff).epsilon(room, chernoff)
        if best < chernoff and epsilon >= best:
            break
        best, tilt = min(best, epsilon), tilt / 2
    return best


def _moments(losses: Losses, tilt: float) -> tuple[float, float, float]:
    """Return ln E[e^(tilt · loss)], and mean and standard deviation under that tilt."""
    raised = tilt * losses.at
    top = float(raised.max())
    weights = losses.masses * np.exp(raised - top)
    total = float(weights.sum())
    mean = float(weights @ losses.at) / total
    spread = float(weights @ (losses.at - mean) ** 2) / total
    return top + math.log(total), mean, math.sqrt(spread)


def _chernoff(losses: Losses, answers: int, delta: float) -> tuple[float, float]:
    """Return tilt and epsilon of Chernoff's bound.

    That is delta <= E[e^(tilt · loss)]^T e^(-tilt epsilon); the best tilt is where T ln E +
    ln(1/delta) = tilt · T · mean.
    """
    goal = -math.log(delta)

    def behind(tilt: float) -> bool:
        log, mean, _ = _moments(losses, tilt)
        return answers * (tilt * mean - log) < goal

    low, high, last = 0.0, 1.0, _FLAT / max(float(np.ptp(losses.at)), 1e-300)
    while high < last and behind(high):
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if behind(middle) else (low, middle)
    return high, max(0.0, (answers * _moments(losses, high)[0] + goal) / high)


@dataclass(frozen=True, slots=True, eq=False)
class _Curve:
    """The sum of losses on a grid, under a tilt.

    The masses are tilted, of sum 1; e^(log - tilt · at) turns one back, and ``outside`` bounds the
    probability above the grid.
    """

    at: Floats
    masses: Floats
    tilt: float
    log: float
    outside: float

    @classmethod
    def of(cls, losses: Losses, answers: int, tilt: float, most: float) -> _Curve:
        """Return the sum of ``answers`` losses around ``most``, the tilted sum's mean."""
        _, mean, spread = _moments(losses, tilt)
        wide = spread * math.sqrt(answers)
        reach = abs(most - answers * mean) + _SPREAD * wide + 4 * float(np.ptp(losses.at)) + 1e-12
        step = 2 * reach / _SIZE
        # Each atom between its neighbours on the grid: p = p_low + p_high and
        # p e^(-l) = p_low e^(-l_low) + p_high e^(-l_high).
        cell = np.floor(losses.at / step)
        share = np.expm1(cell * step - losses.at) / math.expm1(-step)
        cells = np.concatenate((cell, cell + 1))
        masses = np.concatenate((losses.masses * (1 - share), losses.masses * share))
        on_grid = Losses(cells * step, masses, losses.lost)
        log, mean, spread = _moments(on_grid, tilt)
        tilted = np.zeros(_SIZE)
        np.add.at(tilted, cells.astype(np.int64) % _SIZE, masses * np.exp(tilt * on_grid.at - log))
        # The sum of T by FFT, around its mean. Mass below the grid comes back above it, where it
        # only adds; mass above is bounded by a steeper tilt.
        summed: Floats = np.fft.irfft(np.fft.rfft(tilted) ** answers, _SIZE)
        first = round(answers * mean / step) - _SIZE // 2
        at: Floats = step * np.arange(first, first + _SIZE, dtype=np.float64)
        top = float(at[-1])
        steeper = (tilt + more / max(wide, 1e-300) for more in (2.0, 4.0, 6.0, 8.0, 11.0, _SPREAD))
        beyond = min(
            answers * _moments(on_grid, exponent)[0] - exponent * top for exponent in steeper
        )
        return cls(
            at,
            np.maximum(np.roll(summed, -(first % _SIZE)), 0.0).astype(np.float64),
            tilt,
            answers * log,
            math.exp(min(0.0, beyond)),
        )

    def epsilon(self, delta: float, most: float) -> float:
        """Return the least epsilon at ``delta``, or ``most``, which holds."""
        # Out of the tilt again: probabilities. Rounding noise that grows with it only adds.
        real = self.masses * np.exp(np.minimum(self.log - self.tilt * self.at, _MOST_EXPONENT))
        if self._delta(real, 0.0) <= delta:
            return 0.0
        # Where sums over all above a point serve, they say where to look; the sum itself decides.
        near = self._near(real, delta, most)
        for away in _AWAY:
            if near is not None and near * (1 + away) < most:
                candidate = near * (1 + away)
                if self._delta(real, candidate) <= delta:
                    return candidate
        low, high = 0.0, most
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if self._delta(real, middle) <= delta else (middle, high)
        return high

    def _near(self, real: Floats, delta: float, most: float) -> float | None:
        """Return an epsilon at which delta is about so large; None where digits do not suffice."""
        first = float(self.at[0])
        if float(self.at[-1]) - first > _MOST_SPAN:
            return None
        above = np.cumsum(real[::-1])[::-1]
        weighed = np.cumsum((real * np.exp(first - self.at))[::-1])[::-1]

        def small(epsilon: float) -> bool:
            at = int(np.searchsorted(self.at, epsilon, side="right"))
            if at == len(self.at):
                return self.outside <= delta
            inner = float(above[at] - math.exp(min(epsilon - first, _MOST_SPAN)) * weighed[at])
            return self.outside + inner * (1 + _ROUNDING) <= delta

        low, high = 0.0, most
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if small(middle) else (middle, high)
        return high

    def _delta(self, real: Floats, epsilon: float) -> float:
        """Return E[(1 - e^(epsilon - loss))+], never too small."""
        first = int(np.searchsorted(self.at, epsilon, side="right"))
        inner = float(real[first:] @ -np.expm1(epsilon - self.at[first:]))
        return self.outside + inner * (1 + _ROUNDING)
