"""The bound of one run: below the truth as often as it says, and the literal formula."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from ragwitness.core.errors import InputError
from research.lower_bounds import epsilon_one_run


def correct_guesses(scores, planted, guesses: int) -> int:
    """Return how many of the clearest guesses about canaries are right.

    The higher half of ``guesses`` goes to the highest scores as planted, the lower to the lowest
    as left out.

    Args:
        scores: Of each canary, higher for planted, shape (canaries,).
        planted: Whether it was, shape (canaries,).
        guesses: To be made, fixed before the scores are seen.

    Raises:
        InputError: Shapes differ, a score is not finite, or more guesses than canaries.
    """
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(planted, dtype=np.bool_)
    if values.shape != truth.shape or values.ndim != 1 or not np.isfinite(values).all():
        raise InputError("Canaries need one finite score and one coin each.")
    if not 1 <= guesses <= values.size:
        raise InputError(f"{guesses} guesses about {values.size} canaries.")
    order = np.argsort(values, kind="stable")
    # The clearest guesses stand at both ends; the canaries between them are abstained from.
    low, high = order[: guesses // 2], order[values.size - (guesses - guesses // 2) :]
    return int((~truth[low]).sum() + truth[high].sum())


def test_one_run_is_a_binomial_test() -> None:
    found = epsilon_one_run(80, 100).value
    chance = math.exp(found) / (1 + math.exp(found))
    assert binom.sf(79, 100, chance) == pytest.approx(0.05, rel=1e-6)
    assert epsilon_one_run(55, 100).value == 0.0
    assert epsilon_one_run(100, 100).value == pytest.approx(3.493, abs=1e-3)


def test_one_run_p_value_is_the_literal_formula() -> None:
    found = epsilon_one_run(9, 12, confidence=0.8).value
    chance = 1 / (1 + math.exp(-found))
    mass = [math.comb(12, w) * chance**w * (1 - chance) ** (12 - w) for w in range(13)]
    assert sum(mass[9:]) == pytest.approx(0.2, rel=1e-6)


def test_one_run_with_planted_documents_stays_below_the_truth_as_often_as_it_says() -> None:
    """Laplace noise of scale 1 / 1.5 on each coin is exactly epsilon-private, epsilon = 1.5."""
    truth, canaries, runs = 1.5, 1000, 200
    rng = np.random.default_rng(7)
    found = []
    for _ in range(runs):
        planted = rng.random(canaries) < 0.5
        scores = planted + rng.laplace(0, 1 / truth, canaries)
        right = correct_guesses(scores, planted, 100)
        found.append(epsilon_one_run(right, 100, confidence=0.9).value)
    assert np.sum(np.array(found) > truth) <= binom.ppf(0.999, runs, 0.1)
    assert np.mean(found) > 0.7


def test_guesses_are_the_clearest_ones() -> None:
    scores = [5.0, -4.0, 0.1, 3.0, -3.0]
    assert correct_guesses(scores, [True, False, True, True, False], 4) == 4
    assert correct_guesses(scores, [False, True, True, True, False], 2) == 0
    assert correct_guesses(scores, [True, False, False, False, True], 3) == 2


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: epsilon_one_run(11, 10), "not 11 and 10"),
        (lambda: epsilon_one_run(0, 0), "not 0 and 0"),
        (lambda: correct_guesses([1.0, 2.0], [True], 1), "one coin each"),
        (lambda: correct_guesses([1.0], [True], 2), "2 guesses about 1 canaries"),
    ],
)
def test_values_outside_their_range_are_named(call, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=said):
        call()
