"""``challenge`` and ``verify`` as a verifier calls them: files in, exit codes out."""

import json
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from ragwitness.attest.bundle import read_bundle, write_bundle
from ragwitness.attest.challenge import parse_challenge
from ragwitness.attest.commitments import checkpoint_token
from ragwitness.attest.trust import parse_trust
from ragwitness.crypto.entries import read_entries
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.notes import Checkpoint, sign_checkpoint
from tests.support.attested import BEACON, LOG, POLICY

GOLDEN = Path(__file__).parents[1] / "golden" / "attest"
BUNDLE, TRUST = GOLDEN / "window-v3.zip", GOLDEN / "trust-v3.json"


@pytest.fixture
def public(tmp_path):
    """What of the golden window a verifier needs to draw a challenge."""
    files = read_bundle(BUNDLE.read_bytes()).files
    folder = tmp_path / "public"
    (folder / "log").mkdir(parents=True)
    (folder / "log" / "entries.bin").write_bytes(files["log/entries.bin"])
    (folder / "close.checkpoint").write_bytes(files["log/close.checkpoint"])
    return folder


def test_verify_passes_the_golden_bundle(command):
    line = (
        "verify", BUNDLE, "--trust", TRUST, "--receipt", GOLDEN / "receipt-v3.json",
        "--checkpoint", GOLDEN / "close-v3.checkpoint",
    )  # fmt: skip
    code, text = command(*line)
    assert code == 0, text
    assert "PASS  window 2026-W47" in text
    # A short terminal names the checks that were not made; --verbose shows all, and the scope.
    assert "not checked" in text
    assert "norms  " not in text
    code, every = command("--verbose", *line)
    for word in ("paper (5.2)", "exact", "odometer", "Mode B: 3 of 9", "norms  ", "Covers:"):
        assert word in every
    assert len(every.splitlines()) > 2 * len(text.splitlines())


def test_verify_in_json_prints_json_alone(command):
    code, text = command("verify", BUNDLE, "--trust", TRUST, "--json")
    told = json.loads(text)
    assert (code, told["outcome"], told["failure"]) == (0, "pass", None)
    assert told["numbers"][0]["exact"] == pytest.approx(told["epsilon"])


def test_verify_without_trust_is_inconclusive(command):
    code, text = command("verify", BUNDLE)
    assert code == 4
    assert "INCONCLUSIVE" in text
    assert "no trust file was given" in text


def test_verify_fails_a_lie_by_its_name(command, tmp_path):
    files = dict(read_bundle(BUNDLE.read_bytes()).files)
    files["policy.json"] = files["policy.json"].replace(b'"k_max":"2"', b'"k_max":"3"')
    lie = tmp_path / "lie.zip"
    lie.write_bytes(write_bundle(POLICY.window, files, [LOG]))
    code, text = command("verify", lie, "--trust", TRUST)
    assert code == 3
    assert "FAIL" in text
    assert "policy.digest" in text


def test_verify_takes_a_folder_of_receipts(command, tmp_path):
    folder = tmp_path / "receipts"
    folder.mkdir()
    shutil.copy(GOLDEN / "receipt-v3.json", folder / "a.json")
    code, text = command("-v", "verify", BUNDLE, "--trust", TRUST, "--receipt", folder)
    assert code == 0
    assert "1 receipts are in the log" in text
    (folder / "b.json").write_bytes(b"{}")
    code, text = command("verify", BUNDLE, "--trust", TRUST, "--receipt", folder)
    assert code == 3
    assert "receipt.fields" in text


@pytest.mark.parametrize("what", ["bundle", "trust"])
def test_verify_says_what_cannot_be_read(command, tmp_path, what):
    missing = tmp_path / "missing"
    paths = {"bundle": BUNDLE, "trust": TRUST} | {what: missing}
    code, text = command("verify", paths["bundle"], "--trust", paths["trust"])
    assert code == 2
    assert "cannot be read" in text


def test_verify_refuses_another_trust_file(command, tmp_path):
    path = tmp_path / "trust.json"
    path.write_text('{"version": "ragwitness/trust/v2"}')
    code, text = command("verify", BUNDLE, "--trust", path)
    assert code == 2
    assert "trust/v1" in text


def test_attest_verify_is_the_same_verifier(command):
    assert command("attest", "verify", BUNDLE, "--trust", TRUST) == command(
        "verify", BUNDLE, "--trust", TRUST
    )


def test_a_bundle_of_a_later_version_is_refused_and_says_what_to_do(command, tmp_path):
    from ragwitness.attest.archive import pack

    honest = read_bundle(BUNDLE.read_bytes())
    later = honest.manifest.replace(b"bundle/v2", b"bundle/v9")
    files = {**honest.files, "bundle.json": later, "bundle.note": honest.note, "new.bin": b"?"}
    path = tmp_path / "later.zip"
    path.write_bytes(pack(files))
    code, text = command("verify", path, "--trust", TRUST)
    assert code == 3
    told = " ".join(text.split())
    assert "bundle.version" in told
    assert "Install the version of ragwitness that wrote it, or a newer one." in told


def test_an_unknown_kind_of_sealed_file_is_named(command, tmp_path):
    from ragwitness.attest.archive import pack

    path = tmp_path / "letter.zip"
    path.write_bytes(pack({"letter.json": b"{}"}))
    code, text = command("verify", path)
    assert code == 2
    assert "'letter.json'" in text
    assert "Install the version of ragwitness" in text


