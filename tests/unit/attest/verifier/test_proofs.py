"""Lies about challenged answers and about indexes, told as far as a proof goes; every byte."""

import random
from dataclasses import replace

import numpy as np
import pytest

from ragwitness.attest.bundle import read_bundle, write_bundle
from ragwitness.attest.commitments import norm_context, proof_shape
from ragwitness.attest.verifier import verify
from ragwitness.crypto.proofs.argument import SecretColumns
from tests.support.attested import LOG, MECHANISM, POLICY
from tests.support.lies import as_honest, first_drawn, judged, named, reindex


def test_a_run_that_was_stopped_goes_on(audited, monkeypatch):
    """Proofs are kept as they are made; the bundle is the same to the byte."""
    from ragwitness.attest.challenge import make_challenge
    from ragwitness.attest.prove import prove_window
    from ragwitness.crypto.proofs import prove_selection as proving

    def never(*_):
        raise AssertionError("a proof was made again")

    monkeypatch.setattr(proving, "prove_answer", never)
    challenge = make_challenge(audited.trust.beacon, audited.close(), 9, 3)
    told = []
    again = prove_window(audited.window, challenge, lambda *at: told.append(at))
    assert again == audited.bundle
    assert told[-1] == ("proofs", 3, 3)


def test_only_what_was_drawn_is_opened(audited):
    """Whoever picks records would get their noise."""
    from ragwitness.attest.challenge import Challenge, make_challenge
    from ragwitness.attest.prove import prove_window
    from ragwitness.core.errors import InputError

    drawn = make_challenge(bytes(32), audited.close(), 9, 3).records
    other = (0, 1, 2) if drawn != (0, 1, 2) else (0, 1, 3)
    for picked in (Challenge(bytes(32), 9, other), Challenge(bytes(32), 8, (0,))):
        with pytest.raises(InputError, match="not drawn from this window"):
            prove_window(audited.window, picked)


def test_a_window_answers_one_challenge(audited):
    """Or an auditor could ask until the noise is off every answer."""
    from ragwitness.attest.challenge import make_challenge
    from ragwitness.attest.prove import prove_window
    from ragwitness.core.errors import InputError

    other = make_challenge(bytes(32), audited.close(), 9, 1)
    with pytest.raises(InputError, match="has answered another challenge"):
        prove_window(audited.window, other)
    more = prove_window(audited.window, other, again=True)
    assert read_bundle(more).records == other.records


# --- the challenge


def test_records_that_the_provider_picked(audited, story):
    from ragwitness.attest.challenge import Challenge

    story.count = 3
    drawn = read_bundle(story.tell()).records
    picked = (0, 1, 2) if drawn != (0, 1, 2) else (0, 1, 3)
    story.files["challenge.json"] = Challenge(audited.trust.beacon, 9, picked).encode()
    named(audited, story.tell(), "challenge.drawn")


def test_a_beacon_that_the_provider_chose(audited):
    trust = replace(audited.trust, beacon=bytes(32))
    found = verify(audited.bundle, trust)
    assert found.failures[0].failure == "challenge.beacon"


def test_fewer_records_than_asked_for(audited):
    found = verify(audited.bundle, replace(audited.trust, records=4))
    assert found.failures[0].failure == "challenge.count"


def test_a_record_that_is_not_opened(audited):
    files = dict(read_bundle(audited.bundle).files)
    place = read_bundle(audited.bundle).records[0]
    free = next(i for i in range(9) if i not in read_bundle(audited.bundle).records)
    for end in ("json", "proof"):
        files[f"records/{free}.{end}"] = files.pop(f"records/{place}.{end}")
    named(audited, write_bundle(POLICY.window, files, [LOG]), "challenge.opened")


def test_another_sub_seed(audited, story):
    """Ground noise: a seed whose noise the provider likes better."""
    story.disclosures[4] = {"seed": bytes(32)}
    named(audited, story.tell(), "seed.opening")


def test_another_text(audited, story):
    story.disclosures[4] = {"text": "another question"}
    named(audited, story.tell(), "opening.text")


def test_another_answer(audited, story):
    story.disclosures[4] = {"ids": story.opened[4].ids[::-1]}
    named(audited, story.tell(), "opening.commitment")


def test_an_answer_of_one_slot_twice(audited, story):
    slot = story.opened[8].ids[0]
    story.reopen(8, ids=(slot, slot))
    named(audited, story.tell(), "opening.answer")


