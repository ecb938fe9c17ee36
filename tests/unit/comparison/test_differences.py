"""Paired differences: against closed forms and simulated truth."""

import numpy as np
import pytest

from ragwitness.comparison.differences import at_equal_length, paired_difference
from ragwitness.core.errors import InputError


def _linear(n: int = 400, effect: float = 0.1, slope: float = 0.2, seed: int = 1):
    """Scores that grow with log length, and a true effect at equal length."""
    rng = np.random.default_rng(seed)
    ours, theirs = rng.lognormal(3.5, 0.4, n), rng.lognormal(3.0, 0.4, n)
    second = 0.3 + rng.normal(0, 0.05, n)
    gap = np.log(ours) - np.log(theirs)
    return second + effect + slope * gap + rng.normal(0, 0.05, n), second, (ours, theirs)


def test_the_difference_is_paired() -> None:
    rng = np.random.default_rng(0)
    level = rng.uniform(0, 1, 300)
    first, second = level + 0.01 + rng.normal(0, 0.01, 300), level
    rate = paired_difference(first, second)
    assert rate.value == pytest.approx((first - second).mean())
    half = 1.96 * (first - second).std() / 300**0.5
    assert rate.low == pytest.approx(rate.value - half, abs=half / 5)
    assert rate.high == pytest.approx(rate.value + half, abs=half / 5)
    assert rate.low > 0  # the unpaired interval is twenty times as wide


def test_questions_without_a_score_are_left_out_of_both() -> None:
    first, second = np.array([0.5, np.nan, 0.9, 0.4]), np.array([0.4, 0.1, np.nan, 0.2])
    rate = paired_difference(first, second)
    assert rate.n == 2
    assert rate.value == pytest.approx(0.15)


def test_equal_differences_are_no_certainty() -> None:
    rate = paired_difference(np.ones(10), np.zeros(10))
    assert rate.low < 0.7
    assert rate.value == rate.high == 1  # scores are within [0, 1]
    same = paired_difference(np.zeros(10), np.zeros(10))
    assert same.low < -0.3
    assert same.high > 0.3


def test_length_is_held_equal() -> None:
    first, second, lengths = _linear()
    plain = paired_difference(first, second)
    held, near = at_equal_length(first, second, lengths)
    assert plain.low > 0.15  # mostly length
    assert held.low < 0.1 < held.high
    gaps = np.log(lengths[0]) - np.log(lengths[1])
    _, intercept = np.polyfit(gaps, first - second, 1)
    assert held.value == pytest.approx(intercept)
    assert near == int((np.abs(gaps) <= np.log(1.25)).sum())


def test_the_interval_covers_nineteen_times_of_twenty() -> None:
    held = [at_equal_length(*_linear(n=60, seed=seed))[0] for seed in range(60)]
    assert sum(one.low <= 0.1 <= one.high for one in held) >= 52


def test_equal_lengths_leave_the_plain_difference() -> None:
    first, second = np.array([0.5, 0.7, 0.4]), np.array([0.4, 0.5, 0.2])
    lengths = (np.array([5.0, 0.0, 9.0]), np.array([5.0, 1.0, 9.0]))
    held, _ = at_equal_length(first, second, lengths)
    assert held.value == pytest.approx(paired_difference(first, second).value)


def test_what_cannot_be_paired_is_refused() -> None:
    with pytest.raises(InputError, match="same questions"):
        paired_difference(np.zeros(3), np.zeros(2))
    with pytest.raises(InputError, match="No question"):
        paired_difference(np.full(3, np.nan), np.zeros(3))
    with pytest.raises(InputError, match="one length per score"):
        at_equal_length(np.zeros(3), np.zeros(3), (np.ones(2), np.ones(2)))
