"""The map: one root for one content, whatever its order, and another for every change."""

import random
from hashlib import sha256

import pytest

from ragwitness.crypto.merkle import EMPTY_MAP, map_key, map_root


def _entries(count):
    return {
        sha256(b"key %d" % i).digest(): (i + 1, sha256(b"record %d" % i).digest())
        for i in range(count)
    }


def _by_prefix(entries, prefix=""):
    """The root by the definition, over keys as texts of bits."""
    bits = {k: f"{int.from_bytes(k, 'big'):0256b}" for k in entries}
    here = {k: e for k, e in entries.items() if bits[k].startswith(prefix)}
    domain = b"ragwitness/map/v1"
    if not here:
        return sha256(domain + b"\x02").digest()
    if len(here) == 1:
        [(key, (count, last))] = here.items()
        return sha256(domain + b"\x00" + key + count.to_bytes(8, "big") + last).digest()
    sides = b"".join(_by_prefix(here, prefix + side) for side in "01")
    return sha256(domain + b"\x01" + sides).digest()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 60])
def test_the_root_is_that_of_the_definition_in_any_order(count):
    entries = _entries(count)
    mixed = list(entries.items())
    random.Random(1).shuffle(mixed)
    assert map_root(entries) == map_root(dict(mixed)) == _by_prefix(entries)


def test_keys_that_part_at_their_last_bit_stand_beside_each_other():
    one = bytes(32)
    other = bytes(31) + b"\x01"
    last = bytes(32)
    found = map_root({one: (1, last), other: (2, last)})
    assert found == _by_prefix({one: (1, last), other: (2, last)})


def test_every_change_is_another_root():
    entries = _entries(20)
    root, key = map_root(entries), next(iter(entries))
    entry = entries[key]
    changed = [(entry[0] + 1, entry[1]), (entry[0], bytes(32))]
    others = [entries | {key: one} for one in changed]
    others += [{k: e for k, e in entries.items() if k != key}, entries | {bytes(32): entry}]
    assert len({root, EMPTY_MAP, *map(map_root, others)}) == 6


def test_a_key_is_of_window_tenant_and_account():
    keys = {map_key(*names) for names in (("w", "t", "a"), ("w", "ta", ""), ("v", "t", "a"))}
    assert len(keys) == 3
