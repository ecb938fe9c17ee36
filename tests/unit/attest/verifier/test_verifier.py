"""Verification of a bundle that was made once and must verify for ever, and of what it must not."""

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragwitness.attest.bundle import read_bundle
from ragwitness.attest.trust import parse_trust
from ragwitness.attest.verifier import CHEAP, PROOFS, sampling_of, verify
from ragwitness.attest.verifier.bundle_evidence import VerifierCase, read_evidence
from ragwitness.attest.verifier.terms import number_remarks
from ragwitness.evidence.result import RESULT_TYPE, sampling_line
from ragwitness.privacy.bounds import audit_epsilon, certify
from ragwitness.report.terminal import terminal
from tests.support.attested import MECHANISM, POLICY, embed

GOLDEN = Path(__file__).parents[3] / "golden" / "attest"
BUNDLE = (GOLDEN / "window-v3.zip").read_bytes()
TRUST = parse_trust((GOLDEN / "trust-v3.json").read_bytes())
RECEIPT = (GOLDEN / "receipt-v3.json").read_bytes()
CLOSE = (GOLDEN / "close-v3.checkpoint").read_bytes()
UNSIGNED = "clinic/dan: neither a receipt nor a key in your terms"


@pytest.fixture(scope="module")
def verdict():
    return verify(BUNDLE, TRUST, receipts=[RECEIPT], seen=[CLOSE], embed=embed)


@pytest.mark.parametrize(
    ("exact", "said"),
    [(59.9, []), (60.1, ["epsilon 60.1 of clinic promises nothing"]), (None, ["no epsilon is"])],
)
def test_numbers_that_promise_nothing_pass_nothing(exact, said):
    """Exact noise has an epsilon however little it is; a table shows none above 60."""
    from ragwitness.attest.verdict import Numbers
    from ragwitness.attest.verifier.terms import hollow

    found = hollow((Numbers("clinic", 1e-6, None, "", exact, 1.0, 9, 9),))
    assert len(found) == len(said)
    assert all(text in line for text, line in zip(said, found, strict=True))


def test_the_golden_bundle_passes(verdict):
    assert verdict.outcome == "pass", verdict.why
    left = [check.name for check in verdict.checks if check.status != "pass"]
    assert left == ["log.openings"]  # a bundle of before: other windows are not known
    made = [check.name for check in verdict.checks]
    assert made == ["bundle", *(step.name for step in (*CHEAP, *PROOFS))]
    assert verdict.window == "2026-W47"
    assert "any other slot with 0.12" in verdict.covers[1]  # what an answer is worth, beside chance
    [bare] = (note for note in verdict.notes if not note.startswith("Weak"))
    assert bare.startswith(UNSIGNED)
    assert any("no stranger can check" in line for line in verdict.uncovered)
    assert "other windows are not known" in RESULT_TYPE.report(verdict).title
    told = {check.name: check.detail for check in verdict.checks}
    assert told["accounts"] == (
        "of 9 queries 8 are signed by keys that your terms name, 0 by keys that the provider"
        " logged, 0 have a receipt, 1 neither"
    )


def test_a_window_of_an_earlier_proof_system_is_left_to_the_release_that_checks_it():
    old = {name: (GOLDEN / name).read_bytes() for name in ("window-v1.zip", "trust-v1.json")}
    found = verify(old["window-v1.zip"], parse_trust(old["trust-v1.json"]))
    assert found.outcome == "inconclusive"
    assert "earlier proof system" in found.why
    assert "Verify it with ragwitness 0.2.0." in found.why
    assert [(check.name, check.status) for check in found.checks] == [("bundle", "not checked")]
    assert found.failures == ()
    assert verify(old["window-v1.zip"], None).outcome == "inconclusive"


def test_the_numbers_stand_side_by_side(verdict):
    """Against the accountant that knows nothing of bundles, and in the order they must have."""
    wanted = certify(
        MECHANISM.gaussian_sigma,
        POLICY.queries,
        POLICY.k_max,
        POLICY.joint_delta,
        delta=POLICY.delta,
        sensitivity=MECHANISM.sensitivity("replace"),
    )
    paper = audit_epsilon(4.0, 1e-8, 3, 2, 1e-6)
    for number in verdict.numbers:
        assert number.exact == pytest.approx(wanted.epsilon, rel=1e-9)
        assert number.paper == pytest.approx(paper, rel=1e-12)
        assert number.odometer <= number.exact < number.paper
    assert [number.answers for number in verdict.numbers] == [3, 6]
    assert verdict.epsilon == verdict.numbers[0].exact


def test_the_odometer_is_that_of_the_committed_vectors(verdict):
    from ragwitness.privacy.gaussian import epsilon_at

    evidence = read_evidence(read_bundle(BUNDLE))
    mine = [i for i, (_, r) in enumerate(evidence.queries) if r.tenant == "clinic"]
    vectors = evidence.vectors[mine].astype(float)
    largest = np.linalg.eigvalsh(vectors.T @ vectors)[-1]
    steps = 2 * MECHANISM.scale * np.sqrt(largest) + np.sqrt(len(mine))  # one grid step each
    mu = steps / MECHANISM.gaussian_sigma
    assert verdict.numbers[1].odometer == pytest.approx(epsilon_at(1e-6, mu), rel=1e-9)


