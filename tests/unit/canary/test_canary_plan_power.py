"""Power before planting: constants that fit what was measured, numbers that move as they must."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.stats import beta, binom, norm

from ragwitness.canary.draw import Design
from ragwitness.canary.power import (
    MEASURED,
    likely_worlds,
    power_lines,
    share_of_providers,
    traces_for_power,
)
from ragwitness.canary.rank_test import SlotScores
from ragwitness.errors import InputError
from tests.support.ranks import rank_p_value


@pytest.mark.slow
def test_the_likely_worlds_are_those_of_a_walk_over_the_same_measurements() -> None:
    """A Metropolis walk with the likelihood written by itself, one provider's effect integrated."""
    nodes, weights = hermegauss(40)
    weights /= weights.sum()
    rows = np.array(MEASURED)

    def log_posterior(at: np.ndarray) -> float:
        halfway, steepness, spread, dilution, deaf = at
        bounds = ((60, 600), (0.3, 4), (0.02, 50), (0, 1), (0, 1))
        if not all(low < one < high for one, (low, high) in zip(at, bounds, strict=True)):
            return -np.inf
        count = rows[:, 0] * (rows[:, 1] / 0.3) ** dilution / halfway
        effect = count[:, None] ** steepness * np.exp(spread * nodes)
        rate = deaf * 0.05 + (1 - deaf) * norm.cdf(effect - 1.645) @ weights
        prior = (
            -np.log(halfway) - np.log(spread) ** 2 / 2 - np.log(spread) + beta(1, 4).logpdf(deaf)
        )
        return float(binom.logpmf(rows[:, 2], rows[:, 3], rate).sum() + prior)

    rng = np.random.default_rng(2)
    at, walk = np.array([180.0, 2.0, 1.0, 0.2, 0.1]), []
    now = log_posterior(at)
    for _ in range(6000):
        to = at + rng.normal(size=5) * (25, 0.4, 0.25, 0.12, 0.03)
        then = log_posterior(to)
        if np.log(rng.random()) < then - now:
            at, now = to, then
        walk.append(at)
    told = np.array(walk[1000:])
    ours = likely_worlds()
    for n, name in enumerate(("halfway", "steepness", "spread", "dilution", "deaf")):
        seen = getattr(ours, name)
        assert abs(np.median(seen) - np.median(told[:, n])) < 0.6 * told[:, n].std(), name
        assert 0.6 < seen.std() / told[:, n].std() < 1.6, name


def test_no_measured_condition_is_unlikely_under_the_forecast() -> None:
    off = []
    for traces, share, hits, of in MEASURED:
        p = share_of_providers(Design(), traces, 8, 0.5, share)[0]
        off.append(min(binom.cdf(hits, of, p), binom.sf(hits - 1, of, p)))
    assert min(off) > 0.005
    assert sum(one < 0.05 for one in off) <= 3  # two-sided


def test_a_forecast_is_as_wide_as_what_was_measured_leaves_it() -> None:
    for traces in (50, 200, 800):
        mean, low, high = share_of_providers(Design(), traces, 8, 0.5)
        assert low <= mean <= high
    at = [np.ptp(share_of_providers(Design(), n, 8, 0.5)[1:]) for n in (5, 200, 1000)]
    assert at[0] < at[1] > at[2]  # widest where it turns


def test_power_moves_with_traces_obedience_share_and_examples() -> None:
    design = Design()
    shares = [share_of_providers(design, n, 32, 0.5)[0] for n in (0, 50, 200, 800, 5000)]
    assert shares == sorted(shares)
    assert abs(shares[0] - 0.05) < 0.02  # nothing planted: the level, and no more
    assert 0.8 < shares[-1] < 0.95  # some providers never learn
    at = [share_of_providers(design, 400, 32, o)[0] for o in (0.0, 0.1, 0.5, 0.9, 1.0)]
    assert at[0] == at[-1] < at[1] < at[2]
    assert at[1] == pytest.approx(at[3])
    assert share_of_providers(design, 400, 32, 0.5, 0.01)[0] < at[2] - 0.1
    assert share_of_providers(design, 400, 4, 0.5)[0] < at[2]
    assert share_of_providers(Design(releases=3), 400, 32, 0.5)[0] < at[2]
    four = Design(slots=4, half=True)
    assert share_of_providers(four, 400, 32, 0.5) == (0.0, 0.0, 0.0)  # 1/6 at best
    for design in (Design(slots=3), Design(slots=8, half=True, candidates=40)):
        assert abs(share_of_providers(design, 0, 32, 0.5)[0] - 0.05) < 0.02
        assert share_of_providers(design, 20_000, 32, 0.5)[0] > 0.8


def test_the_number_named_finds_four_of_five_by_the_audits_own_test() -> None:
    """Simulated audits from scores to rank, at the number that the plan names."""
    need = traces_for_power(Design(candidates=60), 16, 0.4)
    assert need is not None
    rng = np.random.default_rng(5)
    worlds = likely_worlds()
    median = worlds.median_effect(need * 4 * 0.4 * 0.6, 0.3) / np.sqrt(0.75)  # 16 examples
    found = 0
    for n in range(1000):
        world = n % len(median)
        scores = rng.normal(size=60)
        if rng.random() >= worlds.deaf[world]:
            scores[7] += median[world] * np.exp(worlds.spread[world] * rng.normal())
        found += rank_p_value(SlotScores(scores, 7)) <= 0.05
    assert binom.cdf(found, 1000, 0.8) > 1e-3
    assert binom.cdf(found, 1000, 0.84) < 1 - 1e-3


def test_there_is_always_a_number_or_the_reason_why_there_is_none() -> None:
    for design, said in (
        (Design(name="paper"), "compliant twins decide"),
        (Design(candidates=8), "the p-value is 0.125 at best"),
    ):
        lines = list(power_lines(design, 200, 32))
        assert len(lines) == 1
        assert said in lines[0]
    lines = list(power_lines(Design(), 194, 48))
    assert [line.count("80% need about") for line in lines] == [0, 1, 1, 1]
    never = list(power_lines(Design(), 194, 48, obedience=1.0))
    assert "no number of traces" in never[1]
    for wrong in ((-1, 0.5, 0.3, 8), (5, 1.5, 0.3, 8), (5, 0.5, 0.0, 8), (5, 0.5, 0.3, 0)):
        with pytest.raises(InputError):
            share_of_providers(Design(), wrong[0], wrong[3], wrong[1], wrong[2])
    with pytest.raises(InputError):
        share_of_providers(Design(name="paper"), 5, 5, 0.5)
