"""The mechanism's settings: sensitivity by brute force, its Gaussian, refusals."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from ragwitness.core.errors import InputError
from ragwitness.privacy.mechanism import (
    Mechanism,
    mechanism_for,
    provable_mechanism,
)
from ragwitness.privacy.odometer import Terms, worst_epsilon
from ragwitness.privacy.ranges import score_sensitivity
from ragwitness.privacy.release import SlotIndex, scores
from tests.support.gaussian import delta_at, exact_pmf

SMALL = Mechanism(dimension=2, capacity=1, top=1, variance=64, shift=2, scale=5)


def all_vectors(scale):
    """Every integer vector of two dimensions within the norm."""
    side = range(-scale, scale + 1)
    return [(x, y) for x in side for y in side if x * x + y * y <= scale**2]


@pytest.mark.parametrize(
    "mechanism",
    [
        SMALL,
        dataclasses.replace(SMALL, shift=0),
        dataclasses.replace(SMALL, shift=3),
        dataclasses.replace(SMALL, low=0, high=4),
        dataclasses.replace(SMALL, low=-2, high=5),
        dataclasses.replace(SMALL, low=2, high=3),
    ],
)
def test_the_sensitivity_is_the_largest_difference_there_is(mechanism):
    # Every query and every pair of rows that the norm allows.
    vectors = all_vectors(mechanism.scale)
    roomy = dataclasses.replace(mechanism, capacity=len(vectors))
    found = scores(np.array(vectors, np.int16), SlotIndex(vectors, roomy), roomy)
    empty = vectors.index((0, 0))
    replaced = int((found.max(axis=1) - found.min(axis=1)).max())
    added = int(np.abs(found - found[:, [empty]]).max())
    assert mechanism.sensitivity("replace") == replaced
    assert mechanism.sensitivity("add-remove") == added
    assert set(found[:, empty]) == {mechanism.empty_score}


def test_unclipped_cosines_have_sensitivity_1_and_2():
    mechanism = mechanism_for(384, 1000, 10, 0.5)
    one = 4096**2 >> mechanism.shift
    assert mechanism.sensitivity("add-remove") == one
    assert mechanism.sensitivity("replace") == 2 * one
    clipped = mechanism_for(384, 1000, 10, 0.5, clip=(0.5, 1.0))
    assert clipped.sensitivity("replace") == one // 2
    assert clipped.empty_score == one // 2


@pytest.mark.parametrize("clip", [None, (0.25, 1.0), (-0.5, 0.75)])
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_the_sensitivity_is_that_of_the_accounting(clip, relation):
    mechanism = mechanism_for(384, 1000, 10, 0.5, clip=clip)
    grid = 2.0**mechanism.shift / 4096**2
    assert mechanism.sensitivity(relation) * grid == score_sensitivity(relation, clip, grid)


def composed_delta(variance, shift, times, epsilon):
    """Smallest delta of ``times`` discrete Gaussians, worst event, by convolution.

    The loss of several draws depends on their sum alone.
    """
    half = np.array([float(p) for p in exact_pmf(variance)])
    single = np.concatenate([half[:0:-1], half])
    pmf = single
    for _ in range(times - 1):
        pmf = np.convolve(pmf, single)
    x = np.arange(len(pmf)) - len(pmf) // 2
    loss = (2 * x * shift + times * shift**2) / (2 * float(variance))
    return float(np.sum(pmf * np.maximum(0.0, -np.expm1(epsilon - loss))))


@pytest.mark.parametrize("variance", [64, Fraction(1000, 7), 1024])
@pytest.mark.parametrize("times", [1, 2, 7])
def test_the_continuous_gaussian_is_nowhere_more_private(variance, times):
    mechanism = dataclasses.replace(SMALL, variance=variance)
    for shift in (1, 3, 10):
        mu = shift * math.sqrt(times) / mechanism.gaussian_sigma
        for epsilon in (0.0, 0.05, 0.3, 1.0, 3.0):
            ours = delta_at(epsilon, mu)
            assert composed_delta(variance, shift, times, epsilon) <= ours * (1 + 1e-9) + 1e-15


def test_rounding_a_gaussian_at_random_gives_the_discrete_one():
    # The argument behind gaussian_sigma, by quadrature: N(0, v - 4), rounded to the grid by a
    # discrete Gaussian of variance 4 around it, is the discrete Gaussian of variance v.
    variance, width = 64, 4
    y = np.linspace(-80, 80, 160_001)
    density = np.exp(-(y**2) / (2 * (variance - width))) * (y[1] - y[0])
    density /= math.sqrt(2 * math.pi * (variance - width))
    near = np.arange(-100, 101)
    normaliser = sum(np.exp(-((k - y) ** 2) / (2 * width)) for k in near)
    pmf = exact_pmf(variance)
    for z in (0, 1, 7, 20, 33):
        rounded = float(np.sum(density * np.exp(-((z - y) ** 2) / (2 * width)) / normaliser))
        assert rounded == pytest.approx(float(pmf[z]), rel=1e-10)
    # And the normaliser is as good as constant: 1 ± 2 exp(-2π²·4), by Poisson summation.
    assert 2 * math.exp(-2 * math.pi**2 * width) < 2**-112
    assert np.ptp(normaliser[40_000:120_001]) < 1e-12


def test_noise_on_the_scale_of_cosines_is_never_less_than_asked():
    for sigma in (0.01, 0.2, 0.37, 1, 17.3, 321, 1076, 2000):
        mechanism = mechanism_for(384, 100, 10, sigma)
        steps = Fraction(4096**2, 2**mechanism.shift)
        exact = (Fraction(sigma) * steps) ** 2
        assert exact <= mechanism.variance < exact + Fraction(1, 2**16)
        assert math.sqrt(mechanism.variance) >= 256
        assert steps >= 8


def test_the_digest_tells_every_setting_apart():
    base = mechanism_for(384, 1000, 10, 0.2)
    others = [
        dataclasses.replace(base, **change)
        for change in (
            {"dimension": 383},
            {"capacity": 999},
            {"top": 9},
            {"variance": base.variance + Fraction(1, 2**16)},
            {"shift": base.shift + 1},
            {"low": 0},
            {"high": 5},
            {"scale": 4095},
            {"sampler": "exact"},
        )
    ]
    assert len({base.digest, *(other.digest for other in others)}) == len(others) + 1
    same = dataclasses.replace(base, low=base.bounds[0], high=base.bounds[1])
    assert same.digest == base.digest
    assert base.digest == "65da2ecd6ef41dbd917f4306a3d7eb667c27ccfd7c8b43871a76c6657d606413"


def test_only_the_table_adds_to_delta():
    table = mechanism_for(384, 1000, 10, 0.2)
    exact = mechanism_for(384, 1000, 10, 0.2, sampler="exact")
    assert 0 < table.extra_delta(1.0, 1000) < 1e-30
    assert exact.extra_delta(1.0, 1000) == 0.0
    assert table.extra_delta(1e6, 1) == 1.0
    assert table.extra_delta(1.0, 0) == 0.0
    for epsilon, releases in ((-1.0, 1), (math.nan, 1), (1.0, -1)):
        with pytest.raises(InputError, match=r"(epsilon|releases) must"):
            table.extra_delta(epsilon, releases)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dimension": 0}, "dimension"),
        ({"capacity": 0}, "capacity"),
        ({"top": 0}, "top"),
        ({"top": 2}, "top"),
        ({"top": True}, "top"),
        ({"scale": 4097}, "scale"),
        ({"shift": -1}, "shift"),
        ({"shift": 1.5}, "1.5"),
        ({"low": -100}, "low"),
        ({"low": 3, "high": 3}, "high"),
        ({"high": 100}, "high"),
        ({"variance": 63}, "63 grid steps"),
        ({"variance": 2.0**10}, "exact number"),
        ({"variance": 2**29}, "too large"),
        ({"sampler": "fast"}, "'fast'"),
    ],
)
def test_settings_outside_their_ranges_are_refused_by_name(change, said):
    with pytest.raises(InputError, match=said):
        dataclasses.replace(SMALL, **change)


def test_the_exact_sampler_takes_any_variance():
    assert dataclasses.replace(SMALL, variance=2**29, sampler="exact").extra_delta(1, 1) == 0


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf])
def test_a_sigma_out_of_range_is_refused(sigma):
    with pytest.raises(InputError, match="sigma must be a finite number above 0"):
        mechanism_for(384, 100, 10, sigma)


def test_noise_too_small_or_too_large_for_the_grid_is_refused():
    with pytest.raises(InputError, match="too coarse"):
        mechanism_for(384, 100, 10, 1e-9)
    assert mechanism_for(384, 100, 10, 1e5).sampler == "exact"
    with pytest.raises(InputError, match="nan"):
        mechanism_for(384, 100, 10, 1.0, clip=(math.nan, 1.0))
    with pytest.raises(InputError, match="neighbour"):
        SMALL.sensitivity("remove")


@pytest.mark.parametrize("scale", [100, 200, 777, 4096])
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_the_meter_of_any_scale_knows_the_whole_sensitivity(scale, relation):
    # 0.3 / 1e-4 is below 3000: a bound of the grid that is divided again may lose a step
    for shift in range(9):
        for share in (0.3, 0.5, 0.77, 1):
            high = int((scale**2 >> shift) * share)
            made = Mechanism(8, 16, 4, 10_000, shift, 0, high, scale, sampler="exact")
            step = Terms.of(made, 1.0, relation).worst_mu(1) * made.gaussian_sigma
            assert step == pytest.approx(made.sensitivity(relation), rel=1e-9)


@pytest.mark.parametrize(
    ("sigma", "scale", "sampler"), [(4.0, 64, "table"), (4.001, 64, "exact"), (50.0, 128, "exact")]
)
def test_a_provable_mechanism_drops_no_bit_of_a_score(sigma, scale, sampler):
    found = provable_mechanism(8, 16, 2, sigma, scale)
    assert (found.shift, found.bounds) == (0, (-(scale**2), scale**2))
    assert (found.sampler, found.scale) == (sampler, scale)
    assert (sigma * scale**2) ** 2 <= found.variance <= (sigma * scale**2) ** 2 * (1 + 1e-9)
    for wrong in ({"sigma": 0.0}, {"scale": 1}, {"scale": 5000}):
        with pytest.raises(InputError):
            provable_mechanism(8, 16, 2, **({"sigma": sigma, "scale": scale} | wrong))


def test_proved_noise_of_an_earlier_release_is_refused_by_name():
    with pytest.raises(InputError, match="is proved without being opened") as refused:
        Mechanism(8, 16, 2, 2**36, 0, scale=128, sampler="coins:15+12x6")
    assert "0.3.0" in str(refused.value.hint)


def test_gaussian_noise_is_accounted_as_before():
    made = mechanism_for(8, 16, 2, 4.0)
    mu = Terms.of(made, 1.0, "replace").worst_mu(10)
    assert worst_epsilon(made, 1e-6, 10, "replace") == made.epsilon_at(1e-6, mu, 10)


def test_what_an_answer_is_worth_lies_between_chance_and_certainty() -> None:
    """By simulation: one perfect match among slots that score 0."""
    for variance, tolerance in ((64, 0.0), (1 << 20, 0.02), (1 << 34, 0.02)):
        mechanism = Mechanism(8, 256, 4, variance, 0, scale=32, sampler="exact")
        rng = np.random.default_rng(0)
        noise = rng.normal(0.0, variance**0.5, (4000, 256))
        noise[:, 0] += 32**2
        found = float(np.mean((noise[:, 1:] > noise[:, :1]).sum(axis=1) < 4))
        assert mechanism.worth == pytest.approx(found, abs=max(tolerance, 0.001))
