"""Records: one text each, read back as written, and refused by name otherwise."""

import json
import random
from importlib.resources import files

import pytest

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.hashing import canonical, leaf_hash
from ragwitness.crypto.records import (
    AdmitRecord,
    BeaconRecord,
    CloseRecord,
    IndexCommitment,
    KeyedAdmitRecord,
    OpenRecord,
    QueryRecord,
    SignedQueryRecord,
    decode,
    encode,
    record_hash,
    schema,
)

HASH = "ab" * 32
QUERY = QueryRecord(
    window="2026-W47",
    tenant="clinic",
    account="a-17",
    sequence="3",
    number="1003",
    nonce="b64:0001",
    checkpoint="example.org/log 12",
    query=HASH,
    vector=HASH,
    mechanism=HASH,
    answer=HASH,
    prior="00" * 32,
)
RECORDS = [
    OpenRecord(
        window="2026-W47",
        embedder=HASH,
        indexes=(IndexCommitment(tenant="clinic", commitment=HASH, mechanism=HASH),),
        seed_root=HASH,
        seed_count=str(2**64 - 1),
        policy=HASH,
    ),
    AdmitRecord(window="2026-W47", tenant="clinic", account="a-17", place="40"),
    KeyedAdmitRecord(window="2026-W47", tenant="clinic", account="a-17", place="40", key=HASH),
    BeaconRecord(window="2026-W47", value=HASH, source="a public beacon, round 7"),
    QUERY,
    SignedQueryRecord(**QUERY.model_dump(exclude={"type"}), signature=2 * HASH),
    CloseRecord(window="w", queries="0", map_root=HASH, coalition="1", certificate=HASH),
]

_KEYED, _BEACON = RECORDS[2].model_dump(), RECORDS[3].model_dump()


def _fields(**change):
    return QUERY.model_dump() | change


def _refused(data, check):
    with pytest.raises(VerificationError) as found:
        decode(data)
    assert found.value.check == check, (found.value.check, found.value.message)


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.type)
def test_records_read_back(record):
    assert decode(encode(record)) == record
    assert record_hash(record) == leaf_hash(encode(record))


def test_the_bytes_of_a_record_never_change():
    assert encode(RECORDS[1]) == (
        b'{"account":"a-17","place":"40","tenant":"clinic","type":"ragwitness/admit/v1",'
        b'"window":"2026-W47"}'
    )
    assert record_hash(QUERY).hex() == (
        "cb5f05f963098056dce41a5322121a8f13f8096d54a8c2414e451f0e19dfdd00"
    )


@pytest.mark.parametrize(
    ("fields", "check"),
    [
        (_fields(extra="x"), "record.fields"),
        (_fields(type="ragwitness/query/v3"), "record.fields"),
        (_fields(type="ragwitness/close/v1"), "record.fields"),
        (_fields(type=7), "record.fields"),
        ({"window": "w"}, "record.fields"),
        ([], "record.fields"),
        ("text", "record.fields"),
        (None, "record.fields"),
        ({k: v for k, v in _fields().items() if k != "prior"}, "record.fields"),
        (_fields(sequence=3), "record.fields"),
        (_fields(account=None), "record.fields"),
        (_fields(query=["x"]), "record.fields"),
        (_fields(sequence="03"), "record.fields"),
        (_fields(sequence="-1"), "record.fields"),
        (_fields(sequence="1\n"), "record.fields"),
        (_fields(sequence="\u0663"), "record.fields"),
        (_fields(sequence=str(2**64)), "record.fields"),
        (_fields(query="AB" * 32), "record.fields"),
        (_fields(query="ab" * 31), "record.fields"),
        (_fields(query="ab" * 32 + "\n"), "record.fields"),
        (_fields(nonce="\u00e4"), "record.fields"),
        (_fields(account="a\x00"), "record.fields"),
        (_fields(account=""), "record.fields"),
        (_fields(signature=2 * HASH), "record.fields"),
        (_fields(type="ragwitness/query/v2"), "record.fields"),
        (_fields(type="ragwitness/query/v2", signature=2 * HASH.upper()), "record.fields"),
        (_fields(type="ragwitness/query/v2", signature=HASH), "record.fields"),
        (_KEYED | {"key": HASH.upper()}, "record.fields"),
        (_KEYED | {"key": HASH + "00"}, "record.fields"),
        (_BEACON | {"value": HASH.upper()}, "record.fields"),
        (_BEACON | {"value": "0x" + HASH}, "record.fields"),
        (_BEACON | {"value": f" {HASH}"}, "record.fields"),
        (_BEACON | {"source": ""}, "record.fields"),
        (_fields(account="a" * 257), "record.fields"),
        (RECORDS[0].model_dump() | {"indexes": []}, "record.fields"),
        (RECORDS[0].model_dump() | {"indexes": "x"}, "record.fields"),
        (RECORDS[0].model_dump() | {"indexes": [{"tenant": "t"}]}, "record.fields"),
        (RECORDS[0].model_dump() | {"indexes": ["t"]}, "record.fields"),
    ],
)
def test_each_other_record_is_refused_by_name(fields, check):
    _refused(canonical(fields), check)


def test_texts_that_are_not_the_one_of_a_record():
    good = encode(QUERY)
    _refused(good + b" ", "record.canonical")
    _refused(good[:-1] + b',"window":"x"}', "record.duplicate")
    _refused(good[:-1], "record.syntax")
    _refused(good.replace(b'"3"', b"3.0"), "record.number")
    _refused(good + b" " * 65_536, "record.size")
    _refused(b"", "record.syntax")
    _refused(json.dumps(QUERY.model_dump()).encode(), "record.canonical")


def test_no_bit_of_a_record_changes_without_its_hash():
    good, rng = encode(QUERY), random.Random(3)
    for place in range(len(good)):
        wrong = bytearray(good)
        wrong[place] ^= 1 << rng.randrange(8)
        try:
            found = decode(bytes(wrong))
        except VerificationError:
            continue
        assert record_hash(found) != record_hash(QUERY)  # another record, and so another leaf


def test_a_record_too_large_for_the_log_is_refused_when_it_is_made():
    tenants = tuple(
        IndexCommitment(tenant="\U0001f600" * 250 + str(i), commitment=HASH, mechanism=HASH)
        for i in range(128)
    )
    record = RECORDS[0].model_copy(update={"indexes": tenants})
    with pytest.raises(InputError, match="does not fit"):
        encode(record)
    with pytest.raises(InputError, match="surrogate"):
        encode(QUERY.model_copy(update={"nonce": "\ud800"}))


def test_the_published_schema_is_the_one_that_is_read():
    stored = files("ragwitness.crypto").joinpath("schemas/records-v1.json").read_text("utf-8")
    assert json.loads(stored) == schema(), (
        "Write json.dumps(schema(), indent=1) to src/ragwitness/crypto/schemas/records-v1.json."
    )
    types = {}
    for found in schema()["$defs"].values():
        assert found["additionalProperties"] is False
        assert sorted(found["required"]) == sorted(found["properties"])
        types |= dict.fromkeys([found["properties"].get("type", {}).get("const")])
    assert set(types) - {None} == {record.type for record in RECORDS}
