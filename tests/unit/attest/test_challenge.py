"""Challenges: drawn evenly from beacon and checkpoint; their chance to find what is wrong."""

import hashlib
import io
import itertools
import json
import math
from collections import Counter
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.stats import chisquare, hypergeom

from ragwitness.attest.challenge import (
    detection,
    draw_records,
    make_challenge,
    parse_challenge,
    records_for,
)
from ragwitness.attest.commitments import checkpoint_token
from ragwitness.attest.trust import Trust, parse_trust
from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.keys import KeyKind, PrivateKey
from ragwitness.crypto.notes import Checkpoint, Signers

CLOSE = Checkpoint("example.org/log", 7, bytes(range(32)))
LOG = PrivateKey("example.org/log", KeyKind.NOTE, bytes([1]) * 32).public
WITNESS = PrivateKey("w.example/1", KeyKind.COSIGNATURE, bytes([2]) * 32).public


def test_a_challenge_reads_back_and_is_drawn_again():
    made = make_challenge(bytes(32), CLOSE, 500, 30)
    assert parse_challenge(made.encode()) == made
    assert made == make_challenge(bytes(32), CLOSE, 500, 30)
    assert len(set(made.records)) == 30
    assert list(made.records) == sorted(made.records)
    assert 0 <= made.records[0] <= made.records[-1] < 500


def test_the_drawing_is_fixed_for_ever():
    """The numbers of version 1: a change here breaks every challenge handed out before."""
    assert draw_records(bytes(32), CLOSE, 1000, 5) == (72, 136, 195, 409, 909)


@pytest.mark.parametrize(("population", "count"), [(9, 9), (1000, 5), (2000, 700)])
def test_the_drawing_is_a_plain_shuffle(population, count):
    """The same from the description alone: a list, and 8 bytes of SHAKE256 for each step."""
    beacon = bytes(range(20))
    head = ["ragwitness/challenge/v1", beacon.hex(), CLOSE.text, str(population), str(count)]
    text = json.dumps(head, separators=(",", ":")).encode()
    stream = io.BytesIO(hashlib.shake_256(text).digest(100_000))
    cards = list(range(population))
    for at in range(count):
        room = population - at
        word = int.from_bytes(stream.read(8), "big")
        while word >= 2**64 // room * room:
            word = int.from_bytes(stream.read(8), "big")
        other = at + word % room
        cards[at], cards[other] = cards[other], cards[at]
    assert draw_records(beacon, CLOSE, population, count) == tuple(sorted(cards[:count]))


def test_beacon_checkpoint_and_counts_all_change_the_drawing():
    base = make_challenge(bytes(32), CLOSE, 10**6, 20).records
    other = Checkpoint(CLOSE.origin, 8, CLOSE.root)
    for beacon, close, population in (
        (bytes(31) + b"\1", CLOSE, 10**6),
        (bytes(32), other, 10**6),
        (bytes(32), CLOSE, 10**6 + 1),
    ):
        assert make_challenge(beacon, close, population, 20).records != base


def test_all_sets_of_records_are_equally_likely():
    sets = Counter(draw_records(i.to_bytes(16, "big"), CLOSE, 6, 3) for i in range(8000))
    assert set(sets) == set(itertools.combinations(range(6), 3))
    assert chisquare(list(sets.values())).pvalue > 1e-4


def test_mode_a_is_every_record():
    assert make_challenge(bytes(16), CLOSE, 40, 40).records == tuple(range(40))


