"""The settings of a release besides index, query and key: one value, one hash."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

from ragwitness.core.errors import InputError
from ragwitness.privacy.gaussian import epsilon_at
from ragwitness.privacy.ranges import Relation, positive
from ragwitness.privacy.sampler import EXACT_SAMPLER, as_variance, variance_of
from ragwitness.privacy.streams import canonical
from ragwitness.privacy.table import (
    MOST_VARIANCE,
    TABLE_SAMPLER,
    check_table,
    gaussian_table,
)

Sampler: TypeAlias = Literal["table", "exact"]

MOST_SCALE = 1 << 12
"""Largest norm of an integer embedding: products of two stay exact in 32-bit floats."""

_FORMAT = "ragwitness/noise-then-select/v1"
_LEAST_VARIANCE = 64  # sigma 8
_SMOOTHING = 4
_STEPS = 256  # of the score grid within one sigma, where there is a choice
_FEWEST = 8  # of the score grid from 0 to a perfect match


@dataclass(frozen=True, slots=True)
class Mechanism:
    """Noise-then-select over integers, M(v) = TopK(s + noise) (eq. 2.1).

    A score is the inner product of two integer vectors of norm at most ``scale``, shifted right
    by ``shift`` bits (a grid, rounded down) and clipped to ``low`` … ``high``. Each slot gets its
    own discrete Gaussian noise before anything is compared. An empty slot is a row of zeros and
    takes part like any other: neither the result nor its time tells how many are full.

    Attributes:
        dimension: Dimension of the vectors.
        capacity: Slots, empty ones included.
        top: Slots returned, K.
        variance: Variance of the noise in grid steps, sigma²; at least 64.
        shift: Binary digits of an inner product that a grid step drops.
        low: Least score in grid steps; None for the least there can be.
        high: Highest score; None for the highest there can be.
        scale: Bound on the norm of the integer vectors.
        sampler: ``"table"``, or ``"exact"``, some hundred times slower.

    Raises:
        InputError: A value is outside its range; the message names it.
    """

    dimension: int
    capacity: int
    top: int
    variance: Fraction | int
    shift: int
    low: int | None = None
    high: int | None = None
    scale: int = MOST_SCALE
    sampler: Sampler = "table"

    def __post_init__(self) -> None:
        _within("dimension", self.dimension, 1, 1 << 20)
        _within("capacity", self.capacity, 1, 1 << 32)
        _within("top", self.top, 1, self.capacity)
        _within("scale", self.scale, 2, MOST_SCALE)
        _within("shift", self.shift, 0, (self.scale**2).bit_length() - 1)
        least, highest = self._reach()
        _within("low", self.bounds[0], least, highest - 1)
        _within("high", self.bounds[1], self.bounds[0] + 1, highest)
        if as_variance(self.variance) < _LEAST_VARIANCE:
            raise InputError(
                f"Noise with a variance of {float(self.variance):g} grid steps is too coarse:"
                f" its accounting needs {_LEAST_VARIANCE} or more.",
                "Use a finer score grid (a smaller shift), or more noise.",
            )
        # Policies and databases of 0.3.0 may hold it; a name alone would not say why it is refused.
        if self.sampler.startswith("coins:"):
            raise InputError(
                'This noise is proved without being opened (noise = "proved"), which was removed'
                " after 0.3.0.",
                "Use ragwitness 0.3.0 for it.",
            )
        if self.sampler not in get_args(Sampler):
            raise InputError(f"There is no sampler {self.sampler!r}.", "Use 'table' or 'exact'.")
        if self.sampler == "table":
            check_table(self.variance)

    @property
    def bounds(self) -> tuple[int, int]:
        """Least and highest score, in grid steps."""
        least, highest = self._reach()
        low = least if self.low is None else self.low
        return low, highest if self.high is None else self.high

    @property
    def empty_score(self) -> int:
        """Score of an empty slot before the noise, in grid steps: that of a row of zeros."""
        low, high = self.bounds
        return min(max(0, low), high)

    @property
    def worth(self) -> float:
        """Chance that a perfect match in a full index of others that score 0 is returned.

        By lot it would be returned with chance K/n. The noise is taken as a Gaussian.
        """
        from scipy.stats import norm

        gap = self.bounds[1] - self.empty_score
        by_lot = norm.isf(self.top / self.capacity)
        return float(norm.cdf(gap / math.sqrt(self.variance) - by_lot))

    def sensitivity(self, relation: Relation) -> int:
        """Return the most by which the scores of neighbouring indexes differ, in grid steps.

        Neighbours differ in one slot, and a slot has one score, so that the L2 norm of the
        difference is its size.

        Args:
            relation: ``"replace"``: another document in the slot (2 for unclipped cosines);
                ``"add-remove"``: a document, or an empty slot (1 for unclipped cosines).
        """
        # Only one slot differs between neighbours, and the slot has one score.
        low, high = self.bounds
        if relation not in get_args(Relation):
            raise InputError(
                f"There is no relation between neighbours named {relation!r}.",
                "Use 'add-remove' or 'replace'.",
            )
        if relation == "replace":
            return high - low
        return max(high - self.empty_score, self.empty_score - low)

    @property
    def gaussian_sigma(self) -> float:
        """Standard deviation of a continuous Gaussian that is nowhere more private, in grid steps.

        The square root of sigma² - 4, rounded down: rounding that Gaussian's answer at random
        with a discrete Gaussian of variance 4 gives this mechanism's, up to a factor
        1 ± 2⁻¹¹⁰ (``docs/design/mechanism.md``). All results on the continuous one, exact
        composition included, hold for this one.
        """
        return math.nextafter(math.sqrt(float(Fraction(self.variance) - _SMOOTHING)), 0.0)

    def extra_delta(self, epsilon: float, releases: int) -> float:
        """Return what the sampler adds to delta: 0 for the exact one.

        Args:
            epsilon: Epsilon of the guarantee.
            releases: Answers it covers.

        Raises:
            InputError: ``epsilon`` or ``releases`` is negative.
        """
        if self.sampler != "table":
            return 0.0
        return gaussian_table(self.variance).extra_delta(epsilon, releases)

    def epsilon_at(self, delta: float, mu: float, releases: int) -> float | None:
        """Return epsilon at ``delta`` of answers whose Gaussian privacy is ``mu``.

        Args:
            delta: Failure probability of the guarantee.
            mu: Gaussian privacy of all of them together.
            releases: Answers it covers.

        Returns:
            None where the table alone fails more often than ``delta``: from an epsilon of about 60
            on, none is shown to hold.
        """
        # The table's distance from the exact noise, times e^epsilon, is taken off delta first. It
        # is taken for an epsilon that is larger by 1, and what is left gives a smaller one.
        first = epsilon_at(delta, mu)
        remaining = delta - self.extra_delta(first + 1, releases)
        if remaining <= 0:
            return None
        epsilon = epsilon_at(remaining, mu)
        return epsilon if epsilon <= first + 1 else None

    @property
    @lru_cache(maxsize=256)  # noqa: B019  # of values alone, and every answer's noise names it
    def digest(self) -> str:
        """SHA-256, in hex, of the canonical JSON of everything here and the sampler's version."""
        low, high = self.bounds
        table = self.sampler == "table"
        names = ("capacity", "dimension", "scale", "shift", "top")
        numbers = {name: getattr(self, name) for name in names} | {"high": high, "low": low}
        fields = {name: str(value) for name, value in numbers.items()} | {
            "format": _FORMAT,
            "sampler": TABLE_SAMPLER if table else EXACT_SAMPLER,
            "table": gaussian_table(self.variance).digest if table else "",
            "variance": str(Fraction(self.variance)),
        }
        return hashlib.sha256(canonical(fields)).hexdigest()

    def _reach(self) -> tuple[int, int]:
        """Least and highest inner product of two vectors within the norm (Cauchy-Schwarz)."""
        return -(self.scale**2) >> self.shift, self.scale**2 >> self.shift


