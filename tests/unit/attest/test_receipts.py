"""Receipts, the count at the close, and monitors: each lie fails by its own name."""

import json
import random
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from ragwitness.attest.coalition import certificate, estimate
from ragwitness.attest.prove import close_window
from ragwitness.attest.receipts import Receipt, check_receipt
from ragwitness.attest.window import Window
from ragwitness.attest.window_log import count_queries, watch
from ragwitness.core.errors import VerificationError
from ragwitness.crypto.hashing import canonical
from ragwitness.crypto.keys import KeyKind, PrivateKey
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.notes import (
    Checkpoint,
    LogProof,
    Signers,
    open_checkpoint,
    sign_checkpoint,
)
from ragwitness.crypto.records import (
    CloseRecord,
    QueryRecord,
    decode,
    encode,
)
from ragwitness.crypto.tiles import TileFolder
from tests.support.windows import DIGEST, KEY, ask, policy, window

SIGNERS = Signers((KEY.public,))
WITNESS = PrivateKey("witness.example", KeyKind.COSIGNATURE, bytes([7]) * 32)


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Window:
    return window(tmp_path, monkeypatch)


def _fails(check, call, *arguments):
    with pytest.raises(VerificationError) as found:
        call(*arguments)
    assert found.value.check == check, found.value.message


def _logged(entries) -> MerkleLog:
    log = MerkleLog()
    log.extend(entries)
    return log


def test_a_receipt_reads_back_and_holds(held: Window):
    receipt = held.record(ask(held)).receipt
    again = Receipt.parse(receipt.encode())
    assert again.encode() == receipt.encode()
    record, proof, signed = check_receipt(again, SIGNERS)
    assert (record.account, record.nonce, proof.index) == ("a", "n1", 2)
    assert signed.checkpoint.size == 3
    assert again.opened.query.hex() == DIGEST


def test_an_earlier_receipt_still_holds_in_the_grown_log(held: Window):
    first = held.record(ask(held)).receipt
    held.record(ask(held, "b"))
    later = held.receipt(0)
    assert later.entry == first.entry
    assert check_receipt(later, SIGNERS)[2].checkpoint.size == 5
    assert check_receipt(first, SIGNERS)[2].checkpoint.size == 3


def test_each_edit_of_a_receipt_fails_by_its_own_name(held: Window):
    good = held.record(ask(held)).receipt
    other = held.record(ask(held, "b")).receipt
    record = decode(good.entry)
    edited = encode(record.model_copy(update={"nonce": "n9"}))
    opened = good.opened

    def with_opened(**change):
        return replace(good, opened=replace(opened, **change))

    swapped = (opened.blindings[1], opened.blindings[0], opened.blindings[2])
    cases = {
        "log.inclusion": replace(good, entry=edited),
        "receipt.query": with_opened(query=bytes(32)),
        "receipt.vector": with_opened(vector=opened.vector + np.int16(1)),
        "receipt.answer": with_opened(ids=opened.ids[::-1]),
        "receipt.record": replace(good, entry=held.ledger.entries()[0]),
    }
    for check, receipt in cases.items():
        _fails(check, check_receipt, receipt, SIGNERS)
    _fails("log.inclusion", check_receipt, replace(good, proof=other.proof), SIGNERS)
    _fails("receipt.query", check_receipt, with_opened(blindings=swapped), SIGNERS)
    forged = PrivateKey(KEY.name, KEY.kind, bytes(32))
    _fails("checkpoint.log_signature", check_receipt, good, Signers((forged.public,)))
    witnesses = Signers((KEY.public,), (WITNESS.public,), 1)
    _fails("checkpoint.quorum", check_receipt, good, witnesses)


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"version": "ragwitness/receipt/v2"}, "receipt.fields"),
        ({"more": ""}, "receipt.fields"),
        ({"ids": [True]}, "receipt.fields"),
        ({"ids": [-1]}, "receipt.fields"),
        ({"ids": "0"}, "receipt.fields"),
        ({"vector": "AA=="}, "receipt.fields"),
        ({"vector": "AAB="}, "receipt.fields"),
        ({"query": "00"}, "receipt.fields"),
        ({"blindings": ["00" * 32] * 2}, "receipt.fields"),
        ({"blindings": ["00" * 31] * 3}, "receipt.fields"),
        ({"entry": None}, "receipt.fields"),
    ],
)
def test_a_receipt_of_another_form_is_refused(held: Window, change, check):
    value = json.loads(held.record(ask(held)).receipt.encode())
    _fails(check, Receipt.parse, canonical(value | change))
    _fails("receipt.size", Receipt.parse, b"1" * (1 << 21))


