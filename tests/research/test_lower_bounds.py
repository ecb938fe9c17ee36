"""A lower bound on epsilon: below the truth as often as it says, and near it with many scores."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from ragwitness.core.errors import InputError
from ragwitness.privacy.gaussian import epsilon_at
from research.lower_bounds import epsilon_clopper_pearson

DELTA = 1e-5


def worlds(mu: float, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(mu, 1, n), rng.normal(0, 1, n)


@pytest.mark.parametrize(("mu", "published"), [(0.294, 0.598), (1.176, 2.81)])
def test_power_is_that_of_the_table(mu: float, published: float) -> None:
    """Research, section 8, 10^5 scores of each world."""
    found = [epsilon_clopper_pearson(*worlds(mu, 100_000, seed), DELTA).value for seed in range(2)]
    assert np.mean(found) == pytest.approx(published, rel=0.2)
    assert max(found) < epsilon_at(DELTA, mu)


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.0, 1.0])
def test_the_bound_exceeds_the_truth_no_more_often_than_it_says(mu: float) -> None:
    runs, truth = 100, epsilon_at(DELTA, mu)
    over = sum(
        epsilon_clopper_pearson(*worlds(mu, 400, seed), DELTA, confidence=0.9).value > truth
        for seed in range(runs)
    )
    assert over <= binom.ppf(0.999, runs, 0.1)


def test_direction_and_threshold_come_from_the_other_half() -> None:
    inside, outside = worlds(2.0, 4000, 1)
    high = epsilon_clopper_pearson(inside, outside, DELTA, seed=3)
    low = epsilon_clopper_pearson(-inside, -outside, DELTA, seed=3)
    assert high.value == pytest.approx(low.value, abs=0.3)
    assert high.value > 1
    assert high.n == 4000


def test_separated_worlds_are_limited_by_their_number() -> None:
    found = epsilon_clopper_pearson(np.ones(2000), np.zeros(2000), DELTA)
    limit = 1 - 0.025 ** (1 / 1000)  # none of 1,000
    assert found.value == pytest.approx(math.log((0.025 ** (1 / 1000) - DELTA) / limit), rel=1e-9)


@pytest.mark.parametrize(
    ("inside", "delta", "confidence", "says"),
    [
        ([1, 2, 3], DELTA, 0.95, "4 scores .* not 3"),
        ([1, 2, 3, math.nan], DELTA, 0.95, "finite"),
        ([1] * 9, 1.5, 0.95, "delta"),
        ([1] * 9, DELTA, 1, "confidence"),
    ],
)
def test_values_outside_their_range_are_named(inside, delta, confidence, says) -> None:
    with pytest.raises(InputError, match=says):
        epsilon_clopper_pearson(inside, [1, 2, 3, 4], delta, confidence=confidence)
