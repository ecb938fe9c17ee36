"""The log against the vectors of Certificate Transparency, a naive recursion and pymerkle."""

import random
from hashlib import sha256

import pytest

from ragwitness.core.errors import InputError, VerificationError
from ragwitness.crypto.hashing import EMPTY_ROOT, leaf_hash, node_hash, tagged_hash
from ragwitness.crypto.merkle import MerkleLog, verify_consistency, verify_inclusion

# Certificate Transparency's test data for RFC 6962: leaves, roots of sizes 1 to 8, proofs.
LEAVES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
H1 = "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7"
H23 = "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e"
H4 = "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"
H45 = "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a"
H47 = "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"
H67 = "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0"


def _log(entries):
    log = MerkleLog()
    log.extend(entries)
    return log


def _naive(entries):
    """RFC 9162, §2.1.1, as it is written."""
    if not entries:
        return sha256(b"").digest()
    if len(entries) == 1:
        return leaf_hash(entries[0])
    k = 1
    while 2 * k < len(entries):
        k *= 2
    return node_hash(_naive(entries[:k]), _naive(entries[k:]))


def _entries(count):
    return [f"entry {i}".encode() for i in range(count)]


def test_the_empty_log_and_the_empty_leaf():
    assert EMPTY_ROOT.hex().startswith("e3b0c442")
    assert MerkleLog().root() == EMPTY_ROOT
    assert leaf_hash(b"").hex().startswith("6e340b9c")


def test_roots_of_the_published_tree_however_it_grew():
    log = MerkleLog()
    for entry, root in zip(LEAVES, ROOTS, strict=True):
        log.append(entry)
        assert log.root().hex() == root
    assert [log.root(n).hex() for n in range(1, 9)] == ROOTS
    assert _log(LEAVES).root().hex() == ROOTS[-1]


@pytest.mark.parametrize(
    ("index", "size", "path"),
    [
        (0, 8, [H1, H23, H47]),
        (5, 8, [H4, H67, ROOTS[3]]),
        (2, 3, [ROOTS[1]]),
        (1, 5, [ROOTS[0], H23, H4]),
        (0, 1, []),
    ],
)
def test_published_inclusion_proofs(index, size, path):
    found = _log(LEAVES).inclusion(index, size)
    assert [part.hex() for part in found] == path
    verify_inclusion(LEAVES[index], index, size, found, bytes.fromhex(ROOTS[size - 1]))


@pytest.mark.parametrize(
    ("first", "second", "path"),
    [
        (1, 8, [H1, H23, H47]),
        (6, 8, [H45, H67, ROOTS[3]]),
        (2, 5, [H23, H4]),
        (1, 1, []),
    ],
)
def test_published_consistency_proofs(first, second, path):
    found = _log(LEAVES).consistency(first, second)
    assert [part.hex() for part in found] == path
    roots = [bytes.fromhex(root) for root in ROOTS]
    verify_consistency(first, roots[first - 1], second, roots[second - 1], found)


def test_every_size_index_and_pair_up_to_40_against_the_recursion():
    entries = _entries(40)
    log = _log(entries)
    roots = [_naive(entries[:n]) for n in range(41)]
    for n in range(41):
        assert log.root(n) == roots[n]
        for m in range(n):
            verify_inclusion(entries[m], m, n, log.inclusion(m, n), roots[n])
        for m in range(n + 1):
            verify_consistency(m, roots[m], n, roots[n], log.consistency(m, n))


def test_batches_of_any_size_give_one_log():
    rng, entries = random.Random(1), _entries(700)
    log, at = MerkleLog(), 0
    while at < len(entries):
        step = rng.randint(0, 60)
        log.extend(entries[at : at + step])
        assert log.size == min(at + step, 700)
        at += step
    assert log.root() == _log(entries).root() == _naive(entries)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 100, 257])
def test_roots_agree_with_pymerkle(size):
    pymerkle = pytest.importorskip("pymerkle")
    tree = pymerkle.InmemoryTree(algorithm="sha256")
    for entry in _entries(size):
        tree.append_entry(entry)
    log = _log(_entries(size))
    assert tree.get_root() == log.root()
    index = size // 2  # its path starts with the leaf itself; ours is that of the RFC
    path = tree.prove_inclusion(index + 1, size).path
    assert path[0] == leaf_hash(_entries(size)[index])
    assert tuple(path[1:]) == log.inclusion(index)


def _fails(call, *checks):
    with pytest.raises(VerificationError) as found:
        call()
    assert found.value.check in checks, found.value.check


def test_a_mutated_inclusion_proof_never_holds():
    rng, entries = random.Random(2), _entries(67)
    log = _log(entries)
    tried = 0
    for _ in range(400):
        size = rng.randint(2, 67)
        index = rng.randrange(size)
        path, root = list(log.inclusion(index, size)), log.root(size)
        kind = rng.randrange(7)
        wrong = {"entry": entries[index], "index": index, "size": size, "path": path, "root": root}
        if kind == 0:
            place = rng.randrange(len(path))
            flipped = bytearray(path[place])
            flipped[rng.randrange(32)] ^= 1 << rng.randrange(8)
            wrong["path"] = [*path[:place], bytes(flipped), *path[place + 1 :]]
        elif kind == 1:
            wrong["path"] = path[:-1] if rng.random() < 0.5 else path[1:]
        elif kind == 2:
            wrong["path"] = [*path, rng.choice([root, path[0], bytes(32)])]
        elif kind == 3 and len(path) > 1:
            wrong["path"] = [path[1], path[0], *path[2:]]
        elif kind == 4:
            wrong["index"] = rng.choice([i for i in range(size) if i != index])
        elif kind == 5:
            wrong["entry"] = entries[index] + b"\x00"
        else:
            wrong["root"] = log.root(size - 1)
        _fails(lambda w=wrong: verify_inclusion(**w), "log.inclusion", "log.path_length")
        tried += 1
    assert tried == 400


