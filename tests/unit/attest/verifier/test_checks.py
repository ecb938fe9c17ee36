"""What a cheating provider can tell, signed with its own key: each lie has the name it fails by."""

import random
from dataclasses import replace
from hashlib import sha256

import numpy as np

from ragwitness.attest.archive import contents, listing
from ragwitness.attest.commitments import checkpoint_token
from ragwitness.attest.verifier import verify
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.records import encode
from tests.support.attested import MECHANISM, POLICY, signed
from tests.support.lies import as_honest, first_drawn, judged, named, recommit


def test_the_truth_passes(audited):
    found = verify(audited.bundle, audited.trust, receipts=audited.receipts)
    assert found.outcome == "pass", found.why
    assert not found.failures


def test_a_story_that_changes_nothing_passes_too(audited):
    """So that every failure below is that of its lie and not of the telling."""

    def tell(story, place):
        story.reopen(place, blindings=tuple(random.randbytes(32) for _ in range(3)))
        story.relink()

    story, place = first_drawn(audited, tell)
    story.proofs[place] = story.prove(place)
    found = judged(audited, story.tell())
    assert found.outcome == "pass", found.why


# --- the log


def test_a_dropped_record(audited, story):
    del story.records[story.places[0]]
    del story.opened[0]
    story.relink()
    named(audited, story.tell(), "record.sequence")


def test_a_dropped_last_record_is_found_by_its_receipt(audited, story):
    """Nothing in the log is missing then; only the account knows."""
    at = story.places[-1]
    del story.records[at], story.opened[-1]
    story.count = 8
    assert judged(audited, story.tell()).failures[0].name == "answers"  # all but the proofs
    named(audited, story.tell(), "receipt.contradicted", receipts=audited.receipts[-1:])


def test_a_record_that_is_left_out_of_the_bundle_alone(audited, story):
    files = dict(story.files)
    entries = audited.window.ledger.entries()
    del entries[story.places[3]]
    files["log/entries.bin"] = b"".join(len(e).to_bytes(2, "big") + e for e in entries)
    files["vectors.bin"] = files["vectors.bin"][:-48]
    named(audited, as_honest(audited, files), "log.size")


def test_reordered_records(audited, story):
    places = story.places
    same = [i for i in places if story.records[i].account == "ann"]
    one, two = same[0], same[1]
    story.records[one], story.records[two] = story.records[two], story.records[one]
    a, b = places.index(one), places.index(two)
    story.opened[a], story.opened[b] = story.opened[b], story.opened[a]
    named(audited, story.tell(), "record.sequence")


def test_reordered_accounts(audited, story):
    """Even where every account's chain holds: a client named the log as it was."""
    one, two = story.places[:2]
    story.records[one], story.records[two] = story.records[two], story.records[one]
    story.opened[0], story.opened[1] = story.opened[1], story.opened[0]
    named(audited, story.tell(), "record.checkpoint")


def test_a_replayed_record(audited, story):
    story.records.insert(-1, story.records[story.places[0]])
    story.opened.append(story.opened[0])
    named(audited, story.tell(), "record.replayed")


def test_one_question_answered_twice(audited, story):
    """To choose between two noises, under the next sequence."""
    story.records.insert(-1, story.records[story.places[6]])  # cid's second
    story.opened.append(story.opened[6])
    number = int(story.records[-2].number) + 1
    story.change(9, sequence=str(int(story.records[-2].sequence) + 1), number=str(number))
    story.relink()
    named(audited, story.tell(), "record.nonce")


def test_an_edited_query_hash(audited, story):
    entries = audited.window.ledger.entries()
    story.change(0, query="ab" * 32)
    changed = story.tell()
    files = contents(changed, listing(changed))
    named(audited, as_honest(audited, {"log/entries.bin": files["log/entries.bin"]}), "log.root")
    assert len(entries) == len(story.records)


def test_an_edited_query_hash_in_a_log_that_was_made_anew(audited, story):
    """Later clients named the log with the old one; without them the account's next record does."""
    story.change(0, query="ab" * 32)
    named(audited, story.tell(), "record.checkpoint")
    log = MerkleLog()
    for at, record in enumerate(story.records):
        if at in story.places:
            shown = {"checkpoint": checkpoint_token(at, log.root(at))}
            story.records[at] = signed(record.model_copy(update=shown))
        log.append(encode(story.records[at]))
    named(audited, story.tell(), "record.prior")


def test_an_edited_query_hash_of_the_last_record(audited, story):
    story.change(8, query="ab" * 32)
    data = story.tell()
    named(audited, data, "opening.commitment")
    named(audited, data, "receipt.contradicted", receipts=audited.receipts[-1:])


def test_more_queries_than_the_policy_allows(audited, story):
    """A fourth query of an account, whose number would be the first of the next place."""
    last = [i for i in story.places if story.records[i].account == "ann"][-1]
    place = story.places.index(last)
    extra = {"sequence": "3", "number": "3", "nonce": "x"}
    story.records.insert(-1, story.records[last].model_copy(update=extra))
    story.opened.append(story.opened[place])
    story.relink()
    named(audited, story.tell(), "record.count")


def test_an_account_that_was_never_admitted(audited, story):
    story.change(8, account="eve")
    named(audited, story.tell(), "record.account")