@pytest.mark.parametrize(
    ("beacon", "count"), [(b"short", 5), (bytes(300), 5), (bytes(32), 0), (bytes(32), 501)]
)
def test_impossible_challenges_are_refused(beacon, count):
    with pytest.raises(InputError):
        make_challenge(beacon, CLOSE, 500, count)


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"version": "ragwitness/challenge/v2"}, "challenge.fields"),
        ({"beacon": "00"}, "challenge.beacon"),
        ({"beacon": "zz" * 32}, "challenge.fields"),
        ({"records": [3, 1]}, "challenge.records"),
        ({"records": [1, 1]}, "challenge.records"),
        ({"records": []}, "challenge.records"),
        ({"records": [500]}, "challenge.records"),
        ({"records": [True]}, "challenge.fields"),
        ({"beacon": 7}, "challenge.fields"),
        ({"population": 500}, "challenge.fields"),
        ({"population": "0500"}, "challenge.fields"),
        ({"more": 1}, "challenge.fields"),
    ],
)
def test_a_challenge_has_one_form(change, check):
    from ragwitness.crypto.hashing import canonical

    value = json.loads(make_challenge(bytes(32), CLOSE, 500, 3).encode()) | change
    with pytest.raises(VerificationError) as found:
        parse_challenge(canonical(value))
    assert found.value.check == check


@pytest.mark.parametrize(
    ("population", "bad", "count"),
    [(500, 5, 30), (20, 3, 4), (1000, 1, 250), (50, 50, 1), (50, 0, 10), (50, 30, 30)],
)
def test_detection_is_hypergeometric(population, bad, count):
    exact = 1 - Fraction(comb(population - bad, count), comb(population, count))
    assert detection(population, bad, count) == pytest.approx(float(exact), abs=1e-15)
    scipy = 1 - hypergeom(population, bad, count).pmf(0)
    assert detection(population, bad, count) == pytest.approx(scipy, abs=1e-9)


def test_detection_is_what_drawing_gives():
    """Monte Carlo over beacons: 3 bad of 40, 10 drawn."""
    rng = np.random.default_rng(5)
    found = [bool({0, 1, 2} & set(draw_records(rng.bytes(32), CLOSE, 40, 10))) for _ in range(4000)]
    assert np.mean(found) == pytest.approx(detection(40, 3, 10), abs=0.03)  # 4 sigma


@pytest.mark.parametrize("population", [1, 7, 100, 5000])
@pytest.mark.parametrize("share", [0.001, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("miss", [0.3, 0.05, 1e-6])
def test_the_number_of_records_is_the_least_that_suffices(population, share, miss):
    count = records_for(population, share, miss)
    bad = math.ceil(round(share * population, 9))
    assert 1 - detection(population, bad, count) <= miss * (1 + 1e-9)
    if count > 1:
        assert 1 - detection(population, bad, count - 1) > miss * (1 - 1e-9)


def test_drawing_without_repeats_is_better_than_the_paper_s_bound():
    assert detection(500, 25, 30) > 1 - 0.95**30


@pytest.mark.parametrize(("share", "miss"), [(0, 0.1), (1.1, 0.1), (0.1, 0), (0.1, 1)])
def test_shares_outside_their_range_are_refused(share, miss):
    with pytest.raises(InputError):
        records_for(100, share, miss)


def test_a_trust_file_reads_back():
    close = checkpoint_token(9, bytes(32))
    trust = Trust(Signers((LOG,), (WITNESS,), 1), bytes(32), 30, close)
    assert parse_trust(trust.encode()) == trust
    before = json.loads(trust.encode()) | {"setup": "ab" * 32}  # of a trust file of before
    assert parse_trust(json.dumps(before).encode()) == trust
    pretty = json.dumps(json.loads(trust.encode()), indent=2).encode()
    assert parse_trust(pretty) == trust


@pytest.mark.parametrize(
    "change",
    [
        {"version": "v2"},
        {"log": []},
        {"log": "x"},
        {"log": ["not a key"]},
        {"quorum": 2},
        {"quorum": True},
        {"beacon": "abc"},
        {"records": -1},
        {"records": 1.5},
        {"close": "9"},
        {"close": 9},
        {"other": 1},
        {"quorum": ...},
    ],
)
def test_a_trust_file_says_only_what_can_be(change):
    trust = Trust(Signers((LOG,), (WITNESS,), 1), bytes(32), 30)
    values = json.loads(trust.encode()) | change
    data = json.dumps({name: value for name, value in values.items() if value is not ...})
    with pytest.raises(InputError):
        parse_trust(data.encode())
