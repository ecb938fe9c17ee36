"""The map: one root for one content, one answer per key, and no proof that survives a change."""

import random
from hashlib import sha256

import pytest

from ragwitness.crypto.map import (
    EMPTY,
    MapEntry,
    MapProof,
    SparseMap,
    account_key,
    bit,
    branch_hash,
    entry_hash,
    prove_entry,
    verify_entry,
)
from ragwitness.errors import InputError, VerificationError


def _key(i):
    return sha256(b"key %d" % i).digest()


def _entry(i, count=1):
    return MapEntry(count, sha256(b"record %d" % i).digest())


def _map(count):
    return SparseMap().updated({_key(i): _entry(i, i + 1) for i in range(count)})


def _naive(entries, depth=0):
    """Root of a dictionary by the definition: nothing, one entry, or two halves by the next bit."""
    if not entries:
        return EMPTY
    if len(entries) == 1:
        return entry_hash(*next(iter(entries.items())))
    sides = [{k: e for k, e in entries.items() if bit(k, depth) == side} for side in (0, 1)]
    return branch_hash(_naive(sides[0], depth + 1), _naive(sides[1], depth + 1))


def _fails(call, *checks):
    with pytest.raises(VerificationError) as found:
        call()
    assert found.value.check in checks, found.value.check


def test_the_root_hangs_on_the_content_alone():
    rng, content, tree = random.Random(1), {}, SparseMap()
    assert tree.root == EMPTY
    for _ in range(60):
        changes = {}
        for _ in range(rng.randint(1, 6)):
            i = rng.randrange(80)
            old = content.get(_key(i))
            changes[_key(i)] = _entry(rng.randrange(10**6), old.count + 1 if old else 1)
        tree, content = tree.updated(changes), content | changes
        assert tree.root == _naive(content)
    assert SparseMap().updated(content).root == tree.root
    assert all(tree.get(key) == entry for key, entry in content.items())
    assert tree.get(_key(1000)) is None


def test_earlier_maps_stay_as_they_were():
    old = _map(50)
    root = old.root
    new = old.updated({_key(3): _entry(3, 99)})
    assert old.root == root != new.root
    assert verify_entry(root, _key(3), prove_entry(old, _key(3))).count == 4
    assert verify_entry(new.root, _key(3), prove_entry(new, _key(3))).count == 99


@pytest.mark.parametrize("size", [0, 1, 2, 3, 50])
def test_entries_and_their_absence_are_proved(size):
    tree = _map(size)
    for i in range(size):
        proof = MapProof.decode(prove_entry(tree, _key(i)).encode())
        assert verify_entry(tree.root, _key(i), proof) == _entry(i, i + 1)
    for i in range(size, size + 100):
        proof = MapProof.decode(prove_entry(tree, _key(i)).encode())
        assert verify_entry(tree.root, _key(i), proof) is None


def test_keys_that_share_a_long_prefix_get_a_compact_proof():
    one, two = bytes(32), bytes(31) + b"\x01"
    tree = SparseMap().updated({one: _entry(1), two: _entry(2)})
    proof = prove_entry(tree, one)
    assert len(proof.siblings) == 256
    assert proof.siblings.count(EMPTY) == 255
    assert len(proof.encode()) == 2 + 32 + 32 + 72  # of 8,192 bytes of siblings, 32 are written
    assert verify_entry(tree.root, one, MapProof.decode(proof.encode())) == _entry(1)
    other = bytes(31) + b"\x03"
    assert verify_entry(tree.root, other, prove_entry(tree, other)) is None


def test_proofs_grow_with_the_logarithm():
    tree = _map(4096)
    sizes = [len(prove_entry(tree, _key(i)).encode()) for i in range(0, 4096, 64)]
    assert max(sizes) < 2 + 4 + 24 * 32 + 72


