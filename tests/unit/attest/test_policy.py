"""Policies: one text each, and refused by name otherwise; the TOML form and its noise."""

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest

from ragwitness.attest.commitments import (
    CommittedEmbedder,
    IndexCard,
    document_opening,
    documents_root,
    index_commitment,
    proof_shape,
)
from ragwitness.attest.policy import EXAMPLE, Estimator, WindowPolicy, read_policy
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.hashing import canonical, commit
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.privacy.gaussian import epsilon_at
from ragwitness.privacy.mechanism import Mechanism
from ragwitness.privacy.odometer import Terms
from tests.support.windows import DIGEST, policy


def _changed(**change):
    value = json.loads(policy().encode())
    return canonical({k: v for k, v in (value | change).items() if v is not ...})


def _tenant(**change):
    value = json.loads(policy().encode())["tenants"]
    value["clinic"] |= change
    return value


def test_a_policy_reads_back_and_its_digest_is_that_of_its_bytes():
    made = policy()
    again = WindowPolicy.parse(made.encode())
    assert again == made
    assert list(again.tenants) == ["archive", "clinic"]  # sorted, as the open record has them
    assert again.digest == made.digest
    assert made.seed_count == 12
    assert again.tenants["clinic"].digest == made.tenants["clinic"].digest


def test_the_digest_changes_with_every_field():
    mechanism = Mechanism(8, 16, 2, Fraction(801, 2), 0, scale=64)
    changes = [
        {"window": "2026-W48"},
        {"tenants": {"clinic": mechanism}},
        {"relation": "add-remove"},
        {"queries": 4},
        {"accounts_most": 5},
        {"epsilon": 999.0},
        {"delta": 1e-9},
        {"k_max": 3},
        {"joint_delta": 2e-6},
        {"estimator": Estimator("cores", 0.9)},
        {"estimator": Estimator("pairs", 0.8)},
        {"estimator": Estimator("pairs", 0.9, 100)},
        {"estimator": Estimator("pairs", 0.9, together=False)},
        {"nonces_required": False},
    ]
    made = [policy(**change) for change in changes]
    assert len({one.digest for one in [policy(), *made]}) == len(changes) + 1
    assert all(WindowPolicy.parse(one.encode()) == one for one in made)


@pytest.mark.parametrize(
    ("data", "check"),
    [
        (_changed(version="ragwitness/policy/v3"), "policy.version"),
        (b"[]", "policy.version"),
        (_changed(more="1"), "policy.fields"),
        (_changed(delta=...), "policy.fields"),
        (_changed(queries=3), "policy.fields"),
        (_changed(tenants=[]), "policy.fields"),
        (_changed(tenants={"clinic": None}), "policy.fields"),
        (_changed(nonces_required="true"), "policy.fields"),
        (_changed(tenants=_tenant(more="1")), "policy.fields"),
        (_changed(estimator={"name": "pairs"}), "policy.fields"),
        (_changed(estimator={"name": "pairs", "threshold": "0.9"}), "policy.fields"),
        (
            _changed(estimator={"name": "pairs", "span": "-1", "threshold": "0.9"}),
            "policy.invalid",
        ),
        (_changed(version="ragwitness/policy/v1"), "policy.fields"),
        (_changed(queries="03"), "policy.fields"),
        (_changed(queries="-3"), "policy.invalid"),
        (_changed(epsilon="1000"), "policy.fields"),
        (_changed(epsilon="1e3"), "policy.fields"),
        (_changed(epsilon="0x1p3"), "policy.fields"),
        (_changed(delta="nan"), "policy.invalid"),
        (_changed(queries="1_0"), "policy.fields"),
        (_changed(queries="\uff13"), "policy.fields"),
        (_changed(k_max="1" + "0" * 400), "policy.fields"),
        (_changed(tenants=_tenant(variance="800/2")), "policy.fields"),
        (_changed(tenants=_tenant(variance="800/0")), "policy.fields"),
        (_changed(tenants=_tenant(variance="1e999999999")), "policy.fields"),
        (_changed(tenants=_tenant(low="-0")), "policy.fields"),
        (_changed(epsilon="1e999"), "policy.invalid"),
        (_changed(delta="1.0"), "policy.invalid"),
        (_changed(k_max="100"), "policy.invalid"),  # k_max x delta = delta*
        (_changed(k_max="0"), "policy.invalid"),
        (_changed(accounts_most="4294967296"), "policy.invalid"),
        (_changed(accounts_most="4097", queries="1"), "policy.invalid"),
        (_changed(accounts_most="1001", queries="100"), "policy.invalid"),
        (_changed(joint_delta="0.011"), "policy.invalid"),
        (_changed(tenants=_tenant(dimension="8193")), "policy.invalid"),
        (
            _changed(estimator={"name": "pairs", "span": "0", "threshold": "0.99999"}),
            "policy.invalid",
        ),
        (_changed(relation="any"), "policy.invalid"),
        (_changed(window="a b"), "policy.invalid"),
        (_changed(tenants={}), "policy.invalid"),
        (_changed(tenants=_tenant(sampler="other")), "policy.invalid"),
        (_changed(tenants=_tenant(variance="63")), "policy.invalid"),
        (_changed(estimator={"name": "means", "span": "0", "threshold": "0.9"}), "policy.invalid"),
        (_changed(estimator={"name": "pairs", "span": "0", "threshold": "1.5"}), "policy.invalid"),
        (policy().encode() + b" ", "policy.canonical"),
        (policy().encode()[:-1], "policy.syntax"),
        (b" " * (1 << 18), "policy.size"),
    ],
)
def test_each_other_policy_is_refused_by_name(data, check):
    with pytest.raises(VerificationError) as found:
        WindowPolicy.parse(data)
    assert found.value.check == check, found.value.message


