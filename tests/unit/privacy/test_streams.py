"""Keys of the noise: known answers, one field at a time, one platform like another."""

import dataclasses
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwitness.core.errors import InputError
from ragwitness.privacy.streams import (
    NoiseRecord,
    answer_key,
    canonical,
    hkdf_sha256,
    noise_key,
    public_coins,
    record_key,
    slot_bits,
    sub_seed,
)

SEED = bytes(range(32))
RECORD = NoiseRecord(
    window="2026-W47",
    tenant="clinic",
    account="a-17",
    sequence=3,
    nonce="b64:0001",
    checkpoint="example.org/log 12",
    query=hashlib.sha256(b"Is aspirin safe?").hexdigest(),
    mechanism="00" * 32,
)


@pytest.mark.parametrize(
    ("secret", "salt", "info", "size", "known"),
    [  # RFC 5869, A.1 to A.3
        (
            b"\x0b" * 22,
            bytes(range(13)),
            bytes(range(0xF0, 0xFA)),
            42,
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
        ),
        (
            bytes(range(0x50)),
            bytes(range(0x60, 0xB0)),
            bytes(range(0xB0, 0x100)),
            82,
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb"
            "41c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87",
        ),
        (
            b"\x0b" * 22,
            b"",
            b"",
            42,
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
        ),
    ],
)
def test_hkdf_gives_the_answers_of_rfc_5869(secret, salt, info, size, known):
    assert hkdf_sha256(secret, info, salt=salt, size=size).hex() == known


def test_keys_are_the_same_on_every_platform():
    seed = sub_seed(SEED, "2026-W47", 1003)
    key = record_key(seed, RECORD)
    assert seed.hex() == "da83591bf1566d96128feb68e04e7a68e490cef30da2b35c8b2a90c7b7b1b087"
    assert key.hex() == "2079e0912ecaca747cb1c3a5583cdfb4a1b7fd8bbcb5cce5c852ab4ad456dcf3"
    assert slot_bits(key, 5).take(8).hex() == "1af4ac1852534710"
    assert slot_bits(key, 5).take(8) == hashlib.shake_256(key + b"\0" * 7 + b"\5").digest(8)


def test_every_field_changes_the_key():
    keys = {record_key(SEED, RECORD)}
    for field in dataclasses.fields(NoiseRecord):
        value = getattr(RECORD, field.name)
        other = value + 1 if isinstance(value, int) else value + "x"
        keys.add(record_key(SEED, dataclasses.replace(RECORD, **{field.name: other})))
    keys.add(record_key(bytes(32), RECORD))
    assert len(keys) == len(dataclasses.fields(NoiseRecord)) + 2


def test_text_that_moves_from_one_field_to_the_next_changes_the_key():
    one = dataclasses.replace(RECORD, tenant='a","account":"b', account="c")
    other = dataclasses.replace(RECORD, tenant="a", account='b","account":"c')
    assert record_key(SEED, one) != record_key(SEED, other)


def test_sub_seeds_differ_by_number_and_window():
    seeds = {sub_seed(SEED, window, n) for window in ("w1", "w2") for n in range(50)}
    assert len(seeds) == 100
    assert {len(seed) for seed in seeds} == {32}


def test_canonical_json_is_that_of_rfc_8785():
    # RFC 8785, 3.2.2.2: these escapes and no others; names in order; no blanks.
    fields = {"b": '\u20ac$\u000f\nA\'B"\\\\"/', "a": "\u007f\u00f6 \u2028"}
    assert canonical(fields) == (
        '{"a":"\u007f\u00f6 \u2028","b":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'.encode()
    )


@given(st.dictionaries(st.sampled_from("abc"), st.text(max_size=8), max_size=3))
def test_canonical_json_tells_all_objects_apart(fields):
    assert json.loads(canonical(fields)) == fields


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_seed_of_another_length_is_refused(length):
    with pytest.raises(InputError, match=f"32 bytes, not {length}"):
        record_key(bytes(length), RECORD)
    with pytest.raises(InputError, match=f"32 bytes, not {length}"):
        sub_seed(bytes(length), "w", 0)


@pytest.mark.parametrize("number", [-1, 2**64, True, 1.5])
def test_a_number_outside_64_bits_is_refused(number):
    with pytest.raises(InputError, match="2\\^64 - 1, not"):
        sub_seed(SEED, "w", number)
    with pytest.raises(InputError, match="sequence"):
        record_key(SEED, dataclasses.replace(RECORD, sequence=number))


def test_text_without_utf_8_is_refused():
    with pytest.raises(InputError, match="surrogate"):
        record_key(SEED, dataclasses.replace(RECORD, nonce="\ud800"))
    with pytest.raises(InputError, match="Only strings"):
        canonical({"a": 1})


BEACON = bytes(range(100, 132))


def test_coins_are_shake256_of_the_request_the_number_and_the_beacon():
    info = {
        "account": "a-17", "beacon": BEACON.hex(), "checkpoint": "example.org/log 12",
        "domain": "ragwitness/coins/v1", "mechanism": "00" * 32, "nonce": "b64:0001",
        "number": "1003", "query": RECORD.query, "sequence": "3", "tenant": "clinic",
        "window": "2026-W47",
    }  # fmt: skip
    text = json.dumps(info, sort_keys=True, separators=(",", ":")).encode()
    coins = public_coins(BEACON, RECORD, 1003)
    assert coins == hashlib.shake_256(text).digest(32)
    assert public_coins(b"", RECORD, 1003) != coins


def test_whatever_the_coins_are_made_of_changes_them():
    found = {public_coins(BEACON, RECORD, 3), public_coins(BEACON, RECORD, 4)}
    found.add(public_coins(bytes(32), RECORD, 3))
    for field in dataclasses.fields(NoiseRecord):
        value = getattr(RECORD, field.name)
        other = value + 1 if isinstance(value, int) else value + "x"
        changed = dataclasses.replace(RECORD, **{field.name: other})
        found.add(public_coins(BEACON, changed, 3))
    assert len(found) == len(dataclasses.fields(NoiseRecord)) + 3


def test_neither_the_sub_seed_nor_the_coins_decide_a_key_alone():
    seed = sub_seed(SEED, RECORD.window, 3)
    key = noise_key(seed, 3, RECORD, BEACON)
    info = {"coins": public_coins(BEACON, RECORD, 3).hex(), "domain": "ragwitness/noise/v2"}
    assert key == hkdf_sha256(seed, canonical(info))
    assert key == answer_key(SEED, 3, RECORD, BEACON)
    # A window of the first version has no beacon, and its noise stays what it was.
    assert noise_key(seed, 3, RECORD) == record_key(seed, RECORD) == answer_key(SEED, 3, RECORD)
    others = {
        noise_key(SEED, 3, RECORD, BEACON),
        noise_key(seed, 3, RECORD, bytes(32)),
        noise_key(seed, 3, dataclasses.replace(RECORD, nonce="mine"), BEACON),
        noise_key(seed, 4, RECORD, BEACON),
    }
    assert len(others | {key}) == 5


@pytest.mark.parametrize("length", [1, 31, 33, 64])
def test_a_beacon_of_another_length_is_refused(length):
    with pytest.raises(InputError, match=f"32 bytes, not {length}"):
        public_coins(bytes(length), RECORD, 0)
    with pytest.raises(InputError, match="2\\^64 - 1, not"):
        public_coins(BEACON, RECORD, -1)
