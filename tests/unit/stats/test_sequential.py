"""Test martingales and the permutation test, against literal definitions and simulation."""

import itertools
import math
import random

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom

from ragwitness.errors import InputError
from ragwitness.stats.sequential import (
    bet,
    log_mixture,
    online_p_values,
    permutation_test,
)


def log_martingale(p_values) -> np.ndarray:
    """Return ln of the martingale after each p-value."""
    return np.array([value for _, value in bet(p_values)])


@pytest.mark.parametrize("p_values", [[0.5], [0.01, 0.2, 0.9], [1.0, 1.0], [1e-5] * 7, [0.3] * 60])
def test_the_mixture_is_the_integral_of_the_whole_product(p_values) -> None:
    def product(kappa: float) -> float:
        return math.prod(kappa * p ** (kappa - 1) for p in p_values)

    expected, _ = quad(product, 0, 1, epsabs=0, epsrel=1e-11)
    assert math.exp(log_martingale(p_values)[-1]) == pytest.approx(expected, rel=1e-8)


def test_the_mixture_neither_overflows_nor_loses_digits() -> None:
    # With S large it grows like the best kappa's product, t ln(t / S) + S - t, up to a log.
    t, s = 1000, 20_000.0
    best = t * math.log(t / s) + s - t
    assert best - math.log(t) * 2 < log_mixture(s, t) < best
    assert log_mixture(1e-9, 4) == pytest.approx(-math.log(5))


def test_each_bet_comes_with_its_p_value() -> None:
    p_values = [0.2, 0.01, 0.7]
    assert [p for p, _ in bet(iter(p_values))] == p_values
    assert log_martingale([]).shape == (0,)


def _literal_online(scores, calibration):
    out = []
    for t, score in enumerate(scores):
        bag = [*calibration, *scores[:t]]
        out.append((1 + sum(other >= score for other in bag)) / (len(bag) + 1))
    return out


def test_online_p_values_are_ranks_among_all_that_came_before() -> None:
    rng = random.Random(3)
    scores = [rng.choice([0.0, 0.5, 1.0, rng.random()]) for _ in range(40)]
    calibration = [rng.choice([0.0, 0.5, rng.random()]) for _ in range(15)]
    assert list(online_p_values(scores, calibration)) == _literal_online(scores, calibration)


def test_online_p_values_are_independent_under_the_null() -> None:
    """Over all orders of exchangeable scores each pair of p-values is equally frequent."""
    pairs = []
    for order in itertools.permutations(range(5)):
        first, second = online_p_values(order[3:], order[:3])
        pairs.append((first, second))
    counts = {pair: pairs.count(pair) for pair in pairs}
    assert len(counts) == 4 * 5
    assert set(counts.values()) == {math.factorial(5) // 20}


def _null_path(rng, steps, ties):
    def draw() -> float:
        value = rng.random()
        return round(value, 1) if ties else value

    return list(online_p_values((draw() for _ in range(steps)), [draw() for _ in range(20)]))


def test_under_the_null_the_level_is_crossed_no_more_often_than_alpha() -> None:
    rng, runs, steps, alpha = random.Random("online"), 400, 20, 0.1
    crossed, ends = 0, []
    for run in range(runs):
        path = log_martingale(_null_path(rng, steps, ties=run % 2 == 0))
        crossed += path.max() >= -math.log(alpha)
        # Clipped at a constant, the mean of a martingale below one stays below one.
        ends.append(min(math.exp(path[4]), 50.0))
    assert crossed <= binom.ppf(0.9999, runs, alpha)
    error = np.std(ends, ddof=1) / math.sqrt(runs)
    assert np.mean(ends) <= 1 + 4 * error


def test_the_mean_of_each_factor_is_at_most_one_on_a_discrete_null() -> None:
    for n in (1, 4, 19, 200):
        grid = np.arange(1, n + 2) / (n + 1)
        assert np.mean([math.exp(log_mixture(-math.log(p), 1)) for p in grid]) <= 1


def _every_arrangement(first, second):
    pooled = [*first, *second]
    observed = np.mean(first) - np.mean(second)
    hits = total = 0
    for chosen in itertools.combinations(range(len(pooled)), len(first)):
        inside = [pooled[i] for i in chosen]
        outside = [pooled[i] for i in range(len(pooled)) if i not in chosen]
        hits += np.mean(inside) - np.mean(outside) >= observed - 1e-9
        total += 1
    return hits / total, total


@pytest.mark.parametrize("seed", range(6))
def test_small_permutation_tests_count_every_arrangement(seed) -> None:
    rng = random.Random(seed)
    first = [rng.choice([0.1, 0.2, 0.3, rng.random()]) for _ in range(rng.randint(1, 5))]
    second = [rng.choice([0.1, 0.2, 0.3, rng.random()]) for _ in range(rng.randint(1, 6))]
    found = permutation_test(first, second, rng=rng)
    p_value, total = _every_arrangement(first, second)
    assert found.exact
    assert found.arrangements == total
    assert found.p_value == pytest.approx(p_value)
    assert found.difference == pytest.approx(np.mean(first) - np.mean(second))


def test_large_permutation_tests_draw_and_add_the_observed_arrangement() -> None:
    rng = random.Random(8)
    first, second = [rng.random() + 0.3 for _ in range(6)], [rng.random() for _ in range(6)]
    exact = permutation_test(first, second, rng=rng)
    drawn = permutation_test(first, second, rng=rng, draws=1500, most=10)
    assert not drawn.exact
    assert drawn.arrangements == 1501
    spread = 5 * math.sqrt(exact.p_value * (1 - exact.p_value) / 1500)
    assert abs(drawn.p_value - exact.p_value) < spread + 1 / 1501
    certain = permutation_test([9.0] * 12, [0.0] * 12, rng=rng, draws=99)
    assert certain.p_value == pytest.approx(1 / 100)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: list(online_p_values([1.0], [])), "at least one calibration"),
        (lambda: list(online_p_values([math.nan], [1.0])), "finite"),
        (lambda: list(online_p_values([1.0], [math.inf])), "finite"),
        (lambda: log_martingale([1.5]), "P-values"),
        (lambda: log_martingale([0.0]), "P-values"),
        (lambda: log_martingale([math.nan]), "P-values"),
        (lambda: permutation_test([], [1.0], rng=random.Random(0)), "both groups"),
        (lambda: permutation_test([1.0], [math.nan], rng=random.Random(0)), "finite"),
        (lambda: permutation_test([1.0], [1.0], rng=random.Random(0), draws=0), "draws"),
    ],
)
def test_unusable_numbers_are_refused(call, message) -> None:
    with pytest.raises(InputError, match=message):
        call()
