"""A whole window whose noise is proved and stays closed, and a provider who lies about it."""

import random
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest

from ragwitness.attest.bundle import read_bundle, write_bundle
from ragwitness.attest.challenge import Disclosure, noise_record_of
from ragwitness.attest.commitments import (
    coins_of,
    drawn_noise,
    proof_shape,
    public_coins_of,
    public_numbers,
    secret_coins,
    split_points,
)
from ragwitness.attest.policy import EXAMPLE, WindowPolicy, read_policy
from ragwitness.attest.verifier import verify
from ragwitness.core.errors import InputError
from ragwitness.crypto.proofs.prove_selection import prove_answer
from ragwitness.crypto.proofs.selection import AnswerClaim
from ragwitness.crypto.records import record_hash
from ragwitness.privacy.mechanism import coin_mechanism
from ragwitness.privacy.sampler import CoinNoise
from ragwitness.privacy.streams import sub_seed
from tests.support.attested import LOG, POLICY, Audited, make_audited
from tests.support.mutations import changed_fields, flipped

NOISE = CoinNoise(9, (3,) * 12)
COINED = coin_mechanism(8, 16, 2, NOISE, 16)
PROVED = replace(POLICY, tenants=dict.fromkeys(POLICY.tenants, COINED), epsilon=6.0, delta=1e-8)
SHAPE = proof_shape(PROVED)


@pytest.fixture(scope="module")
def proved(tmp_path_factory) -> Audited:
    folder = tmp_path_factory.mktemp("coins")
    return make_audited(folder, 3, PROVED)


def verdict(audited, files=None):
    bundle = read_bundle(audited.bundle)
    data = audited.bundle
    if files is not None:
        data = write_bundle(bundle.window, {**bundle.files, **files}, (LOG,))
    return verify(data, audited.trust, receipts=audited.receipts)


def failed(audited, files, check):
    found = verdict(audited, files)
    assert found.outcome == "fail"
    assert found.why.startswith(f"{check}: "), found.why


def challenged(audited):
    """The first opened record: its place, the record, its file of coins and what opens it."""
    bundle = read_bundle(audited.bundle)
    place = bundle.records[0]
    record = [r for r in audited.records if hasattr(r, "sequence")][place]
    coins, opened = (bundle.files[f"records/{place}.{end}"] for end in ("coins", "json"))
    return place, record, coins, Disclosure.parse(opened)


@pytest.mark.slow
def test_a_window_whose_noise_stays_closed_passes(proved):
    found = verdict(proved)
    assert found.outcome == "pass", found.why
    [number, _] = found.numbers
    assert number.odometer is None
    assert number.exact == COINED.coin_epsilon(PROVED.joint_delta, number.cap, "replace")
    assert any("stays closed" in note for note in found.notes)


def test_no_sub_seed_is_in_the_bundle(proved):
    bundle = read_bundle(proved.bundle)
    window, everything = proved.window, b"".join(bundle.files.values())
    for number in range(PROVED.seed_count):
        seed = window.sub_seed(number)
        assert seed not in everything
        assert seed.hex().encode() not in everything


def test_the_answers_are_those_of_the_noise_that_both_sides_give(proved):
    place, record, _, opened = challenged(proved)
    number, kept = int(record.number), proved.window.kept(place).opened
    seed = proved.window.sub_seed(number)
    made_of = noise_record_of(record, opened.query)
    noise = drawn_noise(NOISE, seed, proved.window.ledger.beacon, made_of, number, 16)
    scores = proved.window.rows(record.tenant).astype(np.int64) @ kept.vector.astype(np.int64)
    assert tuple(np.argsort(-(scores + noise), kind="stable")[:2].tolist()) == kept.ids
    other = drawn_noise(
        NOISE, seed, proved.window.ledger.beacon, replace(made_of, nonce="another"), number, 16
    )
    assert (noise != other).any()


def test_commitments_are_those_of_the_numbers_and_no_two_are_alike(proved):
    window = proved.window
    data = window.folder.coins.read_bytes()
    every = list(split_points(data, PROVED.seed_count))
    assert len(set(every)) == PROVED.seed_count
    again = secret_coins(PROVED, sub_seed(window._seed, PROVED.window, 5))
    assert b"".join(again.commit(SHAPE)) == every[5]


