"""Privacy of noisy votes: against the definition, another library, and noise on the reals."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ragwitness.core.errors import InputError
from ragwitness.privacy.gaussian import mu_of, sigma_for
from ragwitness.synthesis.private.accounting import (
    delta_of,
    epsilon_of,
    group_epsilon,
    variance_for,
)
from tests.support.gaussian import delta_at

PLD = Path(__file__).parents[3] / "golden" / "private" / "pld.json"


def pmf(variance: float, shift: int, values: range) -> list[float]:
    weights = [math.exp(-((x - shift) ** 2) / (2 * variance)) for x in values]
    return [w / sum(weights) for w in weights]


def by_definition(epsilon: float, variance: float, shifts: tuple[int, ...]) -> float:
    """Sum of (P - e^eps Q)+ over all noisy counts of the bins that a record moves."""
    reach = range(-25, 26)
    first = [pmf(variance, 0, reach) for _ in shifts]
    second = [pmf(variance, shift, reach) for shift in shifts]
    total = 0.0
    for place in itertools.product(range(len(reach)), repeat=len(shifts)):
        p = math.prod(chances[n] for chances, n in zip(first, place, strict=True))
        q = math.prod(chances[n] for chances, n in zip(second, place, strict=True))
        total += max(0.0, p - math.exp(epsilon) * q)
    return total


@pytest.mark.parametrize("variance", [0.3, 1.0, 3.7, 5.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_delta_is_that_of_the_definition(variance: float, epsilon: float) -> None:
    one = delta_of(epsilon, Fraction(variance), 1)
    two = delta_of(epsilon, Fraction(variance), 2)
    assert one == pytest.approx(by_definition(epsilon, variance, (1,)), rel=1e-8, abs=1e-14)
    assert two == pytest.approx(by_definition(epsilon, variance, (1, 1)), rel=1e-8, abs=1e-14)
    # A record that is replaced takes a vote from one count and gives it to another.
    assert two == pytest.approx(by_definition(epsilon, variance, (1, -1)), rel=1e-8, abs=1e-14)


def test_it_agrees_with_another_accountant() -> None:
    rows = json.loads(PLD.read_text())
    told = [row for row in rows if row["delta"] > 1e-12]  # below, it rounds
    assert len(told) >= 38
    for row in told:
        ours = delta_of(row["epsilon"], Fraction(row["variance"]), row["votes"])
        assert ours == pytest.approx(row["delta"], rel=3e-9), row


def test_sums_of_much_noise_are_one_noise() -> None:
    # The convolution and its closed form meet at variance 4.
    below, above = Fraction(4) - Fraction(1, 10**15), Fraction(4)
    for votes in (2, 10, 40):
        assert delta_of(1.0, below, votes) == pytest.approx(delta_of(1.0, above, votes), rel=1e-11)


def test_much_noise_is_nearly_noise_on_the_reals() -> None:
    near = delta_at(0.3, mu_of(40.0, 5))
    assert delta_of(0.3, Fraction(1600), 5) == pytest.approx(near, rel=2e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 10.0])
@pytest.mark.parametrize("rounds", [1, 3, 10])
def test_the_noise_is_enough_and_no_more(epsilon: float, rounds: int) -> None:
    variance = variance_for(epsilon, 1e-6, rounds)
    assert delta_of(epsilon, variance, rounds) <= 1e-6
    assert delta_of(epsilon, variance - Fraction(1, 1000), rounds) > 1e-6
    assert epsilon_of(1e-6, variance, rounds) <= epsilon * (1 + 2e-6)
    assert math.sqrt(variance) == pytest.approx(sigma_for(epsilon, 1e-6, rounds), rel=0.1)


def test_noise_on_the_reals_would_be_too_little() -> None:
    sigma = sigma_for(1.0, 1e-6, 1)
    assert delta_of(1.0, Fraction(sigma) ** 2, 1) > 1e-6


def test_more_than_one_record() -> None:
    variance = variance_for(1.0, 1e-6, 2)
    assert epsilon_of(1e-6, variance, 2) <= group_epsilon(1e-6, variance, 2, 1) <= 1.2
    bound = group_epsilon(1e-3, Fraction(9), 1, 3)  # three votes in one bin, or apart
    assert by_definition(bound, 9.0, (3,)) <= 1e-3
    assert by_definition(bound, 9.0, (1, 2)) <= 1e-3
    orders = np.linspace(1.01, 60, 3000)
    renyi = [a * 9 / 18 + math.log(1e3) / (a - 1) for a in orders]  # the plainer conversion
    assert bound <= min(renyi)


def test_a_hopeless_budget_is_refused() -> None:
    with pytest.raises(InputError, match="asks for noise of standard deviation"):
        variance_for(1e-6, 1e-6, 3)