def test_pin_shows_a_policy_and_writes_what_is_accepted(command, public, tmp_path):
    trust = tmp_path / "trust.json"
    unpinned = json.loads((GOLDEN / "trust-v3.json").read_bytes()) | {"pins": {}}
    trust.write_text(json.dumps(unpinned))
    policy = read_bundle(BUNDLE.read_bytes()).files["policy.json"]
    (public / "policy.json").write_bytes(policy)
    before = trust.read_bytes()
    code, text = command("attest", "pin", public, "--trust", trust)
    assert code == 0, text
    assert "nothing: give --policy, or the bounds" in text
    assert "weak      nothing" in text
    assert trust.read_bytes() == before
    code, text = command("attest", "pin", public, "--trust", trust, "--epsilon-most", 4)
    assert (code, "Four bounds belong together" in text) == (2, True)
    four = ("--epsilon-most", 1, "--delta-most", 1e-6, "--k-max-least", 3, "--threshold-most", 0.9)
    code, text = command("attest", "pin", public, "--trust", trust, *four)
    assert code == 0, text
    assert "k_max is 2, at least 3" in text
    code, text = command("verify", BUNDLE, "--trust", trust)
    assert (code, "terms.epsilon" in text) == (3, True)
    assert command("attest", "pin", public, "--trust", trust, "--policy")[0] == 0
    pins = parse_trust(trust.read_bytes()).pins
    assert (pins.policy, pins.bounds.k_max_least) == (sha256(policy).hexdigest(), 3)


def test_challenge_draws_what_prove_was_asked(command, public, tmp_path):
    trust, out = tmp_path / "trust.json", tmp_path / "challenge.json"
    before = replace(parse_trust(TRUST.read_bytes()), beacon=b"", records=0, close="")
    trust.write_bytes(before.encode())
    code, text = command(
        "attest",
        "challenge",
        public,
        "-o",
        out,
        "--trust",
        trust,
        "--beacon",
        BEACON.hex(),
        "--records",
        3,
    )
    assert code == 0, text
    assert "3 of 9 answers are to be proved" in text
    assert out.read_bytes() == read_bundle(BUNDLE.read_bytes()).files["challenge.json"]
    assert trust.read_bytes() == TRUST.read_bytes()
    assert command("verify", BUNDLE, "--trust", trust)[0] == 0
    again = tmp_path / "again.json"
    code, text = command(
        "attest", "challenge", public, "-o", again, "--trust", trust, "--records", 3
    )
    assert code == 2
    assert "holds the beacon of a challenge" in text
    assert not again.exists()
    same = ("--beacon", BEACON.hex(), "--records", 3)
    assert command("attest", "challenge", public, "-o", again, "--trust", trust, *same)[0] == 0
    assert again.read_bytes() == out.read_bytes()
    known = parse_trust(trust.read_bytes())
    trust.write_bytes(replace(known, close=checkpoint_token(9, bytes(32))).encode())
    code, text = command(
        "attest", "challenge", public, "-o", tmp_path / "c", "--trust", trust, *same
    )
    assert (code, "challenge.close" in text) == (3, True)


def test_challenge_counts_the_records_itself(command, public, tmp_path):
    """A close that speaks of 2^64 - 1 queries had its auditor compute for ever."""
    path = public / "log" / "entries.bin"
    [*entries, close] = read_entries(path.read_bytes())
    entries.append(close.replace(b'"queries":"9"', b'"queries":"18446744073709551615"'))
    log = MerkleLog()
    log.extend(entries)
    path.write_bytes(b"".join(len(entry).to_bytes(2, "big") + entry for entry in entries))
    note = sign_checkpoint(Checkpoint(LOG.name, log.size, log.root()), [LOG])
    (public / "close.checkpoint").write_bytes(note)
    code, text = command(
        "attest", "challenge", public, "-o", tmp_path / "c.json", "--share", 0.05, "--json"
    )
    assert (code, json.loads(text)["population"]) == (0, 9)


def test_challenge_counts_by_share_or_takes_all(command, public, tmp_path):
    out = tmp_path / "a.json"
    code, text = command(
        "attest", "challenge", public, "-o", out, "--share", 0.3, "--miss", 0.2, "--json"
    )
    told = json.loads(text)
    assert code == 0
    assert len(told["records"]) == 4  # of 3 bad among 9: C(6, 4)/C(9, 4) = .119, C(6, 3)/… = .238
    assert len(bytes.fromhex(told["beacon"])) == 32
    out = tmp_path / "b.json"
    assert command("attest", "challenge", public, "-o", out, "--all")[0] == 0
    assert parse_challenge(out.read_bytes()).records == tuple(range(9))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "how many"),
        (("--records", 3, "--all"), "how many"),
        (("--records", 10), "10 of 9"),
        (("--records", 3, "--beacon", "xyz"), "no hex"),
        (("--records", 3, "--beacon", "00"), "16 to 256 bytes"),
        (("--share", 0), "share"),
    ],
)
def test_challenge_refuses_by_name(command, public, tmp_path, arguments, said):
    out = tmp_path / "challenge.json"
    code, text = command("attest", "challenge", public, "-o", out, *arguments)
    assert code == 2
    assert said in text
    assert not out.exists()


def test_challenge_refuses_a_log_that_is_not_the_closed_one(command, public, tmp_path):
    path = public / "log" / "entries.bin"
    path.write_bytes(path.read_bytes()[:-1])
    code, text = command("attest", "challenge", public, "-o", tmp_path / "c.json", "--all")
    assert code == 3
    assert "log.root" in text
    (public / "close.checkpoint").unlink()
    code, text = command("attest", "challenge", public, "-o", tmp_path / "c.json", "--all")
    assert code == 2
    assert "ragwitness attest close" in text