def test_k_max_times_delta_must_stay_below_delta_star():
    assert policy(k_max=99).k_max == 99
    with pytest.raises(InputError, match="k_max x delta"):
        policy(k_max=100)


def test_the_shape_of_the_proofs_is_a_power_of_two_for_the_largest_index():
    def shape(*capacities, **change):
        fields = {"dimension": 8, "top": 2, "variance": 400, "shift": 0, "scale": 64} | change
        tenants = {f"t{i}": Mechanism(capacity=c, **fields) for i, c in enumerate(capacities)}
        return proof_shape(policy(tenants=tenants))

    assert shape(16, 24).slots == 512
    assert shape(16, 1000).slots == 1024
    assert shape(1024).slots == 1024
    assert shape(1025).slots == shape(8192).slots == 2048
    assert shape(8192).chunks(4099) == 3
    assert shape(16).reach >= 12 * 20  # a table reaches beyond 12 sigma
    with pytest.raises(InputError, match="shift"):
        shape(16, shift=1)
    with pytest.raises(InputError, match="clips"):
        shape(16, high=4095)
    assert shape(16, sampler="exact").reach == 40 * 21  # sigma 20
    assert shape(16, low=-4096, high=4096) == shape(16)
    mixed = {
        "a": Mechanism(8, 16, 2, 400, 0, scale=64),
        "b": Mechanism(8, 16, 3, 400, 0, scale=64),
    }
    with pytest.raises(InputError, match="differ"):
        proof_shape(policy(tenants=mixed))


def test_the_example_is_a_policy_whose_noise_keeps_its_promise(tmp_path: Path):
    path = tmp_path / "policy.toml"
    path.write_text(EXAMPLE)
    made = read_policy(path)
    mechanism = made.tenants["clinic"]
    mu = Terms.of(mechanism, 1.0, made.relation).worst_mu(made.queries)
    real = epsilon_at(made.delta - mechanism.extra_delta(made.epsilon, made.queries), mu)
    assert made.epsilon * 0.999 < real <= made.epsilon
    assert (mechanism.shift, mechanism.sampler, mechanism.scale) == (0, "exact", 128)
    assert proof_shape(made).reach >= 40 * math.sqrt(mechanism.variance)
    assert WindowPolicy.parse(made.encode()) == made


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('window = "2026-W47"', "", "'window' is missing"),
        ("queries = 25 ", "queries = 25\nmore = 1 ", "no field 'more'"),
        ("# sigma = 60.0 ", "sigma = 50.0 ", "more than it is promised"),
        ("epsilon = 1.0 ", "epsilon = 1000.0 ", "table of the noise alone fails"),
        ("epsilon = 1.0 ", "epsilon = 40.0 ", "know too much"),
        ("queries = 25 ", "queries = 2.5 ", "queries"),
        ("k_max = 4 ", "k_max = 100 ", "k_max x delta"),
        ("[tenants.clinic]", "[tenants.clinic", "not TOML"),
        ("top = 4 ", "", "'top' is missing"),
        ('name = "pairs"', 'name = "means"', "no estimator"),
        ("threshold = 0.95", "threshold = true", "no number"),
        ("queries = 25 ", 'queries = 25\nnoise = "proved" ', "'proved' was removed"),
    ],
)
def test_an_unusable_file_says_what_is_wrong(tmp_path: Path, old, new, said):
    assert old in EXAMPLE
    path = tmp_path / "policy.toml"
    path.write_text(EXAMPLE.replace(old, new))
    with pytest.raises(InputError) as found:
        read_policy(path)
    assert said in str(found.value)