def test_a_vector_that_is_not_that_of_its_text(audited):
    """A1: only a verifier who has the embedder sees it."""
    from tests.support.attested import embed

    found = verify(audited.bundle, audited.trust, embed=embed)
    assert found.outcome == "pass"
    found = verify(audited.bundle, audited.trust, embed=lambda texts: -embed(texts))
    assert found.failures[0].failure == "embedder.vector"


# --- the proofs


def _noise(story, place):
    from ragwitness.attest.challenge import noise_of

    record = story.records[story.places[place]]
    seed = story.audited.window.seed_opening(int(record.number))[0]
    beacon = story.audited.window.ledger.beacon
    return noise_of(MECHANISM, record, seed, story.opened[place].query, beacon)


def _best(scores):
    return tuple(np.argsort(-scores, kind="stable")[:2].tolist())


def _lie(audited, answer, *, columns=None, noise=None):
    """Answer a challenged record otherwise, and prove it as far as that goes."""

    def tell(story, place):
        record = story.records[story.places[place]]
        rows = audited.window.secret_columns(record.tenant).rows.astype(np.int64)
        scores = rows @ story.opened[place].vector.astype(np.int64)
        blindings = tuple(random.randbytes(32) for _ in range(3))
        ids = answer(story, place, scores)
        story.reopen(place, ids=ids, blindings=blindings)
        story.relink()

    story, place = first_drawn(audited, tell)
    record = story.records[story.places[place]]
    made = None if columns is None else columns(record)
    story.proofs[place] = story.prove(place, columns=made, noise=noise)
    return story.tell()


def test_selected_before_the_noise(audited):
    """The true nearest slots, and a proof that there was no noise."""
    data = _lie(audited, lambda story, place, scores: _best(scores), noise=np.zeros(16, np.int64))
    named(audited, data, "link.noise")


def test_noise_of_another_seed(audited):
    other = np.random.default_rng(3).integers(-3000, 3000, 16)
    data = _lie(audited, lambda story, place, scores: _best(scores + other), noise=other)
    named(audited, data, "link.noise")


def _worst(story, place, scores):
    return _best(-(scores + _noise(story, place)))


def test_one_falsified_score(audited):
    """The attack that the paper's circuit accepts: a better document's score is told lower.

    The proof is made over rows of which one, that no answer names, is another than was committed
    to; all else about it is right.
    """
    hidden = {}

    def without(record):
        held = audited.window.secret_columns(record.tenant)
        rows = held.rows.copy()
        rows[hidden["slot"]] = hidden["row"]
        return SecretColumns(rows, held.blinds, held.public)

    def answer(story, place, scores):
        noisy = scores + _noise(story, place)
        best = int(np.argmax(noisy))
        vector = story.opened[place].vector.astype(np.int64)
        hidden["slot"] = best
        hidden["row"] = (-60 * vector).astype(np.int16)  # as low as the range checks allow
        noisy[best] = int(hidden["row"].astype(np.int64) @ vector) + noisy[best] - scores[best]
        hidden["left"] = best not in _best(noisy)
        return _best(noisy)

    data = _lie(audited, answer, columns=without)
    assert hidden["left"]
    named(audited, data, "link.opening")


def test_the_rows_of_another_tenant(audited):
    """A4: the answer is right for somebody else's index."""
    names = {"clinic": "archive", "archive": "clinic"}

    def answer(story, place, scores):
        tenant = names[story.records[story.places[place]].tenant]
        rows = audited.window.secret_columns(tenant).rows.astype(np.int64)
        vector = story.opened[place].vector.astype(np.int64)
        return _best(rows @ vector + _noise(story, place))

    def columns(record):
        mine = audited.window.secret_columns(record.tenant)
        other = audited.window.secret_columns(names[record.tenant])
        return SecretColumns(other.rows, other.blinds, mine.public)

    named(audited, _lie(audited, answer, columns=columns), "link.opening")


def test_wrong_slots(audited):
    """There is no proof of them; that of the right ones is for another answer."""

    def tell(story, place):
        rows = audited.window.secret_columns(story.records[story.places[place]].tenant).rows
        scores = rows.astype(np.int64) @ story.opened[place].vector.astype(np.int64)
        blindings = tuple(random.randbytes(32) for _ in range(3))
        story.reopen(place, ids=_worst(story, place, scores), blindings=blindings)
        story.relink()

    story, _ = first_drawn(audited, tell)
    named(audited, story.tell(), "link.statement")


