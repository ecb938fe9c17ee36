import math
from dataclasses import replace
from typing import Any

import pytest

from ragwitness.errors import InputError
from ragwitness.privacy.accounting.gaussian import delta_at, epsilon_at
from ragwitness.service.policy import Claim, TenantPolicy, make_policy

SMALL = Claim(queries=20, accounts=4, capacity=32, top=3)


def test_noise_is_the_least_that_keeps_the_account_s_promise() -> None:
    policy = make_policy(SMALL, 64)
    claim = policy.claim
    # By hand: q answers of sensitivity 2 are Gaussian with mu = 2 sqrt(q) / sigma.
    assert claim.sigma is not None
    ideal = 2 * math.sqrt(20) / claim.sigma
    assert delta_at(1.0, ideal) == pytest.approx(1e-8, rel=0.1)
    assert policy.account_epsilon <= 1.0
    less = replace(SMALL, sigma=claim.sigma * 0.98)
    with pytest.raises(InputError, match=r"come to epsilon 1\.0\d+, not 1, at delta 1e-08"):
        make_policy(less, 64)


def test_joint_budget_is_what_the_cap_may_come_to() -> None:
    policy = make_policy(SMALL, 64)
    claim = policy.claim
    assert policy.budget == pytest.approx(policy.terms.worst_mu(80), rel=1e-9)
    assert claim.joint_epsilon == pytest.approx(epsilon_at(1e-6, policy.terms.worst_mu(80)))
    assert claim.payer_queries == 80
    chosen = make_policy(replace(SMALL, joint_epsilon=0.7), 64)
    assert epsilon_at(1e-6, chosen.budget) == pytest.approx(0.7)


def test_add_remove_needs_half_the_noise() -> None:
    replaced = make_policy(SMALL, 64).claim.sigma
    added = make_policy(replace(SMALL, relation="add-remove"), 64).claim.sigma
    assert replaced is not None
    assert added is not None
    assert added / replaced == pytest.approx(0.5, rel=0.02)


def test_policies_survive_the_database() -> None:
    policy = make_policy(replace(SMALL, joint_epsilon=1.25), 384)
    again = TenantPolicy.from_json(policy.to_json())
    assert again == policy
    assert again.mechanism.digest == policy.mechanism.digest
    for damaged in ("", "[]", "{}", policy.to_json().replace("variance", "varianz")):
        with pytest.raises(InputError, match="policy of a tenant cannot be read"):
            TenantPolicy.from_json(damaged)


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"epsilon": 0.0}, "epsilon must be .*0, not 0"),
        ({"epsilon": math.nan}, "epsilon must be .*not nan"),
        ({"delta": 0.0}, "delta must be .*not 0"),
        ({"delta": 1.5}, "delta must be .*not 1.5"),
        ({"delta": 2.5e-7}, r"k_max x delta is 1e-06, which is not below delta\* = 1e-06"),
        ({"joint_delta": 1.0}, r"delta\* must be .*not 1"),
        ({"queries": 0}, "queries must be .*not 0"),
        ({"queries": 2.5}, "queries must be .*not 2.5"),
        ({"accounts": 0}, "accounts must be .*not 0"),
        ({"sigma": -1.0}, "sigma must be .*not -1"),
        ({"sigma": math.inf}, "sigma must be .*not inf"),
        ({"sigma": 3.0}, "With sigma 3 an account's 20 queries come to epsilon"),
        ({"joint_epsilon": -2.0}, "joint_epsilon must be .*not -2"),
        ({"joint_epsilon": 60.0}, "an epsilon of 60"),
        ({"payer_queries": 0}, "payer_queries must be .*not 0"),
        ({"top": 0}, "top must be .*not 0"),
        ({"top": 33}, "top must be .* 1 to 32, not 33"),
        ({"capacity": 0}, "capacity must be .*not 0"),
        ({"window": 59}, "60 to 316224000 seconds, not 59"),
        ({"relation": "swap"}, "relation: 'swap'"),
        ({"sampler": "fast"}, "sampler 'fast'"),
    ],
)
def test_values_outside_their_ranges_are_named(change: dict[str, Any], shown: str) -> None:
    with pytest.raises(InputError, match=shown):
        make_policy(replace(SMALL, **change), 64)


def test_many_queries_take_the_exact_sampler() -> None:
    """50,000 queries at epsilon 1 need noise that no table holds."""
    policy = make_policy(Claim(queries=50_000, capacity=16), 64)
    assert policy.mechanism.sampler == "exact"
    assert policy.account_epsilon <= 1.0
