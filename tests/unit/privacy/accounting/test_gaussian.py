"""Exact Gaussian accounting against numerical integration, dp-accounting and itself."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from ragwitness.core.errors import InputError
from ragwitness.privacy.gaussian import (
    epsilon_at,
    log_delta_at,
    moments_epsilon,
    mu_for,
    mu_of,
    sigma_for,
)
from tests.support.gaussian import delta_at

GOLDEN = Path(__file__).parents[3] / "golden" / "accounting" / "pld.json"
CELLS = json.loads(GOLDEN.read_text())


@pytest.mark.parametrize(("epsilon", "mu"), [(0.0, 0.3), (0.5, 0.2), (1.0, 1.0), (3.0, 4.0)])
def test_delta_is_the_integral_over_outputs(epsilon: float, mu: float) -> None:
    def lost(x: float) -> float:
        return max(0.0, norm.pdf(x, mu) - math.exp(epsilon) * norm.pdf(x))

    start = epsilon / mu + mu / 2  # where the densities' ratio is e^epsilon
    found, _ = quad(lost, start, mu + 30, epsabs=1e-16, epsrel=1e-12)
    assert delta_at(epsilon, mu) == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "mu", "log_delta"),
    [  # by mpmath at 600 digits
        (0.00016065048279643467, 1.3887312205055963e-05, -83.93278651616725),
        (0.00018673379372389628, 1.1464677359018676e-05, -150.53246723398618),
        (0.08083208996687338, 56.835188079520414, -1.276493274455359e-177),
        (3.0, 0.1, -458.52848609718193),
        (1e-6, 1e-5, -12.560078279047746),
        (50.0, 9.0, -2.094951732097082),
    ],
)
def test_tails_keep_their_digits(epsilon: float, mu: float, log_delta: float) -> None:
    assert log_delta_at(epsilon, mu) == pytest.approx(log_delta, rel=1e-12, abs=2e-13)


def test_far_tail_is_finite_where_delta_underflows() -> None:
    assert delta_at(1e6, 1e-3) == 0.0
    assert log_delta_at(1e6, 1e-3) == pytest.approx(-5e17, rel=1e-9)


@pytest.mark.parametrize("cell", CELLS, ids=lambda c: f"{c['epsilon']}-{c['queries']}")
def test_epsilon_is_that_of_dp_accounting(cell: dict[str, float]) -> None:
    mu = mu_of(cell["sigma"], int(cell["accounts"] * cell["queries"]))
    epsilon = epsilon_at(cell["delta"], mu)
    assert epsilon == pytest.approx(cell["pld"], abs=1e-6)
    assert epsilon == pytest.approx(cell["closed"], abs=1e-11)
    # Its Renyi accountant has a coarser grid of orders than ours.
    assert -1e-4 * cell["rdp"] < cell["rdp"] - moments_epsilon(mu, cell["delta"]) < 0.02


@settings(max_examples=60, deadline=None)
@given(st.floats(-12, -1e-3), st.floats(-4, 1.5))
def test_inverses_undo_each_other(log_delta: float, log_mu: float) -> None:
    delta, mu = 10**log_delta, 10**log_mu
    epsilon = epsilon_at(delta, mu)
    assert delta_at(epsilon, mu) <= delta * (1 + 1e-12)
    if epsilon > 0:
        assert delta_at(epsilon * (1 - 1e-6), mu) > delta
        assert mu_for(epsilon, delta) == pytest.approx(mu, rel=1e-7)


def test_noise_for_a_joint_budget_and_how_much_less_it_is() -> None:
    exact = [sigma_for(1, 1e-6, 1000 * k) for k in (1, 4, 16, 64)]
    assert exact == pytest.approx([134, 267, 534, 1069], abs=0.5)  # research, section 5
    assert epsilon_at(1e-6, mu_of(exact[2], 16_000)) == pytest.approx(1, abs=1e-12)
    # The epsilon of one account with which k together spend 1.
    even = [epsilon_at(1e-6, mu_for(1, 1e-6) / math.sqrt(k)) for k in (1, 4, 16, 64)]
    assert even == pytest.approx([1, 0.475, 0.227, 0.108], abs=5e-4)
    assert all(e <= 1 / math.sqrt(k) + 1e-12 for e, k in zip(even, (1, 4, 16, 64), strict=True))


def test_zero_epsilon_is_total_variation() -> None:
    assert delta_at(0.0, mu_for(0.0, 0.1)) == pytest.approx(0.1, rel=1e-12)
    assert epsilon_at(0.9, 0.1) == 0.0
    assert epsilon_at(1e-6, 0.0) == 0.0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: epsilon_at(0.0, 1.0), "delta must be .* not 0"),
        (lambda: epsilon_at(1.0, 1.0), "delta must be .* not 1"),
        (lambda: mu_of(0.0, 5), "sigma must be .* not 0"),
        (lambda: mu_of(1e-300, 5), "sigma of 1e-300 is no noise"),
        (lambda: mu_of(1.0, 0), "queries must be .* not 0"),
        (lambda: mu_of(1.0, 2.5), "queries must be .* not 2.5"),  # type: ignore[arg-type]
        (lambda: mu_of(1.0, 5, -2.0), "sensitivity must be .* not -2"),
    ],
)
def test_values_outside_their_range_are_named(call, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=said):
        call()


@pytest.mark.parametrize(("epsilon", "near"), [(0.0, -35.1), (0.0, -36.0), (2.0, -35.5)])
def test_beyond_mills_ratio_delta_is_one_less_both_tails(epsilon: float, near: float) -> None:
    """There delta is 1 - Phi(near) - e^eps Phi(-far), and both tails are kept to their digits."""
    mu = -near + math.sqrt(near * near + 2 * epsilon)  # epsilon / mu - mu / 2 is near
    far = epsilon / mu + mu / 2
    tails = (math.erfc(-near / 2**0.5) + math.exp(epsilon) * math.erfc(far / 2**0.5)) / 2
    assert log_delta_at(epsilon, mu) == pytest.approx(-tails, rel=1e-9, abs=0)


@pytest.mark.parametrize("near", [-34.9, -35.1, -38.5, -100.0])
def test_delta_is_finite_and_all_but_one_on_either_side_of_the_switch(near: float) -> None:
    assert log_delta_at(0.0, -2 * near) == pytest.approx(0.0, abs=1e-11)