def test_a_proof_for_one_size_does_not_hold_for_another_root():
    # The size is not in the root: it must be used up by the path, and it is signed beside it.
    entries = _entries(67)
    log = _log(entries)
    for size in range(2, 67):
        for index in range(size):
            path = log.inclusion(index, size)
            for other in {size - 1, size + 1, 2 * size} - {0}:
                _fails(
                    lambda o=other, i=index, p=path: verify_inclusion(
                        entries[i], i, o, p, log.root(min(o, 67))
                    ),
                    "log.inclusion",
                    "log.path_length",
                    "log.index",
                )


def test_a_mutated_consistency_proof_never_holds():
    rng = random.Random(3)
    log = _log(_entries(67))
    for _ in range(400):
        second = rng.randint(3, 67)
        first = rng.randint(1, second - 1)
        path = list(log.consistency(first, second))
        old, new, steps = log.root(first), log.root(second), path
        kind = rng.randrange(6)
        if kind == 0:
            place = rng.randrange(len(path))
            flipped = bytearray(path[place])
            flipped[rng.randrange(32)] ^= 1 << rng.randrange(8)
            steps = [*path[:place], bytes(flipped), *path[place + 1 :]]
        elif kind == 1:
            steps = path[:-1]
        elif kind == 2:
            steps = [*path, path[-1]]
        elif kind == 3 and len(set(path)) > 1:
            steps = path[::-1]
        elif kind == 4:
            old = sha256(old).digest()
        else:
            new = sha256(new).digest()
        _fails(
            lambda a=(first, old, second, new, steps): verify_consistency(*a),
            "log.consistency",
            "log.path_length",
        )


def test_a_proof_that_ends_before_the_size_does_is_refused():
    # All hashes are right; only the claimed size goes on. RFC 9162, last step: sn must be 0.
    log = _log(_entries(32))
    for second in (2, 4, 8, 16, 32):
        for first in range(1, second):
            path, roots = log.consistency(first, second), (log.root(first), log.root(second))
            for other in (2 * second, 4 * second):
                call = (first, roots[0], other, roots[1], path)
                _fails(lambda c=call: verify_consistency(*c), "log.path_length")


def test_other_histories_of_the_same_sizes_are_found():
    log, other = _log(_entries(50)), _log([b"forged", *_entries(49)])
    for first in range(1, 50):
        path = other.consistency(first, 50)
        _fails(
            lambda f=first, p=path: verify_consistency(f, log.root(f), 50, other.root(), p),
            "log.consistency",
        )


def test_the_size_nought_and_equal_sizes_prove_nothing_by_themselves():
    log = _log(_entries(5))
    root = log.root()
    _fails(lambda: verify_inclusion(b"", 0, 0, (), EMPTY_ROOT), "log.index")
    _fails(lambda: verify_inclusion(b"", -1, 5, (), root), "log.index")
    _fails(lambda: verify_consistency(0, root, 5, root, ()), "log.empty_root")
    _fails(lambda: verify_consistency(5, root, 0, EMPTY_ROOT, ()), "log.rolled_back")
    _fails(lambda: verify_consistency(0, EMPTY_ROOT, 5, EMPTY_ROOT, ()), "log.empty_root")
    _fails(lambda: verify_consistency(0, EMPTY_ROOT, 5, root, (root,)), "log.path_length")
    _fails(lambda: verify_consistency(5, root, 5, root, (root,)), "log.path_length")
    _fails(lambda: verify_consistency(5, root, 5, log.root(4), ()), "log.split_view")
    _fails(lambda: verify_consistency(4, log.root(4), 5, root, ()), "log.path_length")
    _fails(lambda: verify_consistency(-1, root, 5, root, ()), "log.size")
    _fails(lambda: verify_consistency(5, root, 2**64, root, ()), "log.size")
    _fails(lambda: verify_inclusion(b"", 0, 2**64, (), root), "log.size")
    _fails(lambda: verify_inclusion(b"", 0, 1, (b"short",), root), "log.hash")
    _fails(lambda: verify_inclusion(b"", 0, 1, (), root[:31]), "log.hash")


def test_a_node_is_not_an_entry():
    log = _log(_entries(4))
    inner = log.node(1, 0) + log.node(1, 1)  # what the root hashes, behind 0x01
    _fails(lambda: verify_inclusion(inner, 0, 1, (), log.root()), "log.inclusion")


def test_what_a_log_cannot_give_is_refused():
    log = _log(_entries(3))
    for call in (
        lambda: log.root(4),
        lambda: log.inclusion(3),
        lambda: log.inclusion(2, 2),
        lambda: log.consistency(3, 2),
        lambda: log.consistency(-1, 2),
        lambda: log.node(1, 1),
        lambda: log.node(9, 0),
    ):
        with pytest.raises(InputError):
            call()
    assert log.size == 3


def test_tagged_hashes_keep_domains_and_parts_apart():
    hashes = {
        tagged_hash("a", b"bc"),
        tagged_hash("ab", b"c"),
        tagged_hash("a", b"b", b"c"),
        tagged_hash("a", b"bc", b""),
        tagged_hash("a"),
    }
    assert len(hashes) == 5
