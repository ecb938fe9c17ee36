"""A provider that asks in an account's name, or chooses a noise: refused or named."""

import secrets
from dataclasses import replace
from hashlib import sha256

import pytest

from ragwitness.attest.bundle import read_bundle, write_bundle
from ragwitness.attest.commitments import checkpoint_token
from ragwitness.attest.receipts import Receipt
from ragwitness.attest.verifier import verify
from ragwitness.crypto.keys import KeyKind, PrivateKey
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.notes import (
    Checkpoint,
    LogProof,
    Note,
    Signers,
    cosign,
    sign_checkpoint,
    signature_of,
)
from ragwitness.crypto.records import AdmitRecord, BeaconRecord, QueryRecord, encode
from tests.support.attested import KEYS, LOG, NOISE, PINNED, STRANGER, believing, signed
from tests.support.lies import judged, named

WITNESS = PrivateKey("witness.example", KeyKind.COSIGNATURE, bytes([9]) * 32)


def invent(story, at, count):
    """Queries that an account never sent, before the one at this place of the records."""
    asked = story.records[at]
    place = story.places.index(at)
    for turn in range(count):
        fields = {
            "sequence": str(int(asked.sequence) + turn),
            "number": str(int(asked.number) + turn),
            "nonce": secrets.token_hex(8),
        }
        story.records.insert(at + turn, asked.model_copy(update=fields))
        story.opened.insert(place + turn, story.opened[place])
    moved = {name: str(int(getattr(asked, name)) + count) for name in ("sequence", "number")}
    story.records[at + count] = asked.model_copy(update=moved)


def of(story, account):
    return next(
        at
        for at in story.places
        if story.records[at].account == account and story.records[at].sequence == "0"
    )


def test_queries_invented_for_an_account_with_a_key(audited, story):
    """The reroll of the review: the provider asks as cid until the noise is one it likes."""
    at = max(at for at in story.places if story.records[at].account == "cid")
    asked = story.records[at]
    story.records[at] = asked.model_copy(update={"nonce": "the provider's own"})
    named(audited, story.tell(), "record.signature")


def test_queries_invented_for_an_account_without_a_key_are_named(audited, story):
    """Dan asked once; the log has three of his, and he hands in his only receipt."""
    at = of(story, "dan")
    invent(story, at, 2)
    story.relink()
    data = story.tell()
    found = judged(audited, data)
    said = {check.name: check for check in found.checks}
    assert said["records"].status == "pass", found.why
    assert "3 neither" in said["accounts"].detail
    receipt = _receipt(story, at + 2)
    found = judged(audited, data, receipts=[receipt])
    said = {check.name: check for check in found.checks}["accounts"]
    assert said.status == "not checked"
    assert "clinic/dan hands in 1 receipt, and the log holds 3 queries" in said.detail


def test_an_account_that_is_registered_twice(audited, story):
    """A second place is a second set of sub-seeds to choose from."""
    at = of(story, "ann")
    again = next(r for r in story.records if isinstance(r, AdmitRecord) and r.account == "ann")
    story.records.insert(at, again.model_copy(update={"place": "4"}))
    story.relink()
    named(audited, story.tell(), "admit.again")


@pytest.mark.parametrize(("most", "passes"), [(0, False), (2, False), (3, True), (None, True)])
def test_a_verifier_says_how_many_queries_may_be_nobodys(audited, story, most, passes):
    """Dan has no key and hands in nothing: three queries in his name that nobody vouches for."""
    invent(story, of(story, "dan"), 2)
    story.relink()
    data = story.tell()
    trust = believing(audited, data)
    trust = replace(trust, pins=replace(trust.pins, unsigned_most=most, accounts=PINNED))
    if not passes:
        named(audited, data, "terms.unsigned", trust)
        return
    found = {check.name: check for check in judged(audited, data, trust).checks}
    assert found["accounts"].status == "pass"


def test_a_key_that_the_provider_logged_is_no_account_s_word(audited):
    """The reroll under signatures: only the verifier's own terms bind a key to an account."""
    data, trust = audited.bundle, audited.trust
    terms = replace(trust.pins, unsigned_most=1)  # dan asked once, and has no key
    found = judged(audited, data, replace(trust, pins=terms))
    said = {check.name: check for check in found.checks}["accounts"]
    assert (found.outcome, said.status) == ("inconclusive", "not checked")
    assert "signed by keys that the provider logged" in said.detail
    known = replace(trust, pins=replace(terms, accounts=PINNED))
    assert judged(audited, data, known).outcome == "pass"
    other = PINNED | {"clinic/ann": STRANGER.public.material.hex()}
    named(audited, data, "terms.account_key", replace(trust, pins=replace(terms, accounts=other)))


