"""Bets on labels and the permutation test, against literal definitions and every arrangement."""

import itertools
import math
import random

import numpy as np
import pytest

from ragwitness.errors import InputError
from ragwitness.stats.sequential import bet_on_labels, permutation_test


@pytest.mark.parametrize(
    "scores",
    [
        [3.0, 1.0, 4.0, 1.5, 9.0, 2.6, 5.0, 3.5],
        [0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0],  # yes or no
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],  # nothing but drift
        [2.0, None, 2.0, 7.0, None, 1.0, 8.0, 8.0],  # some without a score
    ],
)
@pytest.mark.parametrize("ours", [1, 3, 7])
def test_the_mean_over_all_arrangements_of_labels_is_one_whatever_the_scores(scores, ours) -> None:
    paths = []
    for chosen in itertools.combinations(range(len(scores)), ours):
        labels = [at in chosen for at in range(len(scores))]
        arrivals = zip(scores, labels, strict=True)
        last, path = 0.0, []
        for value in bet_on_labels(arrivals, ours, len(scores) - ours):
            last = last if value is None else value
            path.append(math.exp(last))
        paths.append(path)
    assert np.mean(paths, axis=0) == pytest.approx(np.ones(len(scores)))


def test_high_scores_of_ours_pay_and_low_ones_cost() -> None:
    labels = [False, True] * 20
    paid = list(bet_on_labels(((float(mine), mine) for mine in labels), 20, 20))
    lost = list(bet_on_labels(((-float(mine), mine) for mine in labels), 20, 20))
    assert paid[-1] > math.log(20) > 0 > lost[-1]
    nothing = list(bet_on_labels(((1.0, mine) for mine in labels), 20, 20))
    assert nothing == pytest.approx([0.0] * 40)  # equal scores say nothing


def test_the_first_bets_are_literal() -> None:
    """1 known at 0, then ours at 1: p in (0, 1/2], density averaged over it; chance 2 of 3."""
    kappas = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    found = list(bet_on_labels([(0.0, False), (1.0, True)], 2, 2))
    factors = [2 * 0.5**k / (2 / 3 * 2 * 0.5**k + 1 / 3) for k in kappas]
    assert found == pytest.approx([0.0, math.log(np.mean(factors))])


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
        (lambda: list(bet_on_labels([(math.nan, True)], 1, 1)), "finite"),
        (lambda: permutation_test([], [1.0], rng=random.Random(0)), "both groups"),
        (lambda: permutation_test([1.0], [math.nan], rng=random.Random(0)), "finite"),
        (lambda: permutation_test([1.0], [1.0], rng=random.Random(0), draws=0), "draws"),
    ],
)
def test_unusable_numbers_are_refused(call, message) -> None:
    with pytest.raises(InputError, match=message):
        call()
