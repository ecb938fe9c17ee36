"""Bytes that later versions must still make and verify: a change here is a new format version."""

from pathlib import Path

from ragwitness.crypto.hashing import Opening, commit
from ragwitness.crypto.keys import KeyKind, PrivateKey
from ragwitness.crypto.merkle import MerkleLog, map_key, map_root, seed_tree
from ragwitness.crypto.notes import (
    Checkpoint,
    LogProof,
    Signers,
    cosign,
    open_proof,
    sign_checkpoint,
)
from ragwitness.privacy.streams import sub_seed

LOG = PrivateKey("example.org/log", KeyKind.NOTE, bytes([1]) * 32)
WITNESS = PrivateKey("example.org/w", KeyKind.COSIGNATURE, bytes([2]) * 32)
RECORDS = [b"a", b"b", b"c", b"d", b"e"]
RECEIPT = Path(__file__).parents[2] / "golden/crypto/receipt-v1.tlog-proof"


def _receipt():
    log = MerkleLog()
    log.extend(RECORDS)
    note = sign_checkpoint(Checkpoint("example.org/log", 5, log.root()), [LOG])
    note = cosign(None, note, (), Signers((LOG.public,)), WITNESS, 1_700_000_000)
    return LogProof(2, log.inclusion(2), note).encode()


def test_a_receipt():
    stored = RECEIPT.read_bytes()
    assert _receipt() == stored
    policy = Signers((LOG.public,), (WITNESS.public,), quorum=1)
    assert open_proof(stored, b"c", policy)[0].index == 2


def test_roots_and_commitments():
    keys = [map_key("w", "t", str(i)) for i in range(3)]
    root = map_root({key: (i + 1, bytes(32)) for i, key in enumerate(keys)})
    seeds = seed_tree(sub_seed(bytes(32), "w", number) for number in range(5))
    assert {
        "commitment": commit(Opening("d", b"message", bytes(32))).hex(),
        "map root": root.hex(),
        "seed root": seeds.root().hex(),
    } == GOLDEN


GOLDEN = {
    "commitment": "25771320683f257f0f17a1380e5f3e5390bcaf11d315385bfacc618ed8a022b3",
    "map root": "54af3b0df8bb07cbde98e17933527f65788a01f3fd54a733654f8c38a8aced2b",
    "seed root": "ef48b1b967387da673692e00cee6f0358d5a0d502271d86d47d7b52b7acb3a1a",
}
