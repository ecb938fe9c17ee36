"""Signed requests: what a window takes from an account with a key, and what it refuses."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ragwitness.attest.commit import draw_seed
from ragwitness.attest.receipts import (
    RequestSignature,
    check_key,
    sign_request,
    verify_request,
)
from ragwitness.attest.window import Window, noise_record
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.keys import KeyKind, PrivateKey
from ragwitness.crypto.records import SignedQueryRecord, decode
from ragwitness.privacy.release import SlotIndex, release
from ragwitness.privacy.streams import answer_key
from tests.support.windows import KEY, ask, window

ANN = PrivateKey("account", KeyKind.NOTE, bytes([11]) * 32)
BOB = PrivateKey("account", KeyKind.NOTE, bytes([12]) * 32)
PUBLIC = ANN.public.material
BEACON = "c0" * 16 + "de" * 16
P = 2**255 - 19


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Window:
    made = window(tmp_path, monkeypatch)
    made.begin(BEACON, "a test")
    made.admit("clinic", "ann", PUBLIC)
    return made


def signed(held, sequence=0, key=ANN, name="2026-W47", **change):
    return sign_request(key, name, ask(held, "ann", **change), sequence)


def last(held):
    return decode(held.ledger.entries()[-1])


def test_a_signed_request_is_answered_and_its_record_is_the_accounts(held):
    request = signed(held)
    found = held.record(request)
    record = last(held)
    assert isinstance(record, SignedQueryRecord)
    verify_request(record, bytes.fromhex(record.signature), PUBLIC)
    assert found.receipt.opened.blindings[0] == request.signed.blinding
    assert held.record(request).ids == found.ids  # the same again: nothing new is logged
    assert len(held.ledger.queries) == 1
    for change in ("window", "tenant", "account", "nonce", "checkpoint", "query", "sequence"):
        other = record.model_copy(update={change: "5" if change == "sequence" else "ab" * 32})
        with pytest.raises(VerificationError, match="did not sign") as refused:
            verify_request(other, bytes.fromhex(record.signature), PUBLIC)
        assert refused.value.check == "record.signature"


def test_noise_is_made_of_the_beacon_too(held):
    request = signed(held)
    found, record = held.record(request), last(held)
    mechanism = held.policy.tenants["clinic"]
    made_of = noise_record(held.policy, request, 0)
    rows, seed = SlotIndex(held.rows("clinic"), mechanism), held.folder.seed.read_bytes()
    key = answer_key(seed, int(record.number), made_of, bytes.fromhex(BEACON))
    assert release(request.vector, rows, key, mechanism).ids == found.ids


@pytest.mark.parametrize(
    ("request_of", "said"),
    [
        (lambda held: ask(held, "ann"), "has a key in this window, and this query is not signed"),
        (lambda held: signed(held, key=BOB), "did not sign"),
        (lambda held: signed(held, name="2026-W48"), "did not sign"),  # another window's
        (lambda held: signed(held, sequence=1), "has number 0, not 1"),
        (lambda held: replace(signed(held), nonce="other"), "did not sign"),
        (lambda held: replace(signed(held), query="ab" * 32), "did not sign"),
        (
            lambda held: sign_request(ANN, "2026-W47", ask(held, "dan"), 0),
            "was admitted without a key",
        ),
    ],
)
def test_what_is_not_signed_as_it_was_asked_is_not_logged(held, request_of, said):
    request = request_of(held)
    before = held.ledger.log.size
    with pytest.raises(InputError, match=said):
        held.record(request)
    assert held.ledger.log.size == before


def test_a_request_that_comes_again_needs_its_own_signature(held):
    request = signed(held)
    held.record(request)
    with pytest.raises(InputError, match="used this nonce"):
        held.record(replace(request, signed=None))
    with pytest.raises(InputError, match="used this nonce"):
        held.record(sign_request(ANN, "2026-W47", request, 1))


def test_a_key_is_one_accounts_and_for_the_whole_window(held):
    assert held.admit("clinic", "ann", PUBLIC) == 0
    assert held.admit("clinic", "ann") == 0
    for tenant, account, key, said in (
        ("clinic", "ann", BOB.public.material, "with another key"),
        ("clinic", "eve", PUBLIC, "Another account of this window has this key"),
        ("archive", "ann", PUBLIC, "Another account of this window has this key"),
    ):
        with pytest.raises(InputError, match=said):
            held.admit(tenant, account, key)
    held.admit("clinic", "dan")
    with pytest.raises(InputError, match="without a key"):
        held.admit("clinic", "dan", BOB.public.material)
    assert Window.load(held.folder.root).ledger.accounts["clinic", "ann"].key == PUBLIC


def _small_order():
    """All encodings of points of order 1, 2, 4 and 8, one of each y."""
    y8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
    ys = [1, P - 1, 0, y8, P - y8]
    return [y.to_bytes(32, "little") for y in ys]


@pytest.mark.parametrize("key", _small_order(), ids=lambda key: key.hex()[:8])
def test_a_key_of_small_order_is_refused(held, key):
    """Under the neutral element one signature holds for every message."""
    with pytest.raises(VerificationError, match="small order"):
        check_key(key)
    with pytest.raises(InputError, match="small order"):
        held.admit("clinic", "eve", key)


def test_what_a_key_of_small_order_would_allow():
    """S = 1, R = B holds for every message under the neutral element; hence the refusal."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    base = (4 * pow(5, -1, P) % P).to_bytes(32, "little")
    forged = base + (1).to_bytes(32, "little")
    neutral = Ed25519PublicKey.from_public_bytes((1).to_bytes(32, "little"))
    for message in (b"ann asked this", b"and this"):
        neutral.verify(forged, message)