def proof_of(proved, record, opened, public, secret):
    """Return a proof of a challenged record under public coins and numbers of one's own."""
    place = read_bundle(proved.bundle).records[0]
    rows, kept = proved.window.secret_columns(record.tenant), proved.window.kept(place).opened
    scores = rows.rows.astype(np.int64) @ kept.vector.astype(np.int64)
    sums = [(a + p) % (1 << NOISE.bits) for a, p in zip(secret.numbers, public.public, strict=True)]
    bits = np.array([[total >> i & 1 for i in range(NOISE.bits)] for total in sums])
    noise = np.full(16, -NOISE.centre, np.int64)
    noisy = scores + noise + bits @ np.array(NOISE.coefficients, np.int64)
    ids = tuple(np.argsort(-noisy, kind="stable")[:2].tolist())
    vector, context = kept.vector.astype(np.int16), record_hash(record)
    claim = AnswerClaim(rows.public, vector, noise, ids, context, public)
    return prove_answer(SHAPE, claim, rows, secret)


# Lies about the noise.


def test_another_number_s_commitment_is_refused(proved):
    place, record, *_ = challenged(proved)
    other = proved.window.coin_points(int(record.number) ^ 1)
    failed(proved, {f"records/{place}.coins": other}, "coins.commitment")


def test_a_commitment_that_no_leaf_holds_is_refused(proved):
    """The provider draws new numbers for an answer that it has seen asked."""
    place, record, _, opened = challenged(proved)
    fresh = secret_coins(PROVED, sha256(b"fresh").digest())
    points = b"".join(fresh.commit(SHAPE))
    from ragwitness.attest.commitments import coin_leaf

    made_of = noise_record_of(record, opened.query)
    limbs = public_numbers(NOISE, proved.window.ledger.beacon, made_of, int(record.number), 16)
    public = public_coins_of(NOISE, points, limbs, SHAPE)
    proof = proof_of(proved, record, opened, public, fresh)
    changed = {f"records/{place}.coins": points, f"records/{place}.proof": proof}
    failed(proved, changed, "coins.commitment")
    bent = replace(opened, seed=coin_leaf(points)).encode()
    failed(proved, {**changed, f"records/{place}.json": bent}, "seed.opening")


@pytest.mark.parametrize("what", ["nonce", "checkpoint", "query", "number", "account", "beacon"])
def test_coins_of_another_request_are_refused(proved, what):
    """A provider proves its answer's bits under the public coins that it would have liked."""
    place, record, coins, opened = challenged(proved)
    made_of = noise_record_of(record, opened.query)
    number, beacon = int(record.number), proved.window.ledger.beacon
    if what == "number":
        number += 1
    elif what == "beacon":
        beacon = bytes(32)
    else:
        made_of = replace(made_of, **{what: "other"})
    limbs = public_numbers(NOISE, beacon, made_of, number, 16)
    public = public_coins_of(NOISE, coins, limbs, SHAPE)
    secret = secret_coins(PROVED, proved.window.sub_seed(int(record.number)))
    proof = proof_of(proved, record, opened, public, secret)
    assert verdict(proved, {f"records/{place}.proof": proof}).failures[0].failure in (
        "link.statement",  # the answer is another too
        "link.noise",
    )


def test_another_record_s_proof_is_refused(proved):
    one, two, _ = read_bundle(proved.bundle).records
    files = read_bundle(proved.bundle).files
    swapped = {f"records/{one}.coins": files[f"records/{two}.coins"]}
    failed(proved, swapped, "coins.commitment")
    failed(proved, {f"records/{one}.proof": files[f"records/{two}.proof"]}, "link.statement")


def test_a_bundle_without_the_proof_of_its_noise_is_refused(proved, audited):
    bundle = read_bundle(proved.bundle)
    files = {name: data for name, data in bundle.files.items() if not name.endswith(".coins")}
    found = verify(write_bundle(bundle.window, files, (LOG,)), proved.trust)
    assert found.why.startswith("bundle.missing")
    # And one that proves noise which its policy opens.
    bundle = read_bundle(audited.bundle)
    more = {f"records/{place}.coins": b"x" for place in bundle.records}
    found = verify(write_bundle(bundle.window, {**bundle.files, **more}, (LOG,)), audited.trust)
    assert found.why.startswith("bundle.extra")


def test_every_part_of_the_file_of_coins_is_bound(proved):
    place, _, coins, _ = challenged(proved)
    for at in range(5, len(coins), 7):
        bent = coins[:at] + bytes([coins[at] ^ 1]) + coins[at + 1 :]
        assert verdict(proved, {f"records/{place}.coins": bent}).outcome == "fail", at
    for bent in (b"", coins[:-1], coins + b"\0"):
        assert verdict(proved, {f"records/{place}.coins": bent}).outcome == "fail"


