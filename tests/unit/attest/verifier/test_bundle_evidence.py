"""Files of a bundle in other forms: refused by name before anything is multiplied."""

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragwitness.attest.bundle import read_bundle, write_bundle
from ragwitness.attest.trust import parse_trust
from ragwitness.attest.verifier import PROOFS, verify
from tests.support.attested import LOG, POLICY

GOLDEN = Path(__file__).parents[3] / "golden" / "attest"
BUNDLE = (GOLDEN / "window-v3.zip").read_bytes()
TRUST = parse_trust((GOLDEN / "trust-v3.json").read_bytes())
RECEIPT = (GOLDEN / "receipt-v3.json").read_bytes()
CLOSE = (GOLDEN / "close-v3.checkpoint").read_bytes()


def _again(**files):
    """The golden bundle with files replaced, signed by its key."""
    names = {name.replace("__", "/").replace("_", "."): data for name, data in files.items()}
    return write_bundle(POLICY.window, {**read_bundle(BUNDLE).files, **names}, [LOG])


def _policy(**change):
    return _canonical(json.loads(read_bundle(BUNDLE).files["policy.json"]) | change)


def _canonical(value):
    from ragwitness.crypto.hashing import canonical

    return canonical(value)


@pytest.mark.parametrize(
    ("files", "checks"),
    [
        ({"policy_json": b'{"a":1,"a":2}'}, {"policy.duplicate"}),
        ({"policy_json": b'{"version":1e3}'}, {"policy.number"}),
        ({"policy_json": b'{"version": "x"}'}, {"policy.canonical"}),
        ({"policy_json": _policy(version="ragwitness/policy/v9")}, {"policy.version"}),
        ({"policy_json": _policy(queries="03")}, {"policy.fields"}),
        ({"policy_json": _policy(k_max="99999999")}, {"policy.invalid"}),
        ({"policy_json": _policy(more="1")}, {"policy.fields"}),
        (
            {
                "policy_json": _policy(
                    version="ragwitness/policy/v1",
                    estimator={"name": "pairs", "threshold": "0.95"},
                )
            },
            {"policy.version"},
        ),
        ({"embedder_json": b"{}"}, {"embedder.fields"}),
        ({"tenants__0__index_json": b"{}"}, {"index.fields"}),
        ({"tenants__0__columns_bin": b""}, {"columns.size"}),
        ({"tenants__0__columns_bin": b"\xff" * 384}, {"columns.encoding"}),
        ({"tenants__0__columns_bin": (b"\x80" + bytes(47)) * 8}, {"columns.subgroup"}),
        ({"tenants__0__columns_bin": (b"\x80" + bytes(46) + b"\1") * 8}, {"columns.curve"}),
        ({"vectors_bin": b"short"}, {"vectors.size"}),
        ({"log__entries_bin": b"\xff\xff"}, {"log.entries"}),
        ({"log__entries_bin": b"\x00\x02{}"}, {"record.fields"}),
        ({"log__entries_bin": b""}, {"open.first"}),
        ({"log__open_checkpoint": b"x"}, {"note.format"}),
        ({"challenge_json": b"{}"}, {"challenge.fields"}),
    ],
)
def test_a_file_in_another_form_is_refused_by_name(files, checks):
    found = verify(_again(**files), TRUST)
    assert found.outcome == "fail"
    assert found.failures[0].failure in checks, found.why
    assert "files" in {check.name for check in found.checks}
    assert all(check.name in ("bundle", "files") for check in found.checks)  # nothing else ran


VALUES = [None, 1, -1, 0, True, "", "x", "0", "-1", "1e999", "9" * 30, "00" * 32, [], ["x"], {}]


def _places(value, path=()):
    yield path
    if isinstance(value, dict):
        for name in value:
            yield from _places(value[name], (*path, name))
    elif isinstance(value, list):
        for at in range(min(3, len(value))):
            yield from _places(value[at], (*path, at))


def _put(value, path, other):
    if not path:
        return other
    changed = list(value) if isinstance(value, list) else dict(value)
    changed[path[0]] = _put(value[path[0]], path[1:], other)
    return changed


@pytest.mark.slow
def test_no_value_in_any_json_is_read_past():
    """Whatever stands anywhere, signed by the provider: a named failure, never a crash."""
    rng = random.Random(4)
    files = read_bundle(BUNDLE).files
    cases = [
        (name, path, other)
        for name, data in files.items()
        if name.endswith(".json")
        for path in _places(json.loads(data))
        for other in VALUES
    ]
    for name, path, other in rng.sample(cases, 300):
        data = _canonical(_put(json.loads(files[name]), path, other))
        if data == files[name] or (path == ("text",) and other is None):
            continue  # a provider need not keep its queries
        found = verify(write_bundle(POLICY.window, {**files, name: data}, [LOG]), TRUST)
        assert found.outcome == "fail", (name, path, other)
        assert all(check.failure for check in found.failures)


def test_all_cheap_failures_are_named_and_no_proof_is_looked_at():
    other = replace(TRUST, beacon=bytes(32), close="9 " + TRUST.close[2:])
    found = verify(BUNDLE, other, receipts=[RECEIPT.replace(b"ann-1", b"ann-7")])
    failures = [check.failure for check in found.failures]
    assert failures[0] == "receipt.nonce" or "challenge.beacon" in failures
    assert len(failures) == 2
    late = [check for check in found.checks if check.name in {step.name for step in PROOFS}]
    assert {check.status for check in late} == {"not checked"}


def test_noise_is_no_bundle():
    rng = np.random.default_rng(0)
    for size in (0, 1, 21, 22, 100, 5000):
        found = verify(rng.bytes(size), TRUST)
        assert found.failures[0].failure == "bundle.zip"
        assert found.numbers == ()