def test_keys_of_other_curves_and_forms_are_refused():
    point = generate_private_key(SECP256R1()).public_key()
    sizes = (PublicFormat.CompressedPoint, PublicFormat.UncompressedPoint)
    for key in (point.public_bytes(Encoding.X962, form) for form in sizes):
        with pytest.raises(VerificationError, match="has 32 bytes"):
            check_key(key)
    for y in (2, P + 3, 2**255 - 1):  # no point of the curve; above the field
        with pytest.raises(VerificationError, match="no point of edwards25519"):
            check_key(y.to_bytes(32, "little"))
    with pytest.raises(VerificationError, match="no point"):
        check_key((1 + 2**255).to_bytes(32, "little"))  # x = 0 with a sign


def test_every_key_that_is_made_is_taken():
    """And of random bytes about half are points: the others are refused."""
    rng, taken = random.Random(4), 0
    for _ in range(200):
        check_key(PrivateKey("account", KeyKind.NOTE, rng.randbytes(32)).public.material)
        try:
            check_key(rng.randbytes(32))
            taken += 1
        except VerificationError:
            continue
    assert 60 < taken < 140


def test_lengths_of_a_signature():
    with pytest.raises(InputError, match="not 31 and 64"):
        RequestSignature(0, bytes(31), bytes(64))
    with pytest.raises(InputError, match="not 32 and 63"):
        RequestSignature(0, bytes(32), bytes(63))


# --- the beacon of the noise


def test_a_beacon_is_logged_once_and_before_the_first_query(tmp_path, monkeypatch):
    made = window(tmp_path, monkeypatch)
    for wrong in (BEACON.upper(), "0x" + BEACON, f" {BEACON}", BEACON[:-2], BEACON + "00", ""):
        with pytest.raises(InputError, match="64 lower-case hex digits"):
            made.begin(wrong, "a test")
    with pytest.raises(InputError, match="from a source"):
        made.begin(BEACON, "")
    early = made.checkpoint
    made.begin(BEACON, "a test")
    made.begin(BEACON, "a test")
    assert made.ledger.log.size == 2
    with pytest.raises(InputError, match="has its beacon"):
        made.begin("11" * 32, "a better one")
    made.admit("clinic", "a")
    with pytest.raises(InputError, match="since the account was admitted"):
        made.record(ask(made, checkpoint=early))


def test_a_beacon_that_comes_after_an_answer_is_refused(tmp_path, monkeypatch):
    made = window(tmp_path, monkeypatch)
    made.record(ask(made))
    with pytest.raises(InputError, match="answered queries without one"):
        made.begin(BEACON, "a test")


# --- the provider's secret


@pytest.mark.parametrize(
    "lazy",
    [
        lambda size: bytes(size),
        lambda size: bytes([7] * size),
        lambda size: (b"abcdefgh" * 4)[:size],
        lambda size: bytes(range(size)),  # well spread, and the same at every draw
    ],
    ids=["zeros", "sevens", "few values", "repeated"],
)
def test_a_system_without_randomness_opens_no_window(tmp_path, monkeypatch, lazy):
    monkeypatch.setattr("ragwitness.attest.commit.os.urandom", lazy)
    with pytest.raises(InputError, match="repeat themselves"):
        window(tmp_path, monkeypatch)
    assert not (tmp_path / "window").exists()


def test_the_same_draw_gives_another_seed_under_another_key_or_window(monkeypatch):
    """So an account that guesses what a lazy system drew still lacks the log's key."""

    def drawn(name, *keys):
        draws = iter([bytes(range(32)), bytes(range(1, 33))])
        monkeypatch.setattr("ragwitness.attest.commit.os.urandom", lambda size: next(draws))
        return draw_seed(name, keys)

    seeds = [drawn("w", KEY), drawn("v", KEY), drawn("w", BOB), drawn("w", KEY, BOB)]
    assert len({*seeds, bytes(range(32))}) == 5
    assert drawn("w", KEY) == seeds[0]


def test_an_account_without_a_key_asks_as_before(held):
    found = held.record(ask(held, "dan", vector=np.arange(8)))
    assert last(held).type == "ragwitness/query/v1"
    assert found.sequence == 0