def test_one_receipt_of_two_signed_queries_leaves_the_other_open(audited, story):
    at = of(story, "ann")
    receipt, data = _receipt(story, at), story.tell()
    found = {c.name: c for c in judged(audited, data, receipts=[receipt]).checks}["accounts"]
    asked = sum(story.records[place].account == "ann" for place in story.places)
    assert asked > 1
    assert found.status == "not checked"
    assert f"clinic/ann hands in 1 receipt, and the log holds {asked} queries" in found.detail


def _receipt(story, at):
    story._seal()
    entries = [encode(record) for record in story.records]
    log = MerkleLog()
    log.extend(entries)
    note = sign_checkpoint(Checkpoint(LOG.name, log.size, log.root()), story.keys)
    proof = LogProof(at, log.inclusion(at), note).encode()
    return Receipt(entries[at], proof, story.opened[story.places.index(at)]).encode()


@pytest.mark.parametrize(
    "sign",
    [
        lambda record: {"signature": "00" * 64},
        lambda record: {"signature": STRANGER.sign(b"x").hex()},
        lambda record: {
            "signature": signed(record.model_copy(update={"window": "2026-W46"})).signature
        },
        lambda record: {
            "signature": signed(record.model_copy(update={"tenant": "clinic"})).signature
        },
    ],
    ids=["zeros", "another key", "another window", "another tenant"],
)
def test_a_signature_that_is_not_of_this_request(audited, story, sign):
    story.change(8, **sign(story.records[story.places[8]]))
    named(audited, story.tell(), "record.signature")


def test_a_record_of_a_keyed_account_without_a_signature(audited, story):
    at = story.places[8]
    fields = story.records[at].model_dump(exclude={"type", "signature"})
    story.records[at] = QueryRecord(**fields)
    named(audited, story.tell(), "record.signature")


def test_a_signature_where_no_key_was_logged(audited, story):
    """The admission is told anew without bob's key; his records keep their signatures."""
    at = next(i for i, r in enumerate(story.records) if getattr(r, "account", "") == "bob")
    fields = story.records[at].model_dump(exclude={"type", "key"})
    story.records[at] = AdmitRecord(**fields)
    story.relink()
    named(audited, story.tell(), "record.signature")


@pytest.mark.parametrize(
    ("key", "check"),
    [
        (KEYS["ann"].public.material.hex(), "admit.key_again"),
        ("01" + "00" * 31, "admit.key"),  # small order
        ("02" + "00" * 31, "admit.key"),  # no point of the curve
        (STRANGER.public.material.hex(), "record.signature"),  # the provider's own
    ],
)
def test_another_key_for_bob(audited, story, key, check):
    at = next(i for i, r in enumerate(story.records) if getattr(r, "account", "") == "bob")
    story.records[at] = story.records[at].model_copy(update={"key": key})
    story.relink()
    named(audited, story.tell(), check)


# --- the beacon


def _beacon(story):
    return next(i for i, r in enumerate(story.records) if isinstance(r, BeaconRecord))


def test_no_beacon(audited, story):
    del story.records[_beacon(story)]
    story.relink()
    found = judged(audited, story.tell())
    assert {c.name: c for c in found.checks}["beacon"].status == "not checked"
    assert found.outcome != "pass"


def test_another_beacon_than_the_trust_files(audited, story):
    at = _beacon(story)
    other = sha256(b"a value that the provider likes").hexdigest()
    story.records[at] = story.records[at].model_copy(update={"value": other})
    story.relink()
    named(audited, story.tell(), "beacon.value")


def test_two_beacons(audited, story):
    at = _beacon(story)
    story.records.insert(at, story.records[at])
    story.relink()
    named(audited, story.tell(), "beacon.again")


def test_a_beacon_of_another_window(audited, story):
    at = _beacon(story)
    story.records[at] = story.records[at].model_copy(update={"window": "2026-W46"})
    story.relink()
    named(audited, story.tell(), "record.window")


def test_a_beacon_after_the_first_query(audited, story):
    record = story.records.pop(_beacon(story))
    story.records.insert(story.places[0] + 1, record)
    story.relink()
    named(audited, story.tell(), "beacon.late")


def test_a_nonce_that_was_drawn_before_the_beacon(audited, story):
    """Then the provider could take its time and choose among beacons."""
    record = story.records.pop(_beacon(story))
    story.records.insert(story.places[0], record)
    story.relink()
    at = story.places[0]
    log = MerkleLog()
    log.extend([encode(one) for one in story.records[: at - 1]])
    token = checkpoint_token(log.size, log.root())
    story.records[at] = signed(story.records[at].model_copy(update={"checkpoint": token}))
    named(audited, story.tell(), "record.beacon")


