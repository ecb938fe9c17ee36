"""Who signed, who saw which log, and what accounts hold: each lie has the name it fails by."""

import json
from dataclasses import replace

import pytest

from ragwitness.attest.trust import Trust
from ragwitness.attest.verifier import verify
from ragwitness.crypto.hashing import canonical
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.notes import Checkpoint, Note, sign_checkpoint
from tests.support.attested import LOG, STRANGER
from tests.support.lies import as_honest, named


def test_a_forged_signature(audited, story):
    story.keys = (STRANGER,)
    named(audited, story.tell(), "bundle.signature")


def test_a_checkpoint_that_a_stranger_signed(audited):
    log = audited.window.ledger.log
    note = sign_checkpoint(Checkpoint(LOG.name, log.size, log.root()), [STRANGER])
    data = as_honest(audited, {"log/close.checkpoint": note})
    named(audited, data, "checkpoint.log_signature")


def test_a_signature_that_was_bent(audited):
    note = Note.parse(audited.files["log/close.checkpoint"])
    [line] = note.signatures
    bent = replace(line, data=line.data[:-1] + bytes([line.data[-1] ^ 1]))
    data = as_honest(audited, {"log/close.checkpoint": replace(note, signatures=(bent,)).encode()})
    named(audited, data, "signature.invalid")


def test_a_rolled_back_log(audited):
    log = MerkleLog()
    log.extend([*audited.window.ledger.entries(), b"one more"])
    seen = sign_checkpoint(Checkpoint(LOG.name, log.size, log.root()), [LOG])
    named(audited, audited.bundle, "log.rolled_back", seen=[seen])


def test_a_split_view(audited):
    entries = audited.window.ledger.entries()
    log = MerkleLog()
    log.extend([*entries[:5], b"shown to somebody else"])
    seen = sign_checkpoint(Checkpoint(LOG.name, 6, log.root()), [LOG])
    named(audited, audited.bundle, "log.split_view", seen=[seen])
    honest = sign_checkpoint(Checkpoint(LOG.name, 6, audited.window.ledger.log.root(6)), [LOG])
    assert verify(audited.bundle, audited.trust, seen=[honest]).outcome == "pass"


def test_the_verdict_says_when_opening_and_close_were_witnessed(audited):
    from ragwitness.crypto.keys import KeyKind, PrivateKey
    from ragwitness.crypto.notes import signature_of

    witness = PrivateKey("w.example/1", KeyKind.COSIGNATURE, bytes([9]) * 32)
    trust = replace(
        audited.trust, notes=replace(audited.trust.notes, witnesses=(witness.public,), quorum=1)
    )
    files = {}
    for name, time in (("open", 1_700_000_000), ("close", (1 << 63) - 1)):
        note = Note.parse(audited.files[f"log/{name}.checkpoint"])
        line = signature_of(witness, Checkpoint.parse(note.text), time)
        files[f"log/{name}.checkpoint"] = replace(
            note, signatures=(*note.signatures, line)
        ).encode()
    found = verify(as_honest(audited, files), trust)
    said = {check.name: check.detail for check in found.checks}
    assert said["log.open"].endswith("1 of its witnesses, first at 2023-11-14 22:13:20 UTC")
    assert said["log.close"].endswith("1 of its witnesses")  # no time that a calendar has


def test_a_log_that_no_witness_saw(audited):
    from ragwitness.crypto.keys import KeyKind, PrivateKey
    from ragwitness.crypto.notes import Signers

    witness = PrivateKey("w.example/1", KeyKind.COSIGNATURE, bytes([9]) * 32)
    strict = Trust(Signers((LOG.public,), (witness.public,), 1), audited.trust.beacon)
    found = verify(audited.bundle, strict)
    assert found.failures[0].failure == "checkpoint.quorum"


@pytest.mark.parametrize("field", ["query", "ids", "vector", "entry"])
def test_an_edited_receipt(audited, field):
    value = json.loads(audited.receipts[0])
    names = {"query": "receipt.query", "ids": "receipt.answer", "vector": "receipt.vector"}
    if field == "ids":
        value["ids"] = value["ids"][::-1]
    elif field == "query":
        value["query"] = "ab" * 32
    elif field == "vector":
        value["vector"] = json.loads(audited.receipts[1])["vector"]
    else:
        value["entry"] = value["entry"].replace('"ann-0"', '"ann-9"')
    named(
        audited,
        audited.bundle,
        names.get(field, "log.inclusion"),
        receipts=[canonical(value)],
    )


def test_a_receipt_of_another_log_is_named_and_convicts_nobody(audited):
    """Anybody can hand in a file: the verdict says which one, and that it tells of its bearer."""
    value = json.loads(audited.receipts[0])
    value["proof"] = value["proof"].replace("example.org/log", "example.org/other")
    given = [audited.receipts[1], canonical(value)]
    found = verify(audited.bundle, audited.trust, receipts=given)
    assert found.failures[0].failure == "checkpoint.origin"
    assert "Receipt 2 of 2 does not hold in itself" in found.why


def test_a_receipt_of_a_record_that_the_log_never_had(audited, story):
    """The provider answered, signed, and then closed a log without it."""
    log = MerkleLog()
    entries = audited.window.ledger.entries()[:-1]
    entry = entries[-1].replace(b'"nonce":"', b'"nonce":"other')
    log.extend([*entries[:-1], entry])
    from ragwitness.attest.receipts import Receipt
    from ragwitness.crypto.notes import LogProof

    note = sign_checkpoint(Checkpoint(LOG.name, log.size, log.root()), [LOG])
    proof = LogProof(log.size - 1, log.inclusion(log.size - 1), note)
    receipt = Receipt(entry, proof.encode(), audited.opened[-1]).encode()
    named(audited, audited.bundle, "receipt.contradicted", receipts=[receipt])
