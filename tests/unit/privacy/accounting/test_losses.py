"""Exact composition against convolved probabilities, Monte Carlo, and the Gaussian's account."""

import math

import numpy as np
import pytest

from ragwitness.privacy.gaussian import epsilon_at
from ragwitness.privacy.losses import Losses, _chernoff, _Curve, loss_epsilon
from ragwitness.privacy.sampler import CoinNoise

DELTA = 1e-6


def discrete_gaussian(sigma):
    at = np.arange(-math.ceil(14 * sigma), math.ceil(14 * sigma) + 1)
    pmf = np.exp(-(at**2) / 2 / sigma**2)
    return pmf / pmf.sum()


def delta_by_all_outcomes(pmf, move, answers, epsilon):
    """delta(epsilon) as it is defined: of all answers together, outcome by outcome."""
    one, two = np.pad(pmf, (0, move)), np.pad(pmf, (move, 0))
    first, second = one, two
    for _ in range(answers - 1):
        first, second = np.outer(first, one).ravel(), np.outer(second, two).ravel()
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


@pytest.mark.parametrize("move", [1, 2, 5])
@pytest.mark.parametrize(("widths", "answers"), [((3, 3, 2), 1), ((3, 3, 3, 3), 2), ((2, 2, 2), 4)])
def test_epsilon_is_that_of_all_outcomes(widths, answers, move):
    pmf = CoinNoise(0, widths).pmf()
    losses = Losses.of(pmf, move)
    for delta in (0.3, 0.05, 0.01):
        found = loss_epsilon(losses, answers, delta)
        if found is None:
            assert delta_by_all_outcomes(pmf, move, answers, 60.0) >= delta * (1 - 1e-9)
            continue
        assert delta_by_all_outcomes(pmf, move, answers, found) <= delta  # never too small
        if found:  # nor much too large
            assert delta_by_all_outcomes(pmf, move, answers, found * 0.999 - 1e-6) > delta


@pytest.mark.parametrize(
    ("widths", "answers"), [((3,) * 12, 64), ((4,) * 12, 512), ((4,) * 8, 1024)]
)
def test_epsilon_lies_between_losses_rounded_down_and_up(widths, answers):
    """Another way to the same number: plain convolution on a fine grid, by repeated squaring."""
    losses = Losses.of(CoinNoise(0, widths).pmf(), 1)
    found = loss_epsilon(losses, answers, DELTA)
    step, size = 2.0**-13, 1 << 19

    def convolved(rounded):
        masses = np.zeros(size)
        np.add.at(masses, (rounded(losses.at / step)).astype(int) % size, losses.masses)
        total = np.fft.irfft(np.fft.rfft(masses) ** answers, size)
        at = np.fft.fftfreq(size, 1 / size) * step
        over = at > found
        return float(total[over] @ -np.expm1(found - at[over])) + losses.rest(answers)

    assert convolved(np.floor) < DELTA < convolved(np.ceil)


def test_monte_carlo_agrees():
    noise, answers, count, epsilon = CoinNoise(0, (3,) * 12), 20, 400_000, None
    losses = Losses.of(noise.pmf(), 1)
    epsilon = loss_epsilon(losses, answers, 0.01)
    rng = np.random.default_rng(5)
    log, total = np.log(noise.pmf()), np.zeros(count)
    for _ in range(answers):
        drawn = rng.integers(0, 8, (count, 12), np.uint8).sum(axis=1, dtype=np.int64)
        moved = drawn - 1  # the world in which the noise begins one lower
        inside = moved >= 0
        total += np.where(inside, log[drawn] - log[np.maximum(moved, 0)], np.inf)
    gains = np.where(total > epsilon, -np.expm1(np.minimum(epsilon - total, 0)), 0)
    error = gains.std() / math.sqrt(count)
    assert abs(gains.mean() - 0.01) < 4 * error


@pytest.mark.parametrize("answers", [1, 10, 1000, 100_000])
def test_a_discrete_gaussian_costs_what_the_gaussian_does(answers):
    sigma = 20 * math.sqrt(answers) / 10 + 20
    found = loss_epsilon(Losses.of(discrete_gaussian(sigma), 1), answers, DELTA)
    exact = epsilon_at(DELTA, math.sqrt(answers) / sigma)
    assert found == pytest.approx(exact, rel=2e-3)


def test_coins_cost_little_more_than_the_gaussian_of_their_variance():
    for widths, answers, most in (((3,) * 12, 100, 0.008), ((4,) * 12, 1000, 0.003)):
        noise = CoinNoise(0, widths)
        gaussian = epsilon_at(DELTA, math.sqrt(answers / float(noise.variance)))
        found = loss_epsilon(Losses.of(noise.pmf(), 1), answers, DELTA)
        assert 0 < found / gaussian - 1 < most


def test_more_answers_and_larger_moves_cost_more_and_a_larger_delta_less():
    pmf = CoinNoise(0, (4,) * 12).pmf()
    one = [loss_epsilon(Losses.of(pmf, move), 100, DELTA) for move in (1, 2, 3, 4)]
    two = [loss_epsilon(Losses.of(pmf, 1), count, DELTA) for count in (1, 10, 100, 1000)]
    three = [loss_epsilon(Losses.of(pmf, 1), 100, delta) for delta in (1e-3, 1e-6, 1e-12)]
    for found in (one, two, three):
        assert found == sorted(found)
        assert len(set(found)) == len(found)


def test_a_smaller_move_never_tells_more_whatever_is_asked_of_it():
    """One pair serves all moves: the curve of the largest lies above all others'."""
    pmf = CoinNoise(0, (3, 3, 2, 2)).pmf()
    for epsilon in np.linspace(0, 6, 25):
        curve = [delta_by_all_outcomes(pmf, move, 1, epsilon) for move in range(1, 6)]
        assert curve == sorted(curve)


def test_edges_that_are_reached_too_often_leave_no_epsilon():
    few = Losses.of(CoinNoise(0, (2, 2)).pmf(), 1)  # 1/16 lies at each edge
    assert loss_epsilon(few, 1, 1e-3) is None
    assert loss_epsilon(few, 1, 0.1) is not None
    assert loss_epsilon(Losses.of(CoinNoise(0, (2, 2)).pmf(), 50), 1, 0.1) is None


def test_a_sum_far_above_the_grid_is_never_taken_for_nothing():
    """36 million answers lie at 710,000: a clipped power of e once let epsilon 0 hold for them."""
    losses, answers = Losses.of(CoinNoise.parse("coins:12+2x3+12x2").pmf(), 1), 36 * 10**6
    tilt, most = _chernoff(losses, answers, 0.46)
    curve = _Curve.of(losses, answers, tilt, most)
    real = curve.masses * np.exp(np.minimum(curve.log - tilt * curve.at, 700.0))
    assert min(curve._delta(real, epsilon) for epsilon in (0.0, 10.0, 1e4, 6e5)) > 0.95
