"""Opponents of an outside review: a stranger's bundle that costs, an account that is not there."""

import time
from dataclasses import replace

import pytest

from ragwitness.attest import verdict
from ragwitness.attest.bundle import read_bundle, write_bundle
from ragwitness.attest.trust import parse_trust
from ragwitness.attest.verifier import verify
from ragwitness.core.errors import InputError
from ragwitness.crypto.hashing import canonical, parse
from ragwitness.crypto.keys import KeyKind, PrivateKey
from ragwitness.crypto.proofs.arithmetic import encode_point, generator, scalar
from tests.support.attested import PINNED, STRANGER


def _columns(audited, megabytes):
    """Very many good points, in a bundle that a stranger signed."""
    honest = read_bundle(audited.bundle).files
    policy = parse(honest["policy.json"], 1 << 20, "policy")
    policy["dimension"] = "1024"
    points = b"".join(encode_point(generator() * scalar(i + 2)) for i in range(64))
    count = (megabytes << 20) // len(points) // 16 * 16
    columns = {"tenants/0/columns.bin": points * count}
    files = {**honest, "policy.json": canonical(policy), **columns}
    return write_bundle("2026-W47", files, [STRANGER])


@pytest.fixture
def unread(monkeypatch):
    """No file of a bundle may be parsed."""

    def parsed(_):
        raise AssertionError("something was parsed")

    monkeypatch.setattr("ragwitness.attest.verifier.read_evidence", parsed)


def test_the_signature_comes_before_any_other_work(audited, unread):
    data = _columns(audited, 8)
    began = time.process_time()
    found = verify(data, audited.trust)
    assert (found.outcome, found.failures[0].failure) == ("fail", "bundle.signature")
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(("megabytes", "unit"), [(1, "points"), (17, "bytes")])
def test_without_a_key_so_many_points_and_bytes_are_read(audited, unread, megabytes, unit):
    found = verify(_columns(audited, megabytes), None)
    assert found.outcome == "inconclusive"
    assert f" {unit}, the most" in found.why
    assert "--trust" in found.why


def test_without_a_key_so_many_rows_are_read(audited, unread):
    honest = read_bundle(audited.bundle).files
    rows = honest["log/entries.bin"] + b"\0\1x" * 30_000
    data = write_bundle("2026-W47", {**honest, "log/entries.bin": rows}, [STRANGER])
    assert " rows, the most" in verify(data, None).why


def test_without_a_key_so_many_seconds_are_spent(audited, monkeypatch):
    late = iter([0.0, *[61.0] * 1000])
    monkeypatch.setattr(verdict, "monotonic", lambda: next(late))
    found = verify(audited.bundle, None)
    assert found.outcome == "inconclusive"
    assert "more than 60 seconds" in found.why
    assert verify(audited.bundle, audited.trust).outcome == "pass"


def _pinning(trust, accounts):
    return replace(trust, pins=replace(trust.pins, accounts=accounts))


def test_a_pinned_account_that_the_log_lacks(audited):
    """Its queries may have been answered under a log that the auditor never sees."""
    absent = PINNED | {"clinic/eve": STRANGER.public.material.hex()}
    found = verify(audited.bundle, _pinning(audited.trust, absent))
    said = {check.name: check for check in found.checks}["accounts"]
    assert (found.outcome, said.status) == ("inconclusive", "not checked")
    assert "admits no account clinic/eve" in found.why
    found = verify(audited.bundle, _pinning(audited.trust, absent | {"archive/abe": "00" * 32}))
    assert "admits no account archive/abe, nor 1 others" in found.why
    assert verify(audited.bundle, _pinning(audited.trust, PINNED)).outcome == "pass"


@pytest.mark.parametrize(
    "lie",
    [
        lambda text: '{"quorum":1,"witnesses":["KEY"],' + text[1:],
        lambda text: text.replace('"bounds":{', '"bounds":{"epsilon_most":"1.0","k_max_least":50,'),
        lambda text: text.replace('"pins":{', '"pins":{"unsigned_most":0,"unsigned_most":9,'),
    ],
    ids=["a quorum", "bounds", "pins"],
)
def test_a_trust_file_whose_names_occur_twice(audited, lie):
    """Its reader sees the strict value, and a lax one would be taken."""
    witness = PrivateKey("witness.example", KeyKind.COSIGNATURE, bytes([9]) * 32).public.text
    text = audited.trust.encode().decode()
    assert parse_trust(text.encode())
    with pytest.raises(InputError, match="occurs twice"):
        parse_trust(lie(text).replace("KEY", witness).encode())
