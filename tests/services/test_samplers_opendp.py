"""OpenDP's discrete Gaussian beside ours: an oracle that shares no line with it.

Ours is our own because a window's noise must be drawn again from its key, which OpenDP's generator
does not allow. Its draws cannot be seeded: a level of 1e-6 keeps the test from failing by chance.
"""

import secrets

import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

from ragwitness.privacy.sampler import ShakeBits, discrete_gaussian
from ragwitness.privacy.table import gaussian_table
from tests.support.gaussian import exact_pmf

pytestmark = pytest.mark.slow
_DRAWS, _LEVEL = 20_000, 1e-6


def _opendp(sigma: float) -> np.ndarray:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    draw = dp.m.make_gaussian(
        dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float), scale=sigma
    )
    return np.array(draw([0] * _DRAWS))


def _counts(*draws: np.ndarray, cells: int = 20) -> np.ndarray:
    """Counts of each sample in cells of about equal share."""
    edges = np.unique(np.quantile(np.concatenate(draws), np.linspace(0, 1, cells + 1)[1:-1]))
    return np.array([np.bincount(np.searchsorted(edges, one), minlength=len(edges) + 1)
                     for one in draws])  # fmt: skip


@pytest.mark.parametrize("sigma", [1, 8, 60])
def test_our_samplers_and_opendp_s_draw_from_one_distribution(sigma: int) -> None:
    theirs = _opendp(float(sigma))
    seed = secrets.token_bytes(32)
    bits = ShakeBits(seed)
    exact = np.array([discrete_gaussian(sigma**2, bits) for _ in range(_DRAWS // 4)])
    table = gaussian_table(sigma**2).draw(seed, 0, _DRAWS)
    for ours in (exact, table):
        assert chi2_contingency(_counts(ours, theirs)).pvalue > _LEVEL
    # The opponent: noise of a tenth more is told apart, so the test could fail.
    wider = np.rint(theirs * 1.1 + np.random.default_rng(0).uniform(-0.05, 0.05, _DRAWS))
    if sigma > 1:
        assert chi2_contingency(_counts(table, wider)).pvalue < _LEVEL


@pytest.mark.parametrize("sigma", [1, 8])
def test_opendp_s_draws_obey_the_probabilities_that_our_tables_hold(sigma: int) -> None:
    theirs = np.abs(_opendp(float(sigma)))
    mass = np.array([float(p) for p in exact_pmf(sigma**2)])
    share = mass * np.where(np.arange(len(mass)), 2, 1)  # of the absolute value
    assert share.sum() == pytest.approx(1, abs=1e-9)
    last = int(np.searchsorted(np.cumsum(share), 1 - 20 / _DRAWS))
    seen = np.bincount(np.minimum(theirs, last), minlength=last + 1)
    expected = np.append(share[:last], 1 - share[:last].sum()) * _DRAWS
    assert chisquare(seen, expected).pvalue > _LEVEL