@pytest.mark.slow
def test_noise_that_a_table_holds_comes_from_it(tmp_path: Path):
    path = tmp_path / "policy.toml"
    text = EXAMPLE.replace("epsilon = 1.0 ", "epsilon = 20.0 ")
    path.write_text(text.replace("scale = 128 ", "scale = 64 "))
    made = read_policy(path)
    mechanism = made.tenants["clinic"]
    assert mechanism.sampler == "table"
    mu = Terms.of(mechanism, 1.0, made.relation).worst_mu(made.queries)
    extra = mechanism.extra_delta(made.epsilon, made.queries)
    assert 19.98 < epsilon_at(made.delta - extra, mu) <= 20


def test_sigma_may_be_more_than_is_needed(tmp_path: Path):
    path = tmp_path / "policy.toml"
    path.write_text(EXAMPLE.replace("# sigma = 60.0 ", "sigma = 60.0 "))
    sigma = math.sqrt(read_policy(path).tenants["clinic"].variance)
    assert sigma == pytest.approx(60 * 128**2)
    with pytest.raises(InputError, match="cannot be read"):
        read_policy(tmp_path / "none.toml")


def test_an_index_card_reads_back_and_is_refused_otherwise():
    card = IndexCard(DIGEST, "ab" * 32, "cd" * 32, 1024, 384)
    assert IndexCard.parse(card.encode()) == card
    assert len(index_commitment(card.encode())) == 64
    value = json.loads(card.encode())
    for change, check in (
        ({"slots": "01"}, "index.fields"),
        ({"slots": 1024}, "index.fields"),
        ({"more": ""}, "index.fields"),
        ({"norms": "AB" * 32}, "index.fields"),
    ):
        with pytest.raises(VerificationError) as found:
            IndexCard.parse(canonical(value | change))
        assert found.value.check == check


def test_a_slots_document_opens_against_the_root_alone():
    digests, blindings = [DIGEST, "", "ab" * 32], [bytes([i]) * 32 for i in range(3)]
    root = documents_root(digests, blindings)
    leaves = [
        commit(document_opening(i, d, b))
        for i, (d, b) in enumerate(zip(digests, blindings, strict=True))
    ]
    log = MerkleLog()
    log.extend(leaves)
    assert log.root().hex() == root
    assert len(set(leaves)) == 3
    assert documents_root([DIGEST, DIGEST, "ab" * 32], blindings) != root


def test_an_embedder_is_bound_to_every_artifact():
    made = CommittedEmbedder.of({"weights": DIGEST, "tokenizer": "ab" * 32})
    assert CommittedEmbedder.parse(made.encode()) == made
    assert CommittedEmbedder.parse(made.encode()).commitment == made.commitment
    other = CommittedEmbedder({"weights": DIGEST, "tokenizer": "ac" * 32}, made.blinding)
    assert other.commitment != made.commitment
    for value, check in (
        ({"artifacts": {}, "blinding": "00" * 32}, "embedder.digest"),
        ({"artifacts": {"w": "xyz"}, "blinding": "00" * 32}, "embedder.digest"),
        ({"artifacts": {"w": 1}, "blinding": "00" * 32}, "embedder.fields"),
        ({"artifacts": [], "blinding": "00" * 32}, "embedder.fields"),
        ({"artifacts": {"w": DIGEST}, "blinding": "00"}, "embedder.fields"),
    ):
        with pytest.raises(VerificationError) as found:
            CommittedEmbedder.parse(canonical(value))
        assert found.value.check == check
