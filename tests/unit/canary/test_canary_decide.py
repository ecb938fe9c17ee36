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
    log_evidence,
    outcomes_of,
    rank_evidence,
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


@pytest.mark.slow
def test_evidence_crosses_its_level_in_at_most_alpha_of_runs_at_any_time() -> None:
    """Slot after slot and release after release, the releases sharing their draws."""
    rng = np.random.default_rng(30)
    m, slots, releases = 32, 6, 4
    crossed = dict.fromkeys((0.05, 0.1), 0)
    for _ in range(DRAWS):
        chosen = rng.integers(m, size=slots)
        base = rng.normal(size=(slots, m))
        highest = -math.inf
        seen: list[list[tuple[int, int]]] = []
        for _ in range(releases):
            # Later releases are much like the first: one lucky draw stays lucky.
            scores = base + 0.1 * rng.normal(size=(slots, m))
            seen.append([])
            for slot in range(slots):
                rank = rank_of(SlotScores(scores[slot], int(chosen[slot])))
                seen[-1].append((rank, m))
                highest = max(highest, log_evidence(seen, 0))
        for alpha in crossed:
            crossed[alpha] += highest >= math.log(1 / alpha)
    for alpha, count in crossed.items():
        assert count <= binom.ppf(0.999, DRAWS, alpha), (alpha, count)


def test_the_bet_on_a_rank_has_mean_one_and_its_known_value() -> None:
    for m in (2, 7, 128, 1000):
        bets = [rank_evidence(r, m) for r in range(1, m + 1)]
        assert math.isclose(math.fsum(bets) / m, 1.0, rel_tol=1e-12)
        assert bets == sorted(bets, reverse=True)
    assert round(rank_evidence(1, 128), 1) == 23.6  # as worked out beforehand
    for rank in (0, 129):
        with pytest.raises(InputError):
            rank_evidence(rank, 128)


def test_evidence_multiplies_over_slots_and_averages_over_releases() -> None:
    first, second = rank_evidence(1, 8), rank_evidence(5, 8)
    product = log_evidence([[(1, 8), (5, 8)]], 1)
    assert math.isclose(product, math.log(first * second))
    both = log_evidence([[(1, 8)], [(5, 8)]], 2)
    assert math.isclose(math.exp(both), (first + second) / 2)
    open_end = log_evidence([[(1, 8)], [(5, 8)]], 0)
    assert math.isclose(math.exp(open_end), first / 2 + second / 6)
    # One more release than announced adds nothing, nor does it harm.
    assert log_evidence([[(1, 8)], [(1, 8)]], 1) == log_evidence([[(1, 8)]], 1)
    assert log_evidence([], 1) == -math.inf
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