@pytest.mark.parametrize(
    ("bend", "check"),
    [
        (lambda proof: proof[:-1], "link.size"),
        (lambda proof: proof + b"\0", "link.size"),
        (lambda proof: b"", "link.size"),
        (lambda proof: proof[:-32] + b"\xff" * 32, "point.field"),
        (lambda proof: proof[:64] + b"\xff" * 48 + proof[112:], "point.encoding"),
        (lambda proof: proof[:64] + b"\x80" + bytes(46) + b"\1" + proof[112:], "point.curve"),
        (lambda proof: proof[:64] + b"\x80" + bytes(47) + proof[112:], "point.subgroup"),
        (lambda proof: bytes(32) + proof[32:], "link.statement"),
        (lambda proof: proof[:32] + bytes(32) + proof[64:], "link.noise"),
    ],
)
def test_a_proof_that_was_bent(audited, bend, check):
    honest = read_bundle(audited.bundle)
    name = f"records/{honest.records[1]}.proof"
    data = as_honest(audited, {name: bend(honest.files[name])})
    named(audited, data, check)
    assert f"Record {honest.records[1]}" in judged(audited, data).why


def test_the_proof_of_another_record(audited):
    honest = read_bundle(audited.bundle)
    one, two = (f"records/{place}.proof" for place in honest.records[:2])
    data = as_honest(audited, {one: honest.files[two]})
    named(audited, data, "link.statement")


@pytest.mark.slow
def test_a_row_above_the_norm(audited, story):
    """The sensitivity rests on it; the best that can be shown is a proof over shorter rows."""
    from ragwitness.crypto.proofs import argument, prove_norms

    rows = audited.window.secret_columns("archive").rows.copy()
    long = rows.copy()
    long[3] = 11  # 11 · √8 = 31 > 16
    with pytest.MonkeyPatch.context() as free:
        free.setattr(argument, "check_integer_rows", lambda *_: None)
        held = argument.commit_columns(long, proof_shape(POLICY))
        free.setattr(prove_norms, "verify_norms", lambda *_: None)
        short = SecretColumns(rows, held.blinds, held.public)
        context = norm_context(POLICY.window, "archive")
        norms = prove_norms.prove_norms(proof_shape(POLICY), short, context)
    reindex(story, columns=held.public, norms=norms)
    named(audited, story.tell(), "norm.opening")


@pytest.mark.parametrize(
    ("bend", "check"),
    [
        (lambda proof: proof[:-1], "norm.size"),
        (lambda proof: proof + b"\0", "norm.size"),
        (lambda proof: proof[:-32] + b"\xff" * 32, "point.field"),
    ],
)
def test_a_norm_proof_that_was_bent(audited, story, bend, check):
    reindex(story, norms=bend(audited.files["tenants/0/norms.bin"]))
    found = judged(audited, story.tell())
    assert found.failures[0].name == "norms", found.why
    assert found.failures[0].failure.split(".")[0] in ("norm", "point"), check


def test_a_norm_proof_of_another_tenant(audited, story):
    reindex(story, norms=audited.files["tenants/1/norms.bin"])
    found = judged(audited, story.tell())
    assert found.failures[0].name == "norms"


# --- bytes


@pytest.mark.slow
def test_ten_thousand_flipped_bytes(audited):
    """Nobody but the provider can change a byte: the file's form and its signature see to it."""
    from ragwitness.attest.bundle import verify_note
    from ragwitness.core.errors import VerificationError

    rng = random.Random(1)
    for _ in range(10_000):
        raw = bytearray(audited.bundle)
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        try:
            verify_note(read_bundle(bytes(raw)), [LOG.public])
        except VerificationError:
            continue
        pytest.fail("a flipped byte was accepted")


@pytest.mark.slow
@pytest.mark.parametrize("count", [60, pytest.param(600, marks=pytest.mark.long)])
def test_flipped_bytes_that_the_provider_signs(audited, count):
    """Every byte of every file counts: none is read past, not even by a provider's own flip."""
    rng = random.Random(count)
    honest = dict(read_bundle(audited.bundle).files)
    names = sorted(honest)
    accepted = []
    for turn in range(count):
        name = names[turn % len(names)]
        raw = bytearray(honest[name])
        at, bit = rng.randrange(len(raw)), rng.randrange(8)
        raw[at] ^= 1 << bit
        data = write_bundle(POLICY.window, honest | {name: bytes(raw)}, [LOG])
        if judged(audited, data).outcome != "fail":
            accepted.append((name, at, bit))
    assert accepted == []
