import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ragwitness.core.errors import InputError
from ragwitness.privacy.gaussian import epsilon_at
from ragwitness.privacy.odometer import Odometer
from ragwitness.privacy.release import SlotIndex, quantise, scores
from ragwitness.service.policy import Claim, TenantPolicy, make_policy
from tests.support.gaussian import delta_at

SMALL = Claim(mechanism="noise", epsilon=1.0, queries=20, accounts=4, capacity=32, top=3)


def account_epsilon(policy: TenantPolicy) -> float:
    """Exact epsilon of one account that asks all it may, at its delta."""
    claim = policy.claim
    return epsilon_at(claim.delta, policy.terms.worst_mu(claim.queries))


def test_noise_is_the_least_that_keeps_the_account_s_promise() -> None:
    policy = make_policy(SMALL, 64)
    claim = policy.claim
    # By hand: q answers of sensitivity 2 are Gaussian with mu = 2 sqrt(q) / sigma.
    assert claim.sigma is not None
    ideal = 2 * math.sqrt(20) / claim.sigma
    assert delta_at(1.0, ideal) == pytest.approx(1e-8, rel=0.1)
    assert account_epsilon(policy) <= 1.0


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
        ({"joint_epsilon": -2.0}, "joint_epsilon must be .*not -2"),
        ({"joint_epsilon": 60.0}, "an epsilon of 60"),
        ({"payer_queries": 0}, "payer_queries must be .*not 0"),
        ({"top": 0}, "top must be .*not 0"),
        ({"top": 33}, "top must be .* 1 to 32, not 33"),
        ({"capacity": 0}, "capacity must be .*not 0"),
        ({"window": 59}, "60 to 316224000 seconds, not 59"),
        ({"relation": "swap"}, "relation: 'swap'"),
        ({"sampler": "fast"}, "sampler 'fast'"),
        ({"clip": (0.5, 0.5)}, r"cannot be clipped to 0\.5\.\.0\.5"),
        ({"clip": (0.6, 0.1)}, "cannot be clipped"),
        ({"clip": (-1.1, 0.5)}, "cannot be clipped"),
        ({"clip": (0.0, 1.5)}, "cannot be clipped"),
        ({"clip": (math.nan, 0.5)}, "cannot be clipped to nan"),
    ],
)
def test_values_outside_their_ranges_are_named(change: dict[str, Any], shown: str) -> None:
    with pytest.raises(InputError, match=shown):
        make_policy(replace(SMALL, **change), 64)


def test_many_queries_take_the_exact_sampler() -> None:
    """50,000 queries at epsilon 1 need noise that no table holds."""
    policy = make_policy(Claim(mechanism="noise", epsilon=1.0, queries=50_000, capacity=16), 64)
    assert policy.mechanism.sampler == "exact"
    assert account_epsilon(policy) <= 1.0


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("clip", [(0.0, 0.5), (0.2, 0.6), (-0.3, 0.1), (-1.0, 1.0)])
def test_clipped_scores_need_less_noise_and_move_no_further(relation, clip) -> None:
    """The opponent picks document, neighbour and query freely; no score moves by more than charged.

    A meter that charged the width of other bounds, or the empty slot at 0 where it scores
    ``clip``'s lower end, would be passed here.
    """
    bare = make_policy(replace(SMALL, relation=relation), 16)
    policy = make_policy(replace(SMALL, relation=relation, clip=clip), 16)
    mechanism = policy.mechanism
    empty = min(max(0.0, clip[0]), clip[1])
    low, high = clip
    width = high - low if relation == "replace" else max(high - empty, empty - low)
    assert policy.sensitivity == pytest.approx(width, rel=0.02)
    assert policy.claim.sigma / bare.claim.sigma == pytest.approx(  # type: ignore[operator]
        width / bare.sensitivity, rel=0.02
    )
    assert account_epsilon(policy) <= 1.0 + 1e-9
    axis = np.zeros(16)
    axis[0] = 1.0
    others = np.random.default_rng(0).standard_normal((200, 16)) + 2 * np.outer(
        np.linspace(-4, 4, 200), axis
    )
    documents = quantise(np.vstack([axis, -axis, others]), mechanism)
    rows = np.zeros((32, 16), np.int16)
    query = quantise(axis, mechanism)[None]
    seen = []
    for one in documents:
        rows[0] = one
        seen.append(int(scores(query, SlotIndex(rows, mechanism), mechanism)[0][0]))
    steps = mechanism.scale**2 >> mechanism.shift
    there = seen if relation == "replace" else [mechanism.empty_score]
    moved = max(abs(a - b) for a in seen for b in there) / steps
    # A quantised vector is a little shorter than 1, and scores are rounded down to the grid.
    assert policy.sensitivity * 0.98 - 2 / steps <= moved <= policy.sensitivity


def test_the_index_meter_of_clipped_scores_stops_where_their_width_says() -> None:
    """One question repeated spends fastest."""
    for clip in (None, (0.0, 0.5)):
        policy = make_policy(replace(SMALL, clip=clip, joint_epsilon=1.0), 16)
        meter = Odometer(policy.terms)
        vector = quantise(np.ones(16), policy.mechanism)
        count = next(n for n in range(5000) if not meter.charge(vector))
        most = (policy.budget / policy.terms.worst_mu(1)) ** 2
        assert count == pytest.approx(most, abs=1.5)


def test_narrow_bounds_have_a_grid_that_holds_them_apart() -> None:
    claim = Claim(mechanism="noise", epsilon=1.0, queries=1000, capacity=16, clip=(0.55, 0.56))
    policy = make_policy(claim, 64)
    low, high = policy.mechanism.bounds
    assert high - low >= 8
    assert policy.sensitivity == pytest.approx(0.01, rel=0.1)


def test_bounds_are_stored_and_read() -> None:
    clipped = make_policy(replace(SMALL, clip=(0.0, 0.5)), 64)
    assert TenantPolicy.from_json(clipped.to_json()) == clipped
    with pytest.raises(InputError, match="cannot be read"):
        TenantPolicy.from_json(clipped.to_json().replace("[0.0, 0.5]", "[0.0]"))
