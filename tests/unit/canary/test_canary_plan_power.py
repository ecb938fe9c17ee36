"""Power before planting: constants that fit what was measured, numbers that move as they must."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom, norm

from ragwitness.canary.draw import Design
from ragwitness.canary.power import (
    HALFWAY,
    MEASURED,
    SPREAD,
    STEEPNESS,
    median_effect,
    power_lines,
    share_of_providers,
    traces_for_power,
)
from ragwitness.canary.rank_test import SlotScores, rank_p_value
from ragwitness.errors import InputError

_Z = np.linspace(-3, 3, 61)
_W = norm.pdf(_Z) / norm.pdf(_Z).sum()


def _unlikely(given: np.ndarray) -> float:
    """Minus the log-likelihood of the measured policies, with a weak prior on the spread."""
    spread = np.exp(given[2])
    found = [
        float(
            (norm.cdf((n / np.exp(given[0])) ** given[1] * np.exp(spread * _Z) - 1.645) * _W).sum()
        )
        for n, _, _ in MEASURED
    ]
    fit = sum(
        binom.logpmf(k, of, np.clip(p, 1e-9, 1 - 1e-9))
        for p, (_, k, of) in zip(found, MEASURED, strict=True)
    )
    return float(0.05 * given[2] ** 2 - fit)


def test_the_constants_are_the_likeliest_for_what_was_measured() -> None:
    ours = _unlikely(np.array([np.log(HALFWAY), STEEPNESS, np.log(SPREAD)]))
    starts = [[np.log(200.0), b, s] for b in (0.7, 2.0) for s in (-1.0, 0.5)]
    best = min(minimize(_unlikely, one, method="Nelder-Mead").fun for one in starts)
    assert ours <= best + 0.1
    # And what was measured is not unlikely under them: no condition is off by 3 deviations.
    design = Design()
    for traces, hits, of in MEASURED:
        p = share_of_providers(design, traces, 8, 0.5)
        assert binom.cdf(hits, of, p) > 0.001
        assert binom.sf(hits - 1, of, p) > 0.001


def test_power_moves_with_traces_obedience_share_and_examples() -> None:
    design = Design()
    shares = [share_of_providers(design, n, 32, 0.5) for n in (0, 50, 200, 800, 5000)]
    assert shares == sorted(shares)
    assert abs(shares[0] - 0.05) < 0.02  # nothing planted: the level, and no more
    assert shares[-1] > 0.95
    at = [share_of_providers(design, 400, 32, o) for o in (0.0, 0.1, 0.5, 0.9, 1.0)]
    assert at[0] == at[-1] < at[1] < at[2]
    assert at[1] == pytest.approx(at[3])
    assert share_of_providers(design, 400, 32, 0.5, 0.01) < at[2] - 0.2
    assert share_of_providers(design, 400, 4, 0.5) < at[2]
    assert share_of_providers(Design(releases=3), 400, 32, 0.5) < at[2]
    four = Design(slots=4, half=True)
    assert share_of_providers(four, 400, 32, 0.5) == 0.0  # 1/6 at best
    for design in (Design(slots=3), Design(slots=8, half=True, candidates=40)):
        assert abs(share_of_providers(design, 0, 32, 0.5) - 0.05) < 0.02
        assert share_of_providers(design, 20_000, 32, 0.5) > 0.95


def test_the_number_named_finds_four_of_five_by_the_audits_own_test() -> None:
    """Simulated audits from scores to rank, at the number that the plan names."""
    need = traces_for_power(Design(candidates=60), 16, 0.4)
    assert need is not None
    rng = np.random.default_rng(5)
    effect = median_effect(need, 0.4, 0.3, 16)
    found = 0
    for _ in range(600):
        scores = rng.normal(size=60)
        scores[7] += effect * np.exp(SPREAD * rng.normal())
        found += rank_p_value(SlotScores(scores, 7)) <= 0.05
    assert binom.cdf(found, 600, 0.8) > 1e-3
    assert binom.cdf(found, 600, 0.86) < 1 - 1e-3


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
            median_effect(*wrong)
    with pytest.raises(InputError):
        share_of_providers(Design(name="paper"), 5, 5, 0.5)