# Policies.


def written(tmp_path, **changes):
    text = EXAMPLE.replace('noise = "opened"', 'noise = "proved"')
    for old, new in changes.values():
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "policy.toml"
    path.write_text(text)
    return path


@pytest.mark.slow
def test_no_field_of_any_file_is_read_past(proved):
    """Each field changed and signed by the provider; benchmarks/mutations.py tries all of them."""
    rng = random.Random(8)
    bundle = read_bundle(proved.bundle)
    every = [
        (name, what, data)
        for name in sorted(bundle.files)
        for what, data in changed_fields(name, bundle.files[name])
    ]
    for name, what, data in rng.sample(every, 60):
        found = verdict(proved, {name: data})
        assert found.outcome == "fail", (name, what)
        assert all(check.failure for check in found.failures)


@pytest.mark.parametrize("count", [40, pytest.param(2_000, marks=pytest.mark.long)])
def test_flipped_bits_that_the_provider_signs(proved, count):
    rng = random.Random(count)
    files = dict(read_bundle(proved.bundle).files)
    for _ in range(count):
        name, at, bit, data = flipped(files, rng)
        found = verdict(proved, {name: data})
        assert found.outcome == "fail", (name, at, bit)
        assert all(check.failure for check in found.failures)


def test_the_example_proves_its_noise_and_keeps_its_promise(tmp_path):
    policy = read_policy(written(tmp_path))
    noise = coins_of(policy)
    [mechanism] = policy.tenants.values()
    assert noise is not None
    found = mechanism.coin_epsilon(policy.delta, policy.queries, policy.relation)
    assert 0.9 * policy.epsilon < found <= policy.epsilon
    assert WindowPolicy.parse(policy.encode()) == policy


def test_opened_seeds_are_a_mode_by_name(tmp_path):
    path = written(tmp_path, noise=('noise = "proved"', 'noise = "opened"'))
    assert coins_of(read_policy(path)) is None
    with pytest.raises(InputError, match="proved or opened"):
        read_policy(written(tmp_path, noise=('noise = "proved"', 'noise = "hidden"')))


def test_a_given_sigma_is_reached_and_has_to_keep_the_promise(tmp_path):
    policy = read_policy(written(tmp_path, sigma=("# sigma = 60.0  ", "sigma = 80.0")))
    [mechanism] = policy.tenants.values()
    assert 80 <= float(mechanism.variance) ** 0.5 / 128**2 < 84
    with pytest.raises(InputError, match="sigma is too small"):
        read_policy(written(tmp_path, sigma=("# sigma = 60.0  ", "sigma = 8.0")))


def test_more_answers_than_can_be_committed_to_are_refused_with_the_other_mode(tmp_path):
    wide = ("capacity = 1000 ", "capacity = 16000 ")
    path = written(tmp_path, most=("accounts_most = 20 ", "accounts_most = 4000 "), wide=wide)
    with pytest.raises(InputError, match="slots of noise to commit to") as caught:
        read_policy(path)
    assert 'noise = "opened"' in caught.value.hint


def test_tenants_with_different_noise_are_refused():
    other = coin_mechanism(8, 16, 2, CoinNoise(9, (4,) * 12), 16)
    with pytest.raises(InputError, match="before an answer has a tenant"):
        replace(PROVED, tenants={"clinic": COINED, "archive": other})
    with pytest.raises(InputError, match="before an answer has a tenant"):
        replace(PROVED, tenants={"clinic": COINED, "archive": next(iter(POLICY.tenants.values()))})


def test_where_the_floor_of_proved_noise_decided_it_is_said(tmp_path):
    """Epsilon 50 is asked for, and noise of coins gives 2.4: retrieval is chance either way."""
    from ragwitness.attest.trust import worth_of

    asked = ("epsilon = 1.0 ", "epsilon = 50.0 ")
    one = {"q": ("queries = 25 ", "queries = 1 "), "k": ("k_max = 4 ", "k_max = 1 ")}
    [said] = worth_of(read_policy(written(tmp_path, e=asked, **one)))
    assert (
        "any other slot with 0.004; the floor of proved noise gives an account epsilon 2.43" in said
    )
    assert "where 50 was asked for" in said
    [said] = worth_of(read_policy(written(tmp_path)))
    assert said.endswith("any other slot with 0.004")
    opened = ('noise = "proved"', 'noise = "opened"')
    [said] = worth_of(read_policy(written(tmp_path, e=asked, n=opened, **one)))
    assert "floor" not in said