def test_a_place_that_was_chosen_once_the_nonce_was_known(audited, story):
    """The last account is admitted right before its query, after its client named a checkpoint."""
    admitted = next(i for i, r in enumerate(story.records) if getattr(r, "place", "") == "3")
    place = next(i for i, at in enumerate(story.places) if story.records[at].account == "dan")
    at = story.places[place]
    story.records.insert(at - 1, story.records.pop(admitted))
    story.change(place, checkpoint=f"{at - 1} root")
    story.relink()
    named(audited, story.tell(), "record.place")


def test_a_sub_seed_of_another_place(audited, story):
    story.change(8, number="11")
    named(audited, story.tell(), "record.number")


def test_a_query_without_its_client_s_nonce(audited, story):
    story.change(8, nonce="")
    named(audited, story.tell(), "record.nonce")


def test_a_nonce_that_the_provider_changed(audited, story):
    """It can grind the noise so; the receipt tells the account."""
    story.change(8, nonce="ground")
    named(audited, story.tell(), "receipt.contradicted", receipts=audited.receipts[-1:])


def test_sigma_changed_in_the_middle(audited, story):
    other = replace(MECHANISM, variance=1 << 21)
    story.change(8, mechanism=other.digest)
    named(audited, story.tell(), "record.mechanism")


def test_a_record_of_another_window(audited, story):
    story.change(8, window="2026-W48")
    named(audited, story.tell(), "record.window")


def test_a_close_that_counts_less(audited, story):
    story.seal = False
    story.records[-1] = story.records[-1].model_copy(update={"queries": "8"})
    named(audited, story.tell(), "close.queries")


def test_a_map_that_leaves_an_account_out(audited, story):
    story.seal = False
    story.records[-1] = story.records[-1].model_copy(update={"map_root": "00" * 32})
    named(audited, story.tell(), "close.map")


# --- what was committed


def test_another_policy_than_the_committed_one(audited):
    other = replace(POLICY, k_max=3)
    named(audited, as_honest(audited, {"policy.json": other.encode()}), "policy.digest")


def test_a_promise_that_the_noise_does_not_keep(audited, story):
    recommit(story, replace(POLICY, epsilon=1.0))
    named(audited, story.tell(), "policy.label")


def test_fewer_sub_seeds_than_the_policy_needs(audited, story):
    recommit(story, seed_count="11")
    named(audited, story.tell(), "policy.seeds")


def test_a_mechanism_that_the_policy_does_not_name(audited, story):
    indexes = tuple(
        index.model_copy(update={"mechanism": "ab" * 32}) for index in story.records[0].indexes
    )
    recommit(story, indexes=indexes)
    named(audited, story.tell(), "policy.mechanism")


def test_columns_that_were_exchanged(audited):
    other = {"tenants/0/columns.bin": audited.files["tenants/1/columns.bin"]}
    named(audited, as_honest(audited, other), "index.columns")


def test_an_index_that_was_exchanged(audited):
    names = ("columns.bin", "index.json", "norms.bin")
    other = {f"tenants/0/{name}": audited.files[f"tenants/1/{name}"] for name in names}
    named(audited, as_honest(audited, other), "index.commitment")


def test_an_embedder_that_was_exchanged(audited):
    other = {"embedder.json": audited.files["embedder.json"].replace(b"5e5e", b"5f5e", 1)}
    named(audited, as_honest(audited, other), "embedder.commitment")


# --- who asked what


def test_a_coalition_above_the_cap(audited, story):
    """Three accounts of one tenant ask the same; the policy allows two."""
    same = [i for i, at in enumerate(story.places) if story.records[at].tenant == "clinic"]
    firsts = {story.records[story.places[i]].account: i for i in reversed(same)}
    assert len(firsts) == 3
    for place in firsts.values():
        story.reopen(place, vector=story.opened[min(firsts.values())].vector)
    story.relink()
    named(audited, story.tell(), "estimate.cap")


def test_an_estimate_that_is_not_the_estimator_s(audited, story):
    story.seal = False
    lie = audited.files["estimate.json"].replace(b'"coalition":"1"', b'"coalition":"2"')
    story.files["estimate.json"] = lie
    story.records[-1] = story.records[-1].model_copy(
        update={"coalition": "2", "certificate": sha256(lie).hexdigest()}
    )
    named(audited, story.tell(), "estimate.certificate")


def test_an_estimate_that_the_close_states_otherwise(audited, story):
    story.seal = False
    story.records[-1] = story.records[-1].model_copy(update={"coalition": "2"})
    named(audited, story.tell(), "estimate.size")


def test_a_certificate_that_the_close_does_not_state(audited, story):
    story.seal = False
    story.records[-1] = story.records[-1].model_copy(update={"certificate": "00" * 32})
    named(audited, story.tell(), "estimate.digest")


def test_vectors_that_were_not_committed_to(audited):
    data = bytearray(audited.files["vectors.bin"])
    data[0] ^= 1
    named(audited, as_honest(audited, {"vectors.bin": bytes(data)}), "vectors.commitment")


def test_a_vector_above_the_scale(audited, story):
    story.reopen(8, vector=np.full(8, 16, np.int16))
    named(audited, story.tell(), "vectors.norm")
