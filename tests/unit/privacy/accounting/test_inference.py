"""Advantage, AUC, sensitivity and verdict: closed forms against sums and the paper's numbers."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from ragwitness.core.errors import InputError
from ragwitness.privacy.bounds import (
    audit_epsilon,
    certify,
    classic_sigma,
    composition_slack,
    joint_budget,
)
from ragwitness.privacy.gaussian import (
    advantage_limit,
    advantage_of,
    auc_limit,
    auc_of,
    epsilon_at,
    mu_of,
    sigma_for,
)
from ragwitness.privacy.ranges import score_sensitivity
from research.inference import leading_sigma, mu_of_auc
from tests.support.composition import (
    construction_mu,
    paper_advantage_limit,
    paper_auc,
    paper_growth_limit,
    paper_linear_advantage,
)
from tests.support.gaussian import delta_at

DELTA = 1e-6


@pytest.mark.parametrize(
    ("queries", "epsilon", "one", "sixteen"),
    [
        (1000, 1, 0.5083, 0.5331),
        (1000, 5, 0.5414, 0.6612),
        (1000, 10, 0.5823, 0.7971),
        (100, 1, 0.5088, 0.5351),
        (100, 5, 0.5439, 0.6702),
        (100, 10, 0.5872, 0.8109),
    ],
)
def test_auc_of_the_construction(queries: int, epsilon: float, one: float, sixteen: float) -> None:
    mus = [construction_mu(epsilon, DELTA, queries, k) for k in (1, 16)]
    direct = mu_of(classic_sigma(epsilon, DELTA, queries), 16 * queries)
    assert mus[1] == pytest.approx(direct, rel=1e-12)
    assert [auc_of(mu) for mu in mus] == pytest.approx([one, sixteen], abs=6e-5)
    assert mu_of_auc(auc_of(mus[1])) == pytest.approx(mus[1], rel=1e-9)
    assert construction_mu(epsilon, DELTA, queries, 16, gap=0.5) == pytest.approx(direct / 2)


def test_growth_from_one_account_to_sixteen() -> None:
    pairs = [[construction_mu(e, DELTA, 1000, k) for k in (1, 16)] for e in (1, 5, 10)]
    excess = [(auc_of(b) - 0.5) / (auc_of(a) - 0.5) for a, b in pairs]
    assert excess == pytest.approx([3.996, 3.90, 3.61], abs=6e-3)
    advantage = [advantage_of(b) / advantage_of(a) for a, b in pairs]
    assert advantage == pytest.approx([3.998, 3.95, 3.80], abs=6e-3)
    assert auc_of(construction_mu(0.1, DELTA, 100, 16)) - 0.5 <= 0.00352


def test_mu_per_epsilon_collapses_for_two_calibrations_and_not_for_the_exact_one() -> None:
    for epsilon in (0.1, 1.0, 10.0):
        assert construction_mu(epsilon, DELTA, 1000, 1) / epsilon == pytest.approx(
            0.02939, abs=6e-6
        )
        leading = mu_of(leading_sigma(epsilon, DELTA, 1000), 1000)
        assert leading / epsilon == pytest.approx(0.19024, abs=6e-6)
    exact = [mu_of(sigma_for(e, DELTA, 1000), 1000) / e for e in (0.1, 1.0, 10.0)]
    assert exact == pytest.approx([0.2754, 0.2367, 0.1848], abs=6e-5)


def test_split_adversaries() -> None:
    mu = construction_mu(10, DELTA, 1000, 16)
    everything = [auc_of(mu * share) for share in (0.75, 0.5)]
    on_target = [auc_of(mu * math.sqrt(share)) for share in (0.75, 0.5)]
    assert everything == pytest.approx([0.7335, 0.6612], abs=6e-5)
    assert on_target == pytest.approx([0.7642, 0.7217], abs=6e-5)


@pytest.mark.parametrize("mu", [0.05, 0.5, 2.0])
def test_gaussian_advantage_and_auc_are_those_of_two_normals(mu: float) -> None:
    grid = np.linspace(-10, 10 + mu, 400_001)
    assert advantage_of(mu) == pytest.approx(
        float(np.max(norm.sf(grid, mu) - norm.sf(grid))), abs=1e-9
    )
    area = np.trapezoid(norm.sf(grid, mu) * norm.pdf(grid), grid)
    assert auc_of(mu) == pytest.approx(float(area), abs=1e-9)
    assert paper_linear_advantage(mu) >= advantage_of(mu)
    assert auc_of(mu) >= paper_auc(advantage_of(mu))


def test_paper_map_misses_41_percent_of_the_excess() -> None:
    mu = 1e-4
    missed = (auc_of(mu) - 0.5) / (paper_auc(advantage_of(mu)) - 0.5)
    assert missed == pytest.approx(math.sqrt(2), rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.2), (0.5, 1e-3), (2.0, 0.05)])
def test_tight_limits_are_those_of_the_trade_off_function(epsilon: float, delta: float) -> None:
    x = np.linspace(0, 1, 1_000_001)
    curve = np.maximum.reduce(
        [0 * x, 1 - delta - math.exp(epsilon) * x, math.exp(-epsilon) * (1 - delta - x)]
    )
    assert advantage_limit(epsilon, delta) == pytest.approx(float(np.max(1 - x - curve)), abs=2e-6)
    assert auc_limit(epsilon, delta) == pytest.approx(1 - float(np.trapezoid(curve, x)), abs=1e-6)
    assert advantage_limit(epsilon, delta) <= paper_advantage_limit(epsilon, delta)


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_limits_hold_for_gaussian_noise(mu: float) -> None:
    for epsilon in (0.0, 0.3, 1.0, 4.0):
        delta = max(delta_at(epsilon, mu), 1e-300)
        assert advantage_of(mu) <= advantage_limit(epsilon, delta) + 1e-12
        assert auc_of(mu) <= auc_limit(epsilon, delta) + 1e-12


def test_limits_at_any_size() -> None:
    assert advantage_limit(5000.0, DELTA) == auc_limit(5000.0, DELTA) == 1.0
    assert paper_advantage_limit(800.0, DELTA) == 1.0
    assert paper_advantage_limit(0.1, DELTA, linear=True) == pytest.approx(0.200001)
    assert paper_growth_limit(0.1, DELTA, 16) == pytest.approx(0.800017)


@pytest.mark.parametrize("clip", [None, (-0.2, 0.6), (0.1, 0.9), (-3.0, 0.5)])
@pytest.mark.parametrize("grid", [0.0, 0.03])
def test_sensitivity_is_the_largest_change_there_is(
    clip: tuple[float, float] | None, grid: float
) -> None:
    def answer(score: np.ndarray) -> np.ndarray:
        low, high = clip or (-1, 1)
        held = np.clip(score, max(low, -1), min(high, 1))
        return grid * np.floor(held / grid) if grid else held

    scores = answer(np.linspace(-1, 1, 20_001))
    free = float(answer(np.zeros(1))[0])
    assert score_sensitivity("replace", clip, grid) == pytest.approx(float(np.ptp(scores)))
    moved = float(np.abs(scores - free).max())
    assert moved <= score_sensitivity("add-remove", clip, grid) <= moved + grid + 1e-12


def test_sensitivity_of_unit_vectors_is_one_or_two() -> None:
    assert (score_sensitivity("add-remove"), score_sensitivity("replace")) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("epsilon", "paper", "exact"),
    [
        (0.5, (0.447, 0.922, 1.960, 4.458), (0.0392, 0.0826, 0.1735, 0.3638)),
        (1.0, (0.921, 1.952, 4.354, 10.654), (0.0826, 0.1735, 0.3638, 0.7643)),
    ],
)
def test_verdicts_of_the_paper_and_from_the_noise(
    epsilon: float, paper: tuple[float, ...], exact: tuple[float, ...]
) -> None:
    sigma = classic_sigma(epsilon, 1e-8, 1000)
    for k, by_paper, by_noise in zip((1, 4, 16, 64), paper, exact, strict=True):
        label = audit_epsilon(epsilon, 1e-8, 1000, k, 1e-6)
        made = certify(sigma, 1000, k, 1e-6, delta=1e-8)
        assert label == pytest.approx(by_paper, abs=6e-4)
        assert made.epsilon == pytest.approx(by_noise, abs=6e-5)
        assert made.paper == pytest.approx(label, rel=1e-9)
        assert made.epsilon < made.renyi < label
        slack = composition_slack(1e-8, k, 1e-6)
        assert joint_budget(epsilon, 1e-8, 1000, k, slack).delta == pytest.approx(1e-6, rel=1e-12)


def test_a_label_is_worth_nothing_where_the_sensitivity_is_twice_as_large() -> None:
    sigma = classic_sigma(1.0, 1e-8, 1000)
    one = certify(sigma, 1000, 16, 1e-6, delta=1e-8)
    two = certify(sigma, 1000, 16, 1e-6, delta=1e-8, sensitivity=2.0)
    assert two.mu == pytest.approx(2 * one.mu)
    assert two.epsilon > 2 * one.epsilon


def test_certificate_goes_on_where_the_paper_does_not_reach() -> None:
    made = certify(0.5, 10, 4, 1e-6, delta=1e-8)
    assert made.paper is None
    assert "too small for (3.4)" in made.why
    assert made.epsilon == pytest.approx(epsilon_at(1e-6, math.sqrt(40) / 0.5))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: composition_slack(1e-6, 16, 1e-6), "k_max x delta is 1.6e-05.*delta. = 1e-06"),
        (lambda: certify(10, 10, 100, 1e-6, delta=1e-8), "is 1e-06, which is not below"),
        (lambda: certify(-1, 10, 10, 1e-6, delta=1e-8), "sigma must be .* not -1"),
        (lambda: paper_advantage_limit(2.0, DELTA, linear=True), "up to epsilon 1, not at 2"),
        (lambda: paper_growth_limit(1.0, DELTA, 16), "= 1, not at 4"),
        (lambda: paper_auc(1.5), "not 1.5"),
        (lambda: mu_of_auc(1.0), "AUC must be .* not 1"),
        (lambda: score_sensitivity("swap"), "'swap'"),  # type: ignore[arg-type]
        (lambda: score_sensitivity("replace", (0.5, 0.5)), "leaves all scores equal"),
        (lambda: score_sensitivity("replace", (2.0, 3.0)), "leaves all scores equal"),
    ],
)
def test_values_outside_their_range_are_named(call, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=said):
        call()