def test_no_proof_shows_another_answer():
    tree = _map(40)
    there, absent = _key(7), _key(400)
    shown = prove_entry(tree, there)
    # Another's proof, or none at all, for an account that is there
    for i in range(40):
        if i != 7:
            proof = prove_entry(tree, _key(i))
            _fails(lambda p=proof: verify_entry(tree.root, there, p), "map.prefix", "map.root")
    hidden = MapProof(shown.siblings, None)
    _fails(lambda: verify_entry(tree.root, there, hidden), "map.root")
    moved = MapProof(shown.siblings, (absent, shown.end[1]))
    _fails(lambda: verify_entry(tree.root, there, moved), "map.prefix", "map.root")
    cut = MapProof(shown.siblings[:-1], shown.end)
    _fails(lambda: verify_entry(tree.root, there, cut), "map.root")
    for count in (1, 7, 9, 2**64 - 1):
        false = MapProof(shown.siblings, (there, MapEntry(count, shown.end[1].last)))
        _fails(lambda f=false: verify_entry(tree.root, there, f), "map.root")
    # and an entry for one that is not
    made_up = MapProof(prove_entry(tree, absent).siblings, (absent, _entry(1)))
    _fails(lambda: verify_entry(tree.root, absent, made_up), "map.root")


def test_a_map_built_against_the_rules_still_gives_one_answer():
    # The provider hashes an account's entry on the wrong side: it can be shown to nobody.
    key = _key(1)
    entry = _entry(1, 500)
    lies = [EMPTY, EMPTY]
    lies[1 - bit(key, 0)] = entry_hash(key, entry)
    root = branch_hash(*lies)
    sibling = (lies[1 - bit(key, 0)],)
    assert verify_entry(root, key, MapProof(sibling, None)) is None
    _fails(lambda: verify_entry(root, key, MapProof(sibling, (key, entry))), "map.root")
    _fails(lambda: verify_entry(root, key, MapProof((EMPTY,), (key, entry))), "map.root")
    # nor does it serve to hide one that belongs where it stands
    other = next(_key(i) for i in range(9) if bit(_key(i), 0) != bit(key, 0))
    hiding = MapProof((EMPTY,), (key, entry))
    _fails(lambda: verify_entry(root, other, hiding), "map.prefix")


def test_no_bit_of_a_proof_can_change():
    tree, rng = _map(40), random.Random(2)
    for i in (5, 500, 501):
        key = _key(i)
        data = prove_entry(tree, key).encode()
        for place in range(len(data)):
            wrong = bytearray(data)
            wrong[place] ^= 1 << rng.randrange(8)
            _fails(
                lambda w=bytes(wrong), k=key: verify_entry(tree.root, k, MapProof.decode(w)),
                "map.format",
                "map.prefix",
                "map.root",
            )
        for wrong in (data[:-1], data + b"\x00", data[1:], data + bytes(72), b"", b"\x00"):
            _fails(
                lambda w=wrong, k=key: verify_entry(tree.root, k, MapProof.decode(w)),
                "map.format",
                "map.root",
            )


def test_a_written_empty_sibling_or_padding_is_refused():
    _fails(lambda: MapProof.decode(b"\x00\x01\x80" + EMPTY), "map.format")
    _fails(lambda: MapProof.decode(b"\x00\x01\x01"), "map.format")
    _fails(lambda: MapProof.decode(b"\x01\x01" + bytes(33)), "map.format")
    _fails(lambda: MapProof.decode(b"\xff\xff" + bytes(8192)), "map.format")
    assert MapProof.decode(b"\x00\x01\x00") == MapProof((EMPTY,), None)


def test_wrong_sizes_are_refused():
    tree = _map(3)
    proof = prove_entry(tree, _key(0))
    _fails(lambda: verify_entry(tree.root[:-1], _key(0), proof), "map.format")
    _fails(lambda: verify_entry(tree.root, _key(0)[:-1], proof), "map.format")
    _fails(lambda: verify_entry(tree.root, _key(0), MapProof((b"",), None)), "map.format")
    _fails(lambda: verify_entry(tree.root, _key(0), MapProof((EMPTY,) * 257, None)), "map.format")


def test_a_count_only_grows():
    tree = _map(3)
    for change in ({_key(2): _entry(2, 3)}, {_key(2): _entry(2, 1)}, {b"short": _entry(1)}):
        with pytest.raises(InputError):
            tree.updated(change)
    for count, last in ((0, bytes(32)), (2**64, bytes(32)), (1, bytes(31))):
        with pytest.raises(InputError):
            MapEntry(count, last)


def test_accounts_of_two_tenants_or_windows_have_two_keys():
    keys = {
        account_key("w", "t", "a"),
        account_key("w", "ta", ""),
        account_key("w2", "t", "a"),
        account_key("w", "t2", "a"),
    }
    assert len(keys) == 4
