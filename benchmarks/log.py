"""What the log, the map and the committed seeds cost.

    python benchmarks/log.py [--records 1000000] [--accounts 10000]

CPU time of this process; medians over the repeats that stand beside them. Tiles go to a temporary
folder.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from ragwitness.crypto.keys import PrivateKey
from ragwitness.crypto.log import (
    MerkleLog,
    inclusion_path,
    verify_consistency,
    verify_inclusion,
)
from ragwitness.crypto.log.folder import TileFolder, load_log, write_tiles
from ragwitness.crypto.map import (
    Entry,
    SparseMap,
    account_key,
    prove_entry,
    verify_entry,
)
from ragwitness.crypto.notes import Checkpoint, LogProof, Policy, open_proof, sign_checkpoint
from ragwitness.crypto.seeds import SeedTree, verify_seed
from ragwitness.privacy.streams import sub_seed

_ENTRY = b"x" * 700
_BATCH = 1000
_ROUNDS = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--accounts", type=int, default=10_000)
    given = parser.parse_args()
    log = _appends(given.records)
    _proofs(log)
    _receipts(log)
    _tiles(log)
    _map(given.accounts)
    _seeds(given.records)


def _appends(count: int) -> MerkleLog:
    """Entries of 700 bytes, about those of a query record, each one different."""
    log, rates = MerkleLog(), []
    for start in range(0, count, 100_000):
        entries = [_ENTRY + str(start + i).encode() for i in range(min(100_000, count - start))]
        begin = time.process_time()
        for batch in itertools.batched(entries, _BATCH) if _HAS_BATCHED else _batched(entries):
            log.extend(batch)
        rates.append(len(entries) / (time.process_time() - begin))
    print(f"append, batches of {_BATCH:,}: {_spread(rates, '{:,.0f}')} /s")
    single = MerkleLog()
    entries = [_ENTRY + str(i).encode() for i in range(20_000)]
    taken = _cpu(lambda: [single.append(entry) for entry in entries], 1)
    print(f"append, one by one: {20_000 / taken[0]:,.0f} /s (n = 20,000)")
    return log


_HAS_BATCHED = hasattr(itertools, "batched")


def _batched(entries: list[bytes]) -> list[list[bytes]]:
    return [entries[i : i + _BATCH] for i in range(0, len(entries), _BATCH)]


def _proofs(log: MerkleLog) -> None:
    rng, size, root = random.Random(1), log.size, log.root()
    made, checked, grown, grown_checked = [], [], [], []
    for _ in range(_ROUNDS):
        index, first = rng.randrange(size), rng.randint(1, size - 1)
        entry = _ENTRY + str(index).encode() if False else b""
        begin = time.process_time()
        path = log.inclusion(index)
        made.append(time.process_time() - begin)
        old = log.root(first)
        begin = time.process_time()
        steps = log.consistency(first)
        grown.append(time.process_time() - begin)
        begin = time.process_time()
        verify_consistency(first, old, size, root, steps)
        grown_checked.append(time.process_time() - begin)
        del entry
        checked.append(_checked(log, index, path))
    print(f"log of {size:,}, n = {_ROUNDS}, ms:")
    for name, values in (
        ("inclusion, prove", made),
        ("inclusion, verify", checked),
        ("consistency, prove", grown),
        ("consistency, verify", grown_checked),
    ):
        print(f"  {name:20} {_spread([1e3 * v for v in values], '{:.4f}')}")


if __name__ == "__main__":
    main()
