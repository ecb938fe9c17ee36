"""Commitments, committed sub-seeds and statements: opened right, or refused by name."""

import dataclasses
import random
from hashlib import sha256

import pytest

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.hashing import (
    Opening,
    commit,
    commit_digests,
    draw_blinding,
    verify_opening,
)
from ragwitness.crypto.merkle import seed_tree, verify_seed
from ragwitness.privacy.streams import sub_seed

OPENING = Opening("ragwitness/window-seed/v1", bytes(range(32)), bytes(reversed(range(32))))
SEEDS = [sub_seed(bytes(32), "w", number) for number in range(37)]


def _fails(call, *checks):
    with pytest.raises(VerificationError) as found:
        call()
    assert found.value.check in checks, found.value.check


def test_a_commitment_is_the_hash_that_the_text_states():
    parts = (b"ragwitness/commit/v1", OPENING.domain.encode(), OPENING.blinding, OPENING.message)
    by_hand = sha256(b"".join(len(p).to_bytes(8, "big") + p for p in parts)).digest()
    assert commit(OPENING) == by_hand
    verify_opening(by_hand, OPENING)


@pytest.mark.parametrize(
    "change",
    [
        {"domain": "ragwitness/window-seed/v2"},
        {"message": bytes(32)},
        {"message": bytes(range(33))},
        {"blinding": bytes(32)},
        {"domain": OPENING.domain + "\x00", "message": OPENING.message[1:]},
    ],
)
def test_nothing_else_opens_a_commitment(change):
    wrong = dataclasses.replace(OPENING, **change)
    _fails(lambda: verify_opening(commit(OPENING), wrong), "commitment.opening")


def test_a_blinding_of_another_length_is_refused():
    short = dataclasses.replace(OPENING, blinding=bytes(31))
    _fails(lambda: verify_opening(commit(OPENING), short), "commitment.blinding")
    _fails(lambda: verify_opening(commit(OPENING)[:-1], OPENING), "commitment.opening")
    with pytest.raises(InputError, match="32 bytes"):
        commit(short)
    assert len({draw_blinding() for _ in range(4)}) == 4


def test_artifacts_are_committed_to_by_name():
    digests = {"embedder": "ab" * 32, "template": "cd" * 32}
    swapped = {"embedder": "cd" * 32, "template": "ab" * 32}
    blinding = bytes(32)
    one = commit_digests("d", digests, blinding)
    assert one == commit_digests("d", dict(reversed(digests.items())), blinding)
    assert len({one, commit_digests("d", swapped, blinding)}) == 2
    text = b'{"embedder":"' + b"ab" * 32 + b'","template":"' + b"cd" * 32 + b'"}'
    assert one == commit(Opening("d", text, blinding))
    for wrong in ({}, {"a": "AB" * 32}, {"a": "ab"}):
        with pytest.raises(InputError):
            commit_digests("d", wrong, blinding)


def test_each_sub_seed_opens_alone():
    tree = seed_tree(SEEDS)
    for number, seed in enumerate(SEEDS):
        verify_seed(tree.root(), tree.size, number, seed, tree.inclusion(number))
    verify_seed(seed_tree(SEEDS[:1]).root(), 1, 0, SEEDS[0], ())


def test_no_other_sub_seed_opens():
    tree, rng = seed_tree(SEEDS), random.Random(1)
    root, good_path = tree.root(), tree.inclusion(5)
    good = {"number": 5, "seed": SEEDS[5], "path": good_path}
    for _ in range(200):
        seed, path = bytearray(SEEDS[5]), [bytearray(part) for part in good_path]
        target = rng.choice([seed, *path])
        target[rng.randrange(32)] ^= 1 << rng.randrange(8)
        wrong = (5, bytes(seed), tuple(map(bytes, path)))
        _fails(lambda w=wrong: verify_seed(root, tree.size, *w), "log.inclusion")
    for change, check in (
        ({"number": 4}, "log.inclusion"),
        ({"number": 37}, "log.index"),
        ({"number": -1}, "log.index"),
        ({"seed": SEEDS[6]}, "log.inclusion"),
        ({"seed": SEEDS[5][:-1]}, "seed.size"),
        ({"path": good_path[:-1]}, "log.path_length"),
        ({"path": (*good_path, bytes(32))}, "log.path_length"),
        ({"path": good_path[::-1]}, "log.inclusion"),
    ):
        _fails(lambda w=good | change: verify_seed(root, tree.size, **w), check)
    for size in (1, 6, 16):
        with pytest.raises(VerificationError):
            verify_seed(root, size, **good)