def test_no_flipped_bit_of_a_receipt_is_accepted(held: Window):
    data, rng = held.record(ask(held)).receipt.encode(), random.Random(5)
    for place in range(len(data)):
        wrong = bytearray(data)
        wrong[place] ^= 1 << rng.randrange(8)
        with pytest.raises(VerificationError):
            check_receipt(Receipt.parse(bytes(wrong)), SIGNERS)


def test_the_close_counts_every_account_and_fits_the_certificate(held: Window):
    for i, name in enumerate("aab"):
        held.record(ask(held, name, nonce=str(i)))
    held.admit("clinic", "c")
    found = close_window(held)
    record = decode(held.ledger.entries()[-1])
    assert isinstance(record, CloseRecord)
    data = (held.public / "estimate.json").read_bytes()
    assert record.certificate == sha256(data).hexdigest()
    assert (record.queries, record.coalition, found.size) == ("3", "2", 2)
    records = [r for r in map(decode, held.ledger.entries()) if isinstance(r, QueryRecord)]
    vectors = np.stack([held.kept(i).opened.vector for i in range(3)])
    again = estimate(held.policy, [(r.tenant, r.account) for r in records], vectors)
    assert certificate(again) == data
    note = (held.public / "close.checkpoint").read_bytes()
    signed = open_checkpoint(note, SIGNERS).checkpoint
    assert (signed.size, signed.root) == (
        len(held.ledger.entries()),
        _logged(held.ledger.entries()).root(),
    )
    for name, count in (("a", (True, 2)), ("b", (True, 1)), ("nobody", (False, 0))):
        assert count_queries(held.public, signed, "clinic", name) == count
    assert count_queries(held.public, signed, "archive", "a") == (False, 0)


def test_closing_again_after_a_crash_finishes_the_close(held: Window):
    held.record(ask(held))
    close_window(held)
    before = held.ledger.entries()
    for name in ("close.checkpoint", "checkpoint", "estimate.json"):
        (held.public / name).unlink()
    again = Window.load(held.folder.root, [KEY])
    close_window(again)
    assert again.ledger.entries() == before
    assert (held.public / "close.checkpoint").exists()
    assert (held.public / "estimate.json").exists()


def test_a_window_without_queries_closes(held: Window):
    found = close_window(held)
    assert (found.size, found.queries) == (1, 0)


def test_an_account_is_counted_in_the_entries_that_were_signed_for(held: Window):
    for i in range(3):
        held.record(ask(held, nonce=str(i)))
    shown = open_checkpoint(held.publish(), SIGNERS).checkpoint
    assert count_queries(held.public, shown, "clinic", "a") == (True, 3)
    # Another log under the same size, and one whose records are not those of its hashes.
    _fails("log.root", count_queries, held.public, replace(shown, root=bytes(32)), "clinic", "a")
    bundle = held.public / f"tile/entries/000.p/{shown.size}"
    bundle.write_bytes(bundle.read_bytes().replace(b'"nonce":"2"', b'"nonce":"7"'))
    _fails("log.entry", count_queries, held.public, shown, "clinic", "a")