def test_three_of_nine_is_mode_b(verdict):
    sampling = verdict.sampling
    assert (sampling.mode, sampling.challenged, sampling.population) == ("B", 3, 9)
    assert sampling.detection == ((1, pytest.approx(1 / 3)),)
    assert sampling_of(500, 30).detection[-1] == (50, pytest.approx(1 - 0.0382, abs=2e-3))
    assert "33.33%" in sampling_line(sampling)
    assert "Mode A" in sampling_line(sampling_of(9, 9))


@pytest.mark.parametrize(
    ("trust", "missing"),
    [
        (
            None,
            {"bundle.note", "log.open", "log.close", "challenge.beacon"}
            | {"policy.pinned", "embedder.pinned", "beacon"},
        ),
        (replace(TRUST, beacon=b""), {"challenge.beacon"}),
        (replace(TRUST, pins=replace(TRUST.pins, policy="")), {"policy.pinned"}),
        (replace(TRUST, noise_beacon=b""), {"beacon"}),
        (replace(TRUST, noise_open=""), {"beacon"}),
    ],
)
def test_without_trust_nothing_passes(trust, missing):
    found = verify(BUNDLE, trust)
    assert found.outcome == "inconclusive"
    assert found.epsilon is None
    left = {check.name for check in found.checks if check.status == "not checked"}
    assert left == missing | {"log.seen", "log.openings", "receipts", "embedding"}


def test_receipts_of_a_log_that_nobody_vouches_for_are_no_evidence():
    found = verify(BUNDLE, None, receipts=[RECEIPT], seen=[CLOSE])
    assert found.outcome == "inconclusive"
    assert "receipts" in {check.name for check in found.checks if check.status == "not checked"}


def test_where_the_table_alone_fails_there_is_no_epsilon():
    assert MECHANISM.epsilon_at(1e-6, 0.5, 6) == pytest.approx(2.4, abs=0.3)
    assert MECHANISM.epsilon_at(1e-6, 20.0, 6) is None


def test_a_load_above_the_cap_is_said(verdict):
    case = VerifierCase(read_evidence(read_bundle(BUNDLE)), TRUST, [RECEIPT])
    heavy = replace(verdict.numbers[0], odometer=9.0)
    said = number_remarks(case, (heavy, verdict.numbers[1]))[0]
    assert "the declared cap understates the load" in said


def test_a_log_that_nobody_else_saw_is_said():
    said = next(n for n in verify(BUNDLE, TRUST).notes if "showed receipts" in n)
    assert said.startswith("0 of 4 accounts showed receipts")
    one = verify(BUNDLE, TRUST, receipts=[RECEIPT]).notes  # one receipt does not silence it
    assert any(note.startswith("1 of 4 accounts showed receipts") for note in one)


# --- what a verifier runs


@pytest.mark.slow
def test_the_verifier_needs_neither_prover_nor_network(tmp_path):
    """In a process of its own: with the bundle alone, and every socket refused."""
    (tmp_path / "bundle.zip").write_bytes(BUNDLE)
    (tmp_path / "trust.json").write_bytes(TRUST.encode())
    script = """
import socket, sys
def refuse(*_, **__): raise RuntimeError("a socket was opened")
socket.socket = refuse
from ragwitness.attest.trust import parse_trust
from ragwitness.attest.verifier import verify
found = verify(open("bundle.zip", "rb").read(), parse_trust(open("trust.json", "rb").read()))
heavy = {"httpx2", "torch", "transformers", "starlette", "sqlalchemy"}
print(found.outcome, sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[0] == "pass []"


def test_the_verdict_as_json_says_everything(verdict):
    told = json.loads(json.dumps(RESULT_TYPE.stored(verdict), allow_nan=False))
    assert told["outcome"] == "pass"
    assert told["epsilon"] == verdict.epsilon
    assert told["sampling"]["mode"] == "B"
    assert told["failure"] is None
    assert RESULT_TYPE.opened(told) == verdict
    failed = RESULT_TYPE.stored(verify(b"", TRUST))
    assert failed["failure"] == "bundle.zip"


def test_the_verdict_fits_a_terminal(verdict):
    from rich.console import Console

    for found in (verdict, verify(BUNDLE, None), verify(b"", None)):
        screen = Console(width=80, record=True, file=io.StringIO())
        screen.print(terminal(RESULT_TYPE.report(found), verbose=True))
        text = screen.export_text()
        assert text.splitlines()[1].startswith(found.outcome.upper())
        assert all(len(line) <= 80 for line in text.splitlines())
        assert all(check.name in text for check in found.checks)


def test_names_out_of_a_bundle_cannot_paint_the_terminal(verdict):
    from rich.console import Console

    evil = replace(verdict, window="\x1b[2J\u202ew", notes=("\x1b]0;x\x07",))
    screen = Console(width=80, record=True, file=io.StringIO())
    screen.print(terminal(RESULT_TYPE.report(evil)))
    assert "\x1b" not in screen.export_text()
    assert "\u202e" not in screen.export_text()
