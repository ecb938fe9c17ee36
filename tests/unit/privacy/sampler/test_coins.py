"""Noise of coins: its bits, its probabilities, its one spelling."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import chisquare

from ragwitness.core.errors import InputError
from ragwitness.privacy.sampler import (
    MOST_STEP,
    CoinNoise,
    coin_step,
    fine_bits,
)

SMALL = CoinNoise(3, (2, 2, 1))


def whole_pmf(noise):
    """P of the noise before its centre is taken off, by counting, in exact numbers."""
    found = {0: Fraction(1)}
    for value in noise.coefficients:
        new = {}
        for at, mass in found.items():
            for add in (0, value):
                new[at + add] = new.get(at + add, 0) + mass / 2
        found = new
    return found


def test_every_bit_pattern_once_gives_the_exact_distribution():
    patterns = np.arange(1 << SMALL.bits, dtype=np.uint32)[:, None]
    bits, carries = SMALL.tossed(patterns, np.zeros_like(patterns))
    values, counts = np.unique(SMALL.noise(bits) + SMALL.centre, return_counts=True)
    exact = whole_pmf(SMALL)
    assert {
        v: Fraction(c, 1 << SMALL.bits)
        for v, c in zip(values.tolist(), counts.tolist(), strict=True)
    } == (exact)
    assert not carries.any()
    mean = sum(v * m for v, m in exact.items())
    assert sum((v - mean) ** 2 * m for v, m in exact.items()) == SMALL.variance
    assert abs(mean - SMALL.centre) <= Fraction(1, 2)
    assert max(exact) - SMALL.centre == SMALL.radius


@pytest.mark.parametrize("noise", [SMALL, CoinNoise(0, (5, 4)), CoinNoise(15, (6,) * 12)])
def test_the_probabilities_of_whole_units_are_those_of_counting(noise):
    exact = whole_pmf(CoinNoise(0, noise.widths))
    pmf = noise.pmf()
    assert len(pmf) == len(exact)
    for at in {0, 1, 2, len(pmf) // 3, len(pmf) // 2, len(pmf) - 1}:
        assert pmf[at] == pytest.approx(float(exact[at]), rel=1e-12)  # in the tails too


def test_the_sum_is_that_of_python_s_integers_carries_and_all():
    noise = CoinNoise(15, (6,) * 12)
    rng = np.random.default_rng(1)
    one, two = (
        noise.secret(rng.bytes(noise.stream_bytes(200)), 200),
        noise.secret(rng.bytes(noise.stream_bytes(200)), 200),
    )
    bits, carries = noise.tossed(one, two)

    def number(limbs):
        return sum(int(limb) << 32 * place for place, limb in enumerate(limbs))

    for a, p, row, carry in zip(one, two, bits, carries, strict=True):
        low = sum(int(bit) << place for place, bit in enumerate(row))
        assert low + (int(carry) << noise.bits) == number(a) + number(p)
    assert 0 < carries.sum() < 200


def test_two_million_draws_have_the_exact_distribution():
    noise = CoinNoise(4, (3, 3, 2))
    count = 2_000_000
    rng = np.random.default_rng(7)
    secret = noise.secret(rng.bytes(noise.stream_bytes(count)), count)
    public = np.broadcast_to(
        np.uint32(0b1011_0110_1101), secret.shape
    )  # a fixed one does not bend it
    drawn = noise.noise(noise.tossed(secret, public)[0]) + noise.centre
    exact = whole_pmf(noise)
    seen = np.bincount(drawn, minlength=len(exact))
    expected = np.array([float(exact[at]) for at in range(len(exact))]) * count
    keep = expected >= 5
    seen = np.append(seen[keep], seen[~keep].sum())
    expected = np.append(expected[keep], expected[~keep].sum())
    assert chisquare(seen[expected > 0], expected[expected > 0]).pvalue > 1e-4


@pytest.mark.parametrize("score", [0, 1, 7, 8, 13, -5])
def test_what_lies_below_the_unit_says_nothing_of_the_score(score):
    unit = 1 << SMALL.fine
    fine = np.arange(unit)
    assert sorted((score + fine) % unit) == list(range(unit))
    # Given it, a move of one unit or less moves the whole units by 0 or 1.
    for move in range(unit + 1):
        for rest in range(unit):
            [low] = [(score + u) // unit for u in fine if (score + u) % unit == rest]
            [high] = [(score + move + u) // unit for u in fine if (score + move + u) % unit == rest]
            assert 0 <= high - low <= SMALL.moved(move) <= 1


@pytest.mark.parametrize("noise", [SMALL, coin_step(15, 100), CoinNoise(0, (1,))])
def test_a_spelling_is_read_back(noise):
    assert CoinNoise.parse(noise.text) == noise


@pytest.mark.parametrize(
    "text",
    [
        "coins:15",
        "coins:15+0x6",
        "coins:15+4x5+8x6",
        "coins:15+4x6+8x6",
        "coins:015+12x6",
        "coins:15+12x06",
        "coins:15+99x6",
        "coins:27+12x6",
        "coins:15+12x17",
        "coins:15+12x6 ",
        "coins:\u0661\u0665+12x6",
        "coins",
    ],
)
def test_another_spelling_is_refused(text):
    with pytest.raises(InputError):
        CoinNoise.parse(text)


def test_steps_rise_by_little():
    variances = [coin_step(15, step).variance for step in range(MOST_STEP + 1)]
    ratios = [float(b / a) for a, b in pairwise(variances)]
    assert min(ratios) > 1
    assert max(ratios[36:]) < 1.09
    assert all(len(coin_step(0, step).widths) >= 12 for step in range(MOST_STEP + 1))


@pytest.mark.parametrize(
    ("sensitivity", "units"),
    [(2 * 128**2, 1), (128**2, 1), (2 * 100**2, 5), (2 * 181**2, 1), (1, 1)],
)
def test_units_hardly_overstate_the_move(sensitivity, units):
    noise = CoinNoise(fine_bits(sensitivity), (6,) * 12)
    assert noise.moved(sensitivity) == units
    assert math.ceil(sensitivity / 2**noise.fine) * 2**noise.fine <= 1.13 * sensitivity
