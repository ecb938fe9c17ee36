"""AUC of large samples: against scipy, the rank formula, and the exact variance."""

import math

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, multivariate_normal

from ragwitness.core.errors import InputError
from ragwitness.privacy.gaussian import auc_of
from ragwitness.stats.evaluation import auc_interval
from research.separation import area_of, spread


@pytest.mark.parametrize("ties", [False, True])
def test_the_area_is_mann_whitneys_with_delongs_interval(ties: bool) -> None:
    rng = np.random.default_rng(1)
    present, absent = rng.normal(0.6, 1, 400), rng.normal(0, 1, 400)
    if ties:
        present, absent = present.round(), absent.round()
    area = area_of(present, absent)
    assert area.value == pytest.approx(mannwhitneyu(present, absent).statistic / 400**2, abs=1e-12)
    pooled = np.concatenate([present, absent])
    known = auc_interval(pooled, np.arange(800) < 400)
    assert (area.low, area.high) == pytest.approx(known, abs=1e-12)


def test_samples_that_do_not_overlap_are_no_certainty() -> None:
    area = area_of(np.arange(10.0) + 100, np.arange(10.0))
    assert area.value == area.high == 1
    assert area.low == pytest.approx(0.025**0.1)


@pytest.mark.parametrize(
    ("present", "absent"),
    [([1.0, 2.0], [1.0]), ([1.0], [1.0]), ([1.0, math.nan], [1.0, 2.0])],
)
def test_unusable_samples_are_refused(present: list[float], absent: list[float]) -> None:
    with pytest.raises(InputError):
        area_of(np.array(present), np.array(absent))


def test_the_exact_spread_is_the_bivariate_normals() -> None:
    for mu in (0.0, 0.5, 2.0, 5.0):
        h = mu / math.sqrt(2)
        both = multivariate_normal.cdf([h, h], cov=[[1, 0.5], [0.5, 1]])
        a = auc_of(mu)
        variance = (a * (1 - a) + 2 * 99 * (both - a * a)) / 100**2
        assert spread(mu, 100) == pytest.approx(math.sqrt(variance), rel=1e-3)
    # Where nothing is told apart: sqrt((2n + 1) / 12) / n.
    assert spread(0.0, 10_000) == pytest.approx(math.sqrt(20_001 / 12) / 10_000, rel=1e-12)
    assert spread(0.0, 10_000) == pytest.approx(0.0041, abs=5e-5)  # research, section 2
    assert spread(0.0, 100_000) == pytest.approx(0.0013, abs=5e-5)


def test_the_exact_spread_is_what_repetition_shows() -> None:
    rng = np.random.default_rng(2)
    areas = [
        area_of(rng.standard_normal(200) + 1, rng.standard_normal(200)).value for _ in range(1500)
    ]
    assert np.std(areas) == pytest.approx(spread(1.0, 200), rel=0.06)  # 3 sd of a sd of 1,500
    assert np.mean(areas) == pytest.approx(auc_of(1.0), abs=4 * spread(1.0, 200) / 1500**0.5)
