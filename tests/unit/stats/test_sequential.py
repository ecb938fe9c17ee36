"""Bets on labels and the permutation test, against literal definitions and every arrangement."""

import itertools
import math
import random

import numpy as np
import pytest

from ragwitness.core.errors import InputError
from ragwitness.stats.p_values import LabelBets


def _paths(order, *, alpha=0.05):
    """Bets on all documents of an order, as (score, label), to its end."""
    ours = sum(label for _, label in order)
    bets = LabelBets(ours, len(order) - ours, alpha=alpha)
    for score, mine in order:
        bets.add(score, mine)
    return bets


def _order(mine, known, seed=0):
    """Scores of both kinds with their labels, in one random order."""
    order = [(score, True) for score in mine] + [(score, False) for score in known]
    random.Random(seed).shuffle(order)
    return order


def _drawn(n, mean=0.0, seed=1):
    rng = random.Random(seed)
    return [rng.gauss(mean, 1) for _ in range(n)]


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
        found = _paths([(score, at in chosen) for at, score in enumerate(scores)])
        paths.append([math.exp(value) for value in found.path])
    assert np.mean(paths, axis=0) == pytest.approx(np.ones(len(paths[0])))


def test_high_scores_of_ours_pay_and_low_ones_cost() -> None:
    labels = [False, True] * 20
    paid = _paths([(float(mine), mine) for mine in labels]).path
    lost = _paths([(-float(mine), mine) for mine in labels]).path
    assert paid[-1] > math.log(20) > 0 > lost[-1]
    # Equal scores say nothing.
    assert _paths([(1.0, mine) for mine in labels]).path == pytest.approx([0.0] * 40)


def test_the_first_bets_are_literal() -> None:
    """1 known at 0, then ours at 1: p in (0, 1/2], density averaged over it; chance 2 of 3."""
    kappas = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    bets = LabelBets(2, 2)
    bets.add(0.0, False)
    bets.add(1.0, True)
    factors = [2 * 0.5**k / (2 / 3 * 2 * 0.5**k + 1 / 3) for k in kappas]
    assert bets.path == pytest.approx([0.0, math.log(np.mean(factors))])


@pytest.mark.parametrize("known", [40, 100, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["none", "rising", "at once", "a while"])
def test_the_level_holds_under_any_drift(known: int, kind: str) -> None:
    """2,000 collections that nobody holds, in all cells; more known ones sharpen no drift."""
    rng, decided, rounds = np.random.default_rng(known), 0, 170
    for at in range(rounds):
        size, when = (0.2, 0.5, 1.0)[at % 3], np.arange(60 + known)
        first = rng.integers(len(when))
        drift = {
            "none": 0.0 * when,
            "rising": size * when / len(when),
            "at once": size * (when >= first),
            "a while": 4.0 * ((when >= first) & (when < first + 8)),
        }[kind]
        labels = rng.permutation(np.repeat([True, False], [60, known]))
        scores = rng.normal(size=len(when)) + drift
        decided += _paths(list(zip(scores.tolist(), labels.tolist(), strict=True))).decided
    assert decided <= 17  # more with probability .003 at .05


def test_a_drift_costs_little_power() -> None:
    found = 0
    for seed in range(20):
        order = _order(_drawn(60, 1.5, seed=seed), _drawn(100, seed=1000 + seed), seed)
        found += _paths(
            [(score + at / 160, mine) for at, (score, mine) in enumerate(order)]
        ).decided
    assert found >= 18


def test_what_was_reached_once_stays_decided() -> None:
    order = [(0.0, False), (1.0, True)] * 5 + [(0.5, False), (0.1, True)] * 9
    found = _paths(order, alpha=0.3)
    assert found.decided
    assert found.path[-1] < -math.log(0.3) < found.best
    assert math.isfinite(_paths(_order([1.0] * 500, [0.0] * 500), alpha=1e-100).path[-1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LabelBets(1, 1).add(math.nan, True), "finite"),
        (lambda: LabelBets(1, 1, alpha=0.0), "alpha"),
    ],
)
def test_unusable_numbers_are_refused(call, message) -> None:
    with pytest.raises(InputError, match=message):
        call()
