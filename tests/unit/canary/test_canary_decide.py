"""Exactness under the null, known answers, and power where there is something to find."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, ttest_1samp

from ragwitness.canary.probe import amplification
from ragwitness.canary.rank_test import (
    SlotScores,
    draws_together,
    outcomes_of,
    rank_of,
    release_weight,
    standing,
)
from ragwitness.core.errors import InputError
from tests.support.ranks import rank_p_value

DRAWS = 2000
LEVELS = (0.01, 0.05, 0.1)


def _scores(rng: np.random.Generator, m: int, kind: int) -> np.ndarray:
    """Scores of a model that never saw the draw: smooth, lopsided, or nearly all tied."""
    if kind == 0:
        return rng.normal(size=m)
    if kind == 1:
        return np.exp(3 * rng.normal(size=m))
    return rng.integers(0, 3, size=m) / 20


def _assert_super_uniform(p_values: list[float]) -> None:
    for level in LEVELS:
        hits = sum(p <= level for p in p_values)
        # Level a is exceeded by chance in 1 of 1,000 such tests.
        assert hits <= binom.ppf(0.999, len(p_values), level), (level, hits)


@pytest.mark.parametrize("kind", range(3))
def test_the_rank_p_value_is_super_uniform_under_random_secrets(kind: int) -> None:
    rng = np.random.default_rng(kind)
    p_values = []
    for _ in range(DRAWS):
        scores = _scores(rng, 100, kind)
        p_values.append(rank_p_value(SlotScores(scores, int(rng.integers(100)))))
    _assert_super_uniform(p_values)
    if kind < 2:  # without ties it is exact, not only conservative
        hits = sum(p <= 0.05 for p in p_values)
        assert hits >= binom.ppf(0.001, DRAWS, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("kind", range(3))
def test_the_joint_redraw_is_super_uniform_under_random_secrets(kind: int) -> None:
    rng = np.random.default_rng(10 + kind)
    p_values = []
    for number in range(DRAWS):
        slots = [SlotScores(_scores(rng, 12, kind), int(rng.integers(12))) for _ in range(4)]
        p_values.append(draws_together(slots, seed=number, draws=199)[1])
    _assert_super_uniform(p_values)


def test_shares_of_the_level_add_up_to_one_over_looks_without_an_end() -> None:
    assert [release_weight(n, 2) for n in (1, 2, 3)] == [0.5, 0.5, 0.0]
    assert math.isclose(sum(release_weight(n, 0) for n in range(1, 100_001)), 1, abs_tol=2e-5)


def test_ties_count_against_the_accusation_and_six_digits_tie() -> None:
    slot = SlotScores(np.array([1.0, 2.0, 2.0, 2.0 + 1e-12, 0.0]), 1)
    assert rank_of(slot) == 3
    assert rank_p_value(slot) == 3 / 5
    assert (standing(np.full(5, 0.3)) == 0).all()
    assert draws_together([SlotScores(np.zeros(6), 2)] * 3)[1] == 1.0


def test_the_joint_redraw_agrees_with_counting_all_draws() -> None:
    rng = np.random.default_rng(4)
    slots = [SlotScores(rng.normal(size=12), int(rng.integers(6))) for _ in range(4)]
    places = [standing(one.scores) for one in slots]
    w = sum(z[one.chosen] for z, one in zip(places, slots, strict=True))
    all_draws = [sum(draw) for draw in itertools.product(*places)]
    exact = np.mean([total >= w - 1e-9 for total in all_draws])
    statistic, p_value = draws_together(slots)
    assert len(outcomes_of(slots)[0]) == 10_000
    assert math.isclose(statistic, w)
    assert abs(p_value - exact) < 4 * math.sqrt(exact * (1 - exact) / 10_000)
    assert len(outcomes_of(slots, draws=12**4)[0]) == 12**4
    assert draws_together(slots, draws=12**4)[1] == pytest.approx(exact)
    assert draws_together(slots[:1])[1] == rank_p_value(slots[0])


def test_amplification_is_the_mean_difference_in_nats_with_n_and_interval() -> None:
    rng = np.random.default_rng(6)
    clean = rng.normal(-30, 5, size=60)
    gains = rng.normal(2, 1, size=60)
    found = amplification(clean + gains, clean)
    assert math.isclose(found.value, gains.mean())
    assert found.low < found.value < found.high
    against = ttest_1samp(gains, 0).confidence_interval(0.95)  # an independent library
    assert (found.low, found.high) == pytest.approx((against.low, against.high))
    assert found.n == 60
    assert math.isnan(amplification([-1.0], [-2.0]).low)
    few = [amplification(rng.normal(size=3), np.zeros(3)) for _ in range(2000)]
    assert sum(one.low <= 0 <= one.high for one in few) >= binom.ppf(1e-4, 2000, 0.95)
    for bad in (([1.0], [1.0, 2.0]), ([], []), ([math.nan], [0.0])):
        with pytest.raises(InputError):
            amplification(*bad)
