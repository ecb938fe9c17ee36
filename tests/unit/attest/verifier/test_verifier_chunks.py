"""An index of several chunks, from the opening to the verdict."""

from dataclasses import replace

import numpy as np
import pytest

from ragwitness.attest.bundle import read_bundle, write_bundle
from ragwitness.attest.challenge import make_challenge
from ragwitness.attest.commit import Contents, open_window
from ragwitness.attest.commitments import CommittedEmbedder, checkpoint_token, proof_shape
from ragwitness.attest.prove import close_window, prove_window
from ragwitness.attest.trust import Pins, Trust
from ragwitness.attest.verifier import verify
from ragwitness.attest.window import Window
from ragwitness.crypto.notes import Checkpoint, Signers
from ragwitness.crypto.proofs.arithmetic import POINT_BYTES
from tests.support.attested import BEACON, LOG, MECHANISM, POLICY, WIDE, request_of


@pytest.mark.long
@pytest.mark.parametrize("slots", [4_098, 16_384])
def test_a_window_over_several_chunks_passes_and_a_mixed_proof_fails(tmp_path, slots):
    """16,384 slots are eight chunks of 2,048; of 4,098 the third chunk holds two."""
    policy = replace(POLICY, tenants={"clinic": replace(MECHANISM, capacity=slots)})
    rows = np.random.default_rng(1).integers(-5, 6, (slots, 8)).astype(np.int16)
    held = {"clinic": Contents(rows, ["5e" * 32] * slots)}
    embedder = CommittedEmbedder({"weights": "5e" * 32}, bytes(32))
    open_window(tmp_path / "window", policy, held, embedder, (LOG,))
    window = Window.load(tmp_path / "window", (LOG,))
    receipts = []
    for account in ("ann", "cid"):
        window.admit("clinic", account)
        answered = window.record(request_of(window, "clinic", account, 0))
        receipts.append(answered.receipt.encode())
    close_window(window)
    log = window.ledger.log
    close = Checkpoint(LOG.name, log.size, log.root())
    data = prove_window(window, make_challenge(BEACON, close, 2, 2))
    token = checkpoint_token(close.size, close.root)
    trust = Trust(Signers((LOG.public,)), BEACON, 2, token, pins=Pins(bounds=WIDE))
    verdict = verify(data, trust, receipts=receipts)
    made = {check.name: check.status for check in verdict.checks}
    assert (made["norms"], made["answers"]) == ("pass", "pass"), verdict.why
    assert verdict.failures == ()  # no beacon of the noise is given here
    # The chunks' parts of a proof, in another order.
    files = dict(read_bundle(data).files)
    proof = files["records/0.proof"]
    shape = proof_shape(policy)
    head, size = proof[:64], (shape.bits + 4) * POINT_BYTES
    one, two, rest = proof[64 : 64 + size], proof[64 + size : 64 + 2 * size], proof[64 + 2 * size :]
    files["records/0.proof"] = head + two + one + rest
    lied = verify(write_bundle(policy.window, files, (LOG,)), trust, receipts=receipts)
    assert lied.outcome == "fail"
    assert [check.name for check in lied.failures] == ["answers"]
