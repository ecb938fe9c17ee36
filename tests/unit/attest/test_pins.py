"""What a verifier accepts: read from its trust file, held against a policy, refused where it is
no bound at all."""

import json

import pytest

from ragwitness.attest.policy import Estimator
from ragwitness.attest.trust import (
    Pins,
    PolicyBounds,
    Trust,
    parse_pins,
    parse_trust,
    weak_points,
    worst_epsilon,
)
from ragwitness.core.errors import InputError
from ragwitness.crypto.keys import KeyKind, PrivateKey
from ragwitness.crypto.notes import Signers
from ragwitness.privacy.mechanism import Mechanism
from tests.support.attested import POLICY
from tests.support.windows import policy

LOG = PrivateKey("example.org/log", KeyKind.NOTE, bytes([1]) * 32).public
BOUNDS = PolicyBounds(6.0, 1e-6, 2, 0.95)


def test_pins_read_back_out_of_a_trust_file():
    pins = Pins("ab" * 32, BOUNDS, "cd" * 32, 3)
    trust = Trust(Signers((LOG,)), pins=pins)
    assert parse_trust(trust.encode()) == trust
    assert b"pins" not in Trust(Signers((LOG,))).encode()
    by_hand = {"epsilon_most": 6, "delta_most": 1e-6, "k_max_least": 2, "threshold_most": 0.95}
    value = json.loads(trust.encode())
    value["pins"]["bounds"] = by_hand
    assert parse_trust(json.dumps(value).encode()) == trust


@pytest.mark.parametrize(
    ("change", "said"),
    [
        # The wrong way round: a name that would bound nothing is refused, not passed over.
        ({"epsilon_least": "1.0"}, "at bounds.epsilon_least"),
        ({"k_max_most": 4}, "at bounds.k_max_most"),
        ({"threshold_least": "0.5"}, "at bounds.threshold_least"),
        ({"epsilon_most": ...}, "Field required, at bounds.epsilon_most"),
        ({"k_max_least": ...}, "Field required, at bounds.k_max_least"),
        ({"epsilon_most": "61"}, "at most 60"),
        ({"epsilon_most": "0"}, "epsilon_most"),
        ({"epsilon_most": "nan"}, "epsilon_most"),
        ({"epsilon_most": "inf"}, "epsilon_most"),
        ({"epsilon_most": "six"}, "float: .six.*at bounds.epsilon_most"),
        ({"epsilon_most": True}, "Input should be a valid number, at bounds.epsilon_most"),
        ({"delta_most": "1"}, "delta_most"),
        ({"k_max_least": 0}, "k_max_least"),
        ({"k_max_least": "2"}, "k_max_least"),
        ({"threshold_most": "1.5"}, "threshold_most"),
        ({"threshold_most": "nan"}, "threshold_most"),
        ({"span_least": -1}, "span_least"),
        ({"relation": "any"}, "relation"),
        ({"nonces_required": "yes"}, "nonces_required"),
    ],
)
def test_a_bound_that_bounds_nothing_is_refused(change, said):
    value = BOUNDS.plain() | change
    value = {name: part for name, part in value.items() if part is not ...}
    with pytest.raises(InputError, match=said):
        parse_pins({"bounds": value})


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"policy": "AB" * 32},
        {"policy": "ab"},
        {"policy": 1},
        {"embedder": "x" * 64},
        {"bounds": []},
        {"quorum": 1},
        {"unsigned_most": -1},
        {"unsigned_most": "3"},
        {"unsigned_most": True},
        {"accounts": []},
        {"accounts": {"clinic/ann": ""}},
        {"accounts": {"clinic/ann": "AB" * 32}},
    ],
)
def test_pins_say_only_what_can_be(value):
    with pytest.raises(InputError):
        parse_pins(value)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"epsilon": 9.0, "tenants": {"clinic": Mechanism(8, 16, 2, 1 << 17, 0, scale=16)}},
         "epsilon"),
        ({"joint_delta": 1e-5}, "delta"),
        ({"k_max": 1}, "k_max"),
        ({"estimator": Estimator("pairs", 1.0)}, "threshold"),
        ({"estimator": Estimator("pairs", 0.9, 5)}, "span"),
        ({"relation": "add-remove"}, "relation"),
        ({"nonces_required": False}, "nonces"),
    ],
)  # fmt: skip
def test_each_bound_is_broken_by_a_policy_that_is_weaker_in_it_alone(change, name):
    strong = policy(tenants={"clinic": POLICY.tenants["clinic"]})
    assert BOUNDS.broken(strong) == []
    weaker = policy(**({"tenants": strong.tenants} | change))
    assert [broken for broken, _ in BOUNDS.broken(weaker)] == [name]


def test_a_span_is_kept_by_a_longer_one_and_by_none():
    bounds = PolicyBounds(6.0, 1e-6, 2, 0.95, span_least=5)
    for span, kept in ((0, True), (4, False), (5, True), (6, True)):
        used = policy(tenants=POLICY.tenants, estimator=Estimator("pairs", 0.9, span))
        assert (bounds.broken(used) == []) is kept


def test_the_policy_of_the_review_is_weak_in_all_its_points():
    """Epsilon 58, k_max 1, threshold 1.0: it used to pass without a word."""
    noise = Mechanism(8, 16, 2, 20_000, 0, scale=16)
    found = policy(
        tenants={"clinic": noise},
        epsilon=58.0,
        k_max=1,
        estimator=Estimator("pairs", 1.0),
        nonces_required=False,
    )
    assert worst_epsilon(found) > 10
    said = " | ".join(weak_points(found))
    for part in ("epsilon", "k_max 1", "threshold 1", "no nonces"):
        assert part in said
    strong = policy(tenants=POLICY.tenants)
    assert weak_points(strong) == []
