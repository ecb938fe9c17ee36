"""Tenants whose noise is proved without being opened: promise, meters, lives, windows."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragwitness.attest.commitments import coin_leaf, drawn_noise
from ragwitness.attest.policy import read_policy
from ragwitness.attest.receipts import Receipt, check_receipt
from ragwitness.attest.window import Window
from ragwitness.core.errors import InputError
from ragwitness.crypto.merkle import verify_seed
from ragwitness.crypto.notes import Signers
from ragwitness.models.embedders import HashingEmbedder
from ragwitness.privacy.release import SlotIndex, quantise, release_noise
from ragwitness.privacy.streams import NoiseRecord
from ragwitness.service.policy import Claim, TenantPolicy, make_policy
from ragwitness.service.retrieval import Retriever
from ragwitness.service.store import Store
from ragwitness.service.tenants import budget_of, create_tenant
from ragwitness.service.window import Logs, policy_text
from tests.support.service import SMALL, commit_without_proofs, make_tenant
from tests.support.windows import KEY

CLAIM = Claim(mechanism="noise",
    epsilon=1, queries=3, accounts=2, capacity=16, top=2, embedder="hashing:32",
    relation="add-remove", scale=64, sampler="coins",
)  # fmt: skip


def test_the_promise_is_kept_by_the_exact_account_and_by_no_less_noise() -> None:
    made = make_policy(CLAIM, 32)
    assert made.mechanism.coins is not None
    epsilon = made.mechanism.coin_epsilon(1e-8, 3, "add-remove")
    assert epsilon is not None
    assert 0.85 < epsilon <= 1
    # k_max accounts for a window, twelve windows for life, each at the policy's delta.
    assert (made.budget**2, made.life**2) == (pytest.approx(6), pytest.approx(72))
    exact = [made.mechanism.coin_epsilon(1e-6, count, "add-remove") for count in (6, 72)]
    assert [made.claim.joint_epsilon, made.claim.lifetime_epsilon] == exact
    assert made.epsilon_of(math.sqrt(6)) == exact[0]
    assert made.epsilon_of(0.0) == 0.0
    assert TenantPolicy.from_json(made.to_json()) == made
    assert "lasting" not in json.loads(make_policy(SMALL, 64).to_json())


def test_an_epsilon_that_is_named_bounds_the_answers() -> None:
    named = replace(CLAIM, joint_epsilon=3.0, lifetime_epsilon=4.0)
    made = make_policy(named, 32)
    for spent, most in ((made.budget, 3.0), (made.life, 4.0)):
        answers = round(spent**2)
        epsilons = [made.epsilon_of(math.sqrt(count)) for count in (answers, answers + 1)]
        assert epsilons[0] <= most < epsilons[1]
    with pytest.raises(InputError, match="One answer of this noise"):
        make_policy(replace(CLAIM, joint_epsilon=0.1), 32)
    with pytest.raises(InputError, match="below that of one window"):
        make_policy(replace(named, lifetime_epsilon=2.0), 32)


def test_what_cannot_be_proved_is_refused() -> None:
    with pytest.raises(InputError, match="scores that can be proved"):
        make_policy(replace(CLAIM, scale=None), 32)
    # Edges are reached more often than so, whatever the noise: there is no epsilon.
    with pytest.raises(InputError, match="No noise that is proved keeps"):
        make_policy(replace(CLAIM, delta=1e-300, joint_delta=1e-280), 32)


def test_the_index_gives_as_many_answers_as_were_accounted_for_whoever_asks(
    service: Any, retrieve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Gaussian's odometer lets unlike queries go on; these edges have no such account."""
    monkeypatch.setattr("ragwitness.service.tenants.time.time", lambda: 0.0)
    keys = make_tenant(service.store, "acme", 4, claim=CLAIM)
    said = [retrieve(keys[i % 4], query=f"door {i}").status_code for i in range(9)]
    assert said == [200] * 6 + [429] * 3
    told = budget_of(service.store, "acme", now=0.0)
    assert (told.queries, round(told.mu**2), round(told.budget**2)) == (6, 6, 6)
    assert told.epsilon == told.joint_epsilon
    service.now = CLAIM.window  # the next window has as much again
    assert retrieve(keys[0], query="door").status_code == 200
    assert round(budget_of(service.store, "acme", now=float(service.now)).mu ** 2) == 1


@pytest.mark.parametrize("epsilon", [0.3, 5.0])
def test_the_policy_of_a_tenant_gives_its_noise_again(
    store: Store, tmp_path: Path, epsilon: float
) -> None:
    made = create_tenant(store, "acme", replace(CLAIM, epsilon=epsilon))
    path = tmp_path / "policy.toml"
    path.write_text(policy_text(store, "acme"))
    assert 'noise = "proved"' in path.read_text()
    assert read_policy(path).tenants["acme"] == made.mechanism


def test_a_served_answer_has_the_committed_noise_and_no_seed_of_it_is_shown(
    service: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragwitness.service.window.time.time", lambda: 0.0)
    keys = make_tenant(service.store, "acme", 2, claim=CLAIM)
    folder, key = commit_without_proofs(service.store, "acme", tmp_path, monkeypatch)
    logs = Logs(service.store, [str(folder)], str(key))
    service.retriever.close()
    service.retriever = Retriever(service.store, clock=lambda: 0.0, logs=logs)
    told = service.send("/v1/log/checkpoint", key=keys[0]).json()
    body = {"query": "the code of door 3", "nonce": "n", "checkpoint": told["checkpoint"]}
    reply = service.send("/v1/retrieval", body, keys[0])
    assert reply.status_code == 200, reply.text
    receipt = Receipt.parse(reply.json()["receipt"].encode())
    record = check_receipt(receipt, Signers((KEY.public,)))[0]
    # The noise again, of committed and public numbers; and what commits to it is in the tree.
    window = Window.load(folder)
    mechanism = window.policy.tenants["acme"]
    assert mechanism.coins is not None
    made_of = NoiseRecord(
        "acme-0", "acme", "a0", 0, "n", told["checkpoint"], receipt.opened.query.hex(),
        mechanism.digest,
    )  # fmt: skip
    beacon, seed = bytes.fromhex("be" * 32), window.sub_seed(0)
    noise = drawn_noise(mechanism.coins, seed, beacon, made_of, 0, mechanism.capacity)
    vector = quantise(HashingEmbedder(32).embed(["the code of door 3"])[0], mechanism)
    index = SlotIndex(window.rows("acme"), mechanism)
    assert release_noise(vector, index, noise, mechanism).ids == receipt.opened.ids
    assert record.mechanism == mechanism.digest
    leaf, path = window.seed_opening(0)
    assert leaf == coin_leaf(window.coin_points(0)) != seed
    root, count = window.ledger.opened.seed_root, window.policy.seed_count
    verify_seed(bytes.fromhex(root), count, 0, leaf, path)
    assert np.ptp(noise) > 0