def test_an_opening_that_was_not_the_one_shown(audited, story):
    """The provider saw the beacon and opened another window of the same name."""
    root = sha256(b"sub-seeds drawn with the beacon in hand").hexdigest()
    story.records[0] = story.records[0].model_copy(update={"seed_root": root})
    story.relink()
    data = story.tell()
    shown = replace(believing(audited, data), noise_open=audited.trust.noise_open)
    named(audited, data, "beacon.open", trust=shown)
    late = checkpoint_token(3, audited.window.ledger.log.root(3))  # covers the beacon itself
    found = verify(audited.bundle, replace(audited.trust, noise_open=late))
    assert found.failures[0].failure == "beacon.open"


def test_queries_without_a_nonce_pass_nothing(audited, story):
    story.change(8, nonce="")
    found = judged(audited, story.tell())
    assert found.outcome == "fail"  # this policy asks for one
    assert {c.name: c for c in found.checks}["beacon"].detail.startswith("1 queries carry no nonce")


def test_the_time_of_a_public_beacon_and_of_the_witnesses(audited):
    """Somebody who saw no opening believes the witnesses that it came first."""
    files = dict(read_bundle(audited.bundle).files)
    signers = Signers((LOG.public,), (WITNESS.public,), 1)
    alone = replace(signers, quorum=0)
    note = cosign(None, files["log/open.checkpoint"], (), alone, WITNESS, 1_000)
    files["log/open.checkpoint"] = note
    closing = cosign(None, files["log/close.checkpoint"], (), alone, WITNESS, 9_000)
    files["log/close.checkpoint"] = closing
    data = write_bundle(audited.window.policy.window, files, [LOG])
    trust = replace(audited.trust, notes=signers, noise_open="")
    for time, outcome, status in (
        (0, "inconclusive", "not checked"),
        (999, "fail", "fail"),
        (1_000, "fail", "fail"),
        (1_001, "pass", "pass"),
    ):
        found = verify(data, replace(trust, noise_time=time))
        assert found.outcome == outcome, (time, found.why)
        assert {c.name: c for c in found.checks}["beacon"].status == status
        if outcome == "fail":
            assert found.failures[0].failure == "beacon.early"
    # A plain key states no time, and nothing missing is a favourable time.
    plain = PrivateKey("plain.example", KeyKind.NOTE, bytes([8]) * 32)
    late = Signers((LOG.public,), (plain.public,), 1)
    for name in ("open", "close"):
        note = Note.parse(read_bundle(audited.bundle).files[f"log/{name}.checkpoint"])
        line = signature_of(plain, Checkpoint.parse(note.text), None)
        files[f"log/{name}.checkpoint"] = Note(note.text, (*note.signatures, line)).encode()
    data = write_bundle(audited.window.policy.window, files, [LOG])
    found = verify(data, replace(audited.trust, notes=late, noise_open="", noise_time=5_000))
    assert (found.outcome, "a plain key states no time" in found.why) == ("inconclusive", True)
    unseen = verify(audited.bundle, replace(audited.trust, noise_open="", noise_time=5_000))
    assert unseen.outcome == "inconclusive"
    assert "nothing says that the beacon was unknown" in unseen.why


@pytest.mark.parametrize(("quorum", "complete"), [(1, 1_000), (2, 2_000), (3, 4_000)])
def test_the_opening_is_witnessed_once_the_quorum_is_complete(audited, quorum, complete):
    files = dict(read_bundle(audited.bundle).files)
    witnesses = [
        PrivateKey(f"w{n}.example", KeyKind.COSIGNATURE, bytes([50 + n]) * 32) for n in range(3)
    ]
    for name in ("open", "close"):
        note = Note.parse(files[f"log/{name}.checkpoint"])
        checkpoint = Checkpoint.parse(note.text)
        times = (2_000, 4_000, 1_000) if name == "open" else (9_000, 9_000, 9_000)
        lines = [
            signature_of(witness, checkpoint, time)
            for witness, time in zip(witnesses, times, strict=True)
        ]
        files[f"log/{name}.checkpoint"] = Note(note.text, (*note.signatures, *lines)).encode()
    data = write_bundle(audited.window.policy.window, files, [LOG])
    signers = Signers((LOG.public,), tuple(witness.public for witness in witnesses), quorum)
    trust = replace(audited.trust, notes=signers, noise_open="")
    assert verify(data, replace(trust, noise_time=complete)).outcome == "fail"
    assert verify(data, replace(trust, noise_time=complete + 1)).outcome == "pass"


def test_the_honest_window_says_how_it_was_made(audited):
    found = verify(audited.bundle, audited.trust, receipts=audited.receipts)
    assert found.outcome == "pass"
    said = {check.name: check.detail for check in found.checks}
    assert said["accounts"].startswith("of 9 queries 0 are signed by keys that your terms name")
    assert said["beacon"].startswith(NOISE[:16])
    assert not any("neither" in note for note in found.notes)
