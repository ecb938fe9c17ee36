"""Files of a bundle in other forms: refused by name before anything is multiplied."""

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ragwitness.crypto.proofs.curve import bn128

from ragwitness.attest.bundle import read_bundle, write_bundle
from ragwitness.attest.trust import parse_trust
from ragwitness.attest.verifier import PROOFS, verify
from tests.support.attested import LOG, POLICY

GOLDEN = Path(__file__).parents[3] / "golden" / "attest"
BUNDLE = (GOLDEN / "window-v2.zip").read_bytes()
TRUST = parse_trust((GOLDEN / "trust-v2.json").read_bytes())
RECEIPT = (GOLDEN / "receipt-v2.json").read_bytes()
CLOSE = (GOLDEN / "close-v2.checkpoint").read_bytes()


def _again(**files):
    """The golden bundle with files replaced, signed by its key."""
    names = {name.replace("__", "/").replace("_", "."): data for name, data in files.items()}
    return write_bundle(POLICY.window, {**read_bundle(BUNDLE).files, **names}, [LOG])


def _policy(**change):
    return _canonical(json.loads(read_bundle(BUNDLE).files["policy.json"]) | change)


def _canonical(value):
    from ragwitness.crypto.canonical import canonical

    return canonical(value)


def _setup(name, value):
    fields = json.loads(read_bundle(BUNDLE).files["setup.json"])
    return _canonical(fields | {name: value(fields[name])})


# y of the point of the twist with x = 1, which the pairing's subgroup does not hold.
_ROOT = (
    18278151005453108793778860132295291098363647455926340152056652516292830556603,
    5912654199736721486680175016176231956195085055698687135131307249486702594212,
)
OUTSIDE = b"".join(n.to_bytes(32, "big") for n in (0, 1, _ROOT[1], _ROOT[0])).hex()


def test_the_point_outside_the_subgroup_is_one():
    curve = bn128()
    point = (curve.FQ2([1, 0]), curve.FQ2(_ROOT), curve.FQ2.one())
    assert curve.is_on_curve(point, curve.b2)
    assert not curve.is_inf(curve.multiply(point, curve.curve_order))


@pytest.mark.parametrize(
    ("files", "checks"),
    [
        ({"policy_json": b'{"a":1,"a":2}'}, {"policy.duplicate"}),
        ({"policy_json": b'{"version":1e3}'}, {"policy.number"}),
        ({"policy_json": b'{"version": "x"}'}, {"policy.canonical"}),
        ({"policy_json": _policy(version="ragwitness/policy/v9")}, {"policy.version"}),
        ({"policy_json": _policy(queries="03")}, {"policy.number"}),
        ({"policy_json": _policy(k_max="99999999")}, {"policy.invalid"}),
        ({"policy_json": _policy(more="1")}, {"policy.fields"}),
        ({"embedder_json": b"{}"}, {"embedder.fields"}),
        ({"tenants__0__index_json": b"{}"}, {"index.fields"}),
        ({"tenants__0__columns_bin": b""}, {"columns.size"}),
        ({"tenants__0__columns_bin": b"\xff" * 512}, {"columns.field"}),
        ({"tenants__0__columns_bin": (bytes(31) + b"\1") * 16}, {"columns.curve"}),
        ({"setup_json": b"[]"}, {"setup.version"}),
        ({"setup_json": _setup("tau", lambda _: "ff" * 128)}, {"setup.field"}),
        ({"setup_json": _setup("tau", lambda _: ("00" * 31 + "01") * 4)}, {"setup.curve"}),
        ({"setup_json": _setup("tau", lambda _: OUTSIDE)}, {"setup.subgroup"}),
        ({"setup_json": _setup("shape", lambda s: s | {"slots": 1 << 30})}, {"setup.shape"}),
        ({"setup_json": _setup("link", lambda text: text[:-2])}, {"setup.key"}),
        ({"vectors_bin": b"short"}, {"vectors.size"}),
        ({"log__entries_bin": b"\xff\xff"}, {"log.entries"}),
        ({"log__entries_bin": b"\x00\x02{}"}, {"record.type"}),
        ({"log__entries_bin": b""}, {"open.first"}),
        ({"log__open_checkpoint": b"x"}, {"note.format"}),
        ({"challenge_json": b"{}"}, {"challenge.version"}),
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


def test_everything_that_is_wrong_is_named_at_once():
    found = verify(_again(policy_json=b"{}", challenge_json=b"{}", embedder_json=b"{}"), TRUST)
    failures = [check.failure for check in found.failures]
    assert failures == ["policy.version", "embedder.fields", "challenge.version"]


def test_all_cheap_failures_are_named_and_no_proof_is_looked_at():
    other = replace(TRUST, beacon=bytes(32), setup="ab" * 32)
    found = verify(BUNDLE, other, receipts=[RECEIPT.replace(b"ann-1", b"ann-7")])
    failures = [check.failure for check in found.failures]
    assert failures[0] == "setup.trusted"
    assert "challenge.beacon" in failures
    assert len(failures) == 3
    late = [check for check in found.checks if check.name in {step.name for step in PROOFS}]
    assert {check.status for check in late} == {"not checked"}


def test_noise_is_no_bundle():
    rng = np.random.default_rng(0)
    for size in (0, 1, 21, 22, 100, 5000):
        found = verify(rng.bytes(size), TRUST)
        assert found.failures[0].failure == "bundle.zip"
        assert found.numbers == ()
