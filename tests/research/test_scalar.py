"""The scalar sweep: against every answer simulated, against research's table, and its refusals."""

import math

import numpy as np
import pytest
from scipy.stats import ks_2samp, norm

from ragwitness.core.errors import InputError
from ragwitness.privacy.gaussian import auc_of
from research.scalar import SweepConfig, sweep
from research.separation import area_of, noise_for, spread
from tests.support.composition import construction_mu

_BAND = norm.ppf(1 - 0.05 / 30)


def test_the_mean_drawn_at_once_is_the_mean_of_all_answers() -> None:
    """M_LB literally: unit vectors, one noisy score per query, every answer pooled."""
    k, q, sigma, trials = 3, 4, 2.5, 20_000
    rng = np.random.default_rng(5)
    target, other = np.linalg.qr(rng.normal(size=(16, 2)))[0].T
    worlds = []
    for document in (target, other):
        score = float(target @ document)  # the probe is the target's own embedding
        answers = score + sigma * rng.standard_normal((trials, k, q))
        worlds.append(answers.mean(axis=(1, 2)))
    mu = math.sqrt(k * q) / sigma
    for world, centre in zip(worlds, (1.0, 0.0), strict=True):
        at_once = centre + sigma / math.sqrt(k * q) * rng.standard_normal(trials)
        assert ks_2samp(world, at_once).pvalue > 1e-3
    area = area_of(*worlds)
    assert abs(area.value - auc_of(mu)) < 4 * spread(mu, trials)


# research, section 3: classic noise, delta = 1e-6, S = gap = 1
_AUC = {
    (1000, 1.0): (0.5083, 0.5331),
    (1000, 5.0): (0.5414, 0.6612),
    (1000, 10.0): (0.5823, 0.7971),
    (100, 1.0): (0.5088, 0.5351),
    (100, 5.0): (0.5439, 0.6702),
    (100, 10.0): (0.5872, 0.8109),
}


@pytest.mark.parametrize("queries", [1000, 100])
def test_the_published_table_lies_in_its_bands(queries: int) -> None:
    config = SweepConfig((1, 16), (1.0, 5.0, 10.0), queries=queries, trials=200_000, seed=3)
    for cell in sweep(config):
        known = _AUC[queries, cell.epsilon][cell.accounts == 16]
        assert cell.predicted == pytest.approx(known, abs=6e-5)
        assert cell.mu == pytest.approx(
            construction_mu(cell.epsilon, 1e-6, queries, cell.accounts), rel=1e-12
        )
        assert abs(cell.z) < _BAND
        assert abs(cell.area.value - known) < _BAND * cell.error + 6e-5


def test_growth_over_sixteen_accounts_is_researchs() -> None:
    for epsilon, excess, advantage in ((1.0, 3.996, 3.998), (5.0, 3.90, 3.95), (10.0, 3.61, 3.80)):
        one, many = sweep(SweepConfig((1, 16), (epsilon,), trials=2))
        assert (many.predicted - 0.5) / (one.predicted - 0.5) == pytest.approx(excess, rel=2e-3)
        found = (2 * norm.cdf(many.mu / 2) - 1) / (2 * norm.cdf(one.mu / 2) - 1)
        assert found == pytest.approx(advantage, rel=2e-3)


def test_scale_by_calibration_is_researchs() -> None:
    """P2: mu_1 / epsilon is one number for two calibrations, and not for the exact one."""

    def ratios(calibration: str) -> list[float]:
        return [
            math.sqrt(1000) / noise_for(calibration, epsilon, 1e-6, 1000) / epsilon
            for epsilon in (0.1, 1.0, 10.0)
        ]

    assert ratios("classic") == pytest.approx([0.02939] * 3, rel=2e-4)
    assert ratios("leading") == pytest.approx([0.19024] * 3, rel=2e-4)
    assert ratios("exact") == pytest.approx([0.2754, 0.2367, 0.1848], rel=4e-4)


def test_a_seed_fixes_every_cell_wherever_it_stands() -> None:
    config = SweepConfig((1, 2), (1.0,), trials=1000, seed=9)
    assert sweep(config) == sweep(config)
    assert sweep(config)[0] != sweep(SweepConfig((1, 2), (1.0,), trials=1000, seed=8))[0]
    first, second = sweep(config)
    assert first.area != second.area


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"accounts": (0,)}, "accounts"),
        ({"accounts": ()}, "at least one"),
        ({"accounts": (2, 2)}, "twice"),
        ({"epsilons": (-1.0,)}, "-1"),
        ({"epsilons": (math.nan,)}, "nan"),
        ({"queries": 0}, "queries"),
        ({"delta": 1.0}, "delta"),
        ({"gap": 2.0}, "sensitivity"),
        ({"trials": 1}, "trials"),
        ({"trials": 10**9}, "20,000,000"),
        ({"seed": -1}, "seed"),
    ],
)
def test_values_outside_their_range_are_named(changed: dict, named: str) -> None:
    with pytest.raises(InputError, match=named):
        SweepConfig(**changed)


def test_an_unknown_calibration_is_named() -> None:
    with pytest.raises(InputError, match="'best'"):
        noise_for("best", 1.0, 1e-6, 100)