def test_a_monitor_follows_the_log_and_a_witness_signs_it(held: Window):
    log = held.public
    first = watch(log, held.publish(), SIGNERS)
    assert first.old is None
    for i in range(3):
        held.record(ask(held, nonce=str(i)))
    seen = watch(log, held.publish(), SIGNERS, first.note, WITNESS, 1_700_000_000)
    assert (seen.old.size, seen.new.checkpoint.size) == (1, 5)
    quorum = Signers((KEY.public,), (WITNESS.public,), 1)
    assert open_checkpoint(seen.note, quorum).times == (("witness.example", 1_700_000_000),)
    assert watch(log, seen.note, quorum, seen.note).new.checkpoint.size == 5


def _rewritten(held: Window, place: int) -> tuple[Path, bytes]:
    """Another view of the log, in which one record is another, with all that goes with it."""
    entries = held.ledger.entries()
    record = decode(entries[place])
    entries[place] = encode(record.model_copy(update={"account": "somebody"}))
    log = _logged(entries)
    from ragwitness.crypto.tiles import write_tiles

    folder = held.public.parent / "other-log"
    write_tiles(folder, log, 0, lambda *_: [])
    return folder, sign_checkpoint(Checkpoint(KEY.name, log.size, log.root()), [KEY])


def test_a_changed_past_a_split_view_and_a_rolled_back_log_are_named(held: Window):
    for i in range(3):
        held.record(ask(held, nonce=str(i)))
    early = held.publish()
    held.record(ask(held, "b"))
    late = held.publish()
    log = held.public
    _fails("log.rolled_back", watch, log, early, SIGNERS, late)
    folder, lie = _rewritten(held, 3)
    _fails("log.split_view", watch, folder, lie, SIGNERS, late)
    _fails("log.consistency", watch, folder, lie, SIGNERS, early)
    _fails("log.root", watch, log, lie, SIGNERS)
    forged = PrivateKey(KEY.name, KEY.kind, bytes(32))
    size, root = held.ledger.log.size, held.ledger.log.root()
    wrong = sign_checkpoint(Checkpoint(KEY.name, size, root), [forged])
    _fails("checkpoint.log_signature", watch, log, wrong, SIGNERS)
    shutil.rmtree(log / "tile")
    _fails("log.tile", watch, log, late, SIGNERS)


@pytest.mark.slow
def test_a_log_of_many_tiles_is_followed_from_every_size(tmp_path: Path, monkeypatch):
    held = window(tmp_path, monkeypatch, policy(accounts_most=600, queries=1))
    notes = [held.publish()]
    for i in range(520):
        held.admit("clinic", f"a{i}")
        if i % 130 == 0 or i == 519:
            notes.append(held.publish())
    for known in notes:
        assert watch(held.public, notes[-1], SIGNERS, known).new.checkpoint.size == 521
    # One prefix (C2SP tlog-tiles): the bundles hold the records as they were logged.
    prefix = TileFolder(held.public, 521)
    assert [one for number in range(3) for one in prefix.entries(number)] == held.ledger.entries()
    assert (held.public / "checkpoint").read_bytes() == notes[-1]


def test_a_checkpoint_of_a_size_that_was_never_published_is_compared(held: Window):
    receipts = [held.record(ask(held, nonce=str(i))).receipt for i in range(3)]
    middle = LogProof.parse(receipts[1].proof).checkpoint
    seen = watch(held.public, held.publish(), SIGNERS, middle)
    assert (seen.old.size, seen.new.checkpoint.size) == (4, 5)


def test_publishing_again_keeps_what_witnesses_have_signed(held: Window):
    held.record(ask(held))
    note = held.publish()
    signed = watch(held.public, note, SIGNERS, None, WITNESS, 1_700_000_000).note
    assert signed != note
    (held.public / "checkpoint").write_bytes(signed)
    assert held.publish() == signed
    held.record(ask(held, "b"))
    assert held.publish() != signed