def mechanism_for(
    dimension: int,
    capacity: int,
    top: int,
    sigma: float,
    *,
    clip: tuple[float, float] | None = None,
    sampler: Sampler = "table",
) -> Mechanism:
    """Return a mechanism for noise that is given on the scale of cosines.

    The grid is the coarsest power of two with 256 steps in one sigma, and 8 from 0 to 1 or, where
    they are closer, between the bounds.

    Args:
        dimension: Dimension of the vectors.
        capacity: Slots, empty ones included.
        top: Slots returned.
        sigma: Standard deviation of the noise; 1 is the score of a perfect match. Rounded up.
        clip: Bounds of the scores, rounded to the grid; none by default.
        sampler: See :class:`Mechanism`; noise that no table holds is drawn exactly.

    Raises:
        InputError: A value is outside its range.
    """
    sigma = positive("sigma", sigma)
    # 256 grid steps in one sigma, at least 8 from 0 to 1 or between bounds, as a power of two.
    coarsest = (MOST_SCALE**2).bit_length() - 1
    width = 1.0 if clip is None or not 0 < clip[1] - clip[0] < 1 else clip[1] - clip[0]
    resolution = max(_STEPS / sigma, _FEWEST / width)
    bits = coarsest if resolution >= MOST_SCALE**2 else math.ceil(math.log2(resolution))
    steps = 1 << bits
    low, high = (None, None) if clip is None else (_step(clip[0], steps), _step(clip[1], steps))
    variance = variance_of(sigma * steps)  # a power of two: exact
    if as_variance(variance) > MOST_VARIANCE:
        sampler = "exact"
    return Mechanism(
        dimension, capacity, top, variance, coarsest - bits, low=low, high=high, sampler=sampler
    )


def provable_mechanism(
    dimension: int, capacity: int, top: int, sigma: float, scale: int
) -> Mechanism:
    """Return a mechanism whose selections can be proved: no bit of a score is dropped or clipped.

    Args:
        dimension: Dimension of the vectors.
        capacity: Slots, empty ones included.
        top: Slots returned.
        sigma: Standard deviation of the noise; 1 is the score of a perfect match. Rounded up.
        scale: Bound on the norm of the integer vectors; the grid has its square of steps.

    Returns:
        It draws from a table where one holds the noise, and exactly otherwise.

    Raises:
        InputError: A value is outside its range.
    """
    _within("scale", scale, 2, MOST_SCALE)
    # No shift and no clipping: z is linear in the rows, as the selection proof needs it.
    variance = variance_of(positive("sigma", sigma) * scale**2)
    sampler: Sampler = "table" if as_variance(variance) <= MOST_VARIANCE else "exact"
    return Mechanism(dimension, capacity, top, variance, 0, scale=scale, sampler=sampler)


def _step(score: float, steps: int) -> int:
    if not math.isfinite(score):
        raise InputError(f"Scores are clipped to finite bounds, not {score}.")
    return round(score * steps)


def _within(name: str, value: int, least: int, most: int) -> None:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if not is_integer or not least <= value <= most:
        raise InputError(
            f"The mechanism's {name} must be a whole number from {least} to {most}, not {value!r}."
        )
