"""What the log, the map and the committed seeds cost.

    python benchmarks/log.py [--records 1000000] [--accounts 10000]

CPU time of this process, median and 5th to 95th percentile. Entries have 700 bytes, about those of
a query's record. Tiles go to a temporary folder.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from ragwitness.crypto.keys import PrivateKey
from ragwitness.crypto.merkle import (
    MerkleLog,
    map_key,
    map_root,
    seed_tree,
    verify_consistency,
    verify_inclusion,
    verify_seed,
)
from ragwitness.crypto.notes import Checkpoint, LogProof, Signers, open_proof, sign_checkpoint
from ragwitness.crypto.tiles import TileFolder, load_log, write_tiles
from ragwitness.privacy.streams import sub_seed

_BATCH, _CHUNK, _ROUNDS = 1000, 50_000, 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--accounts", type=int, default=10_000)
    given = parser.parse_args()
    log = _appends(given.records)
    _proofs(log)
    _receipts(log)
    _tiles(log)
    _publications()
    _map(given.accounts)
    _seeds(given.records)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


def _entry(number: int) -> bytes:
    return b"x" * 690 + f"{number:010d}".encode()


def _timed(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _show(name: str, values: list[float], unit: str, digits: int = 3) -> None:
    low, high = np.percentile(values, [5, 95])
    print(
        f"{name:28} {np.median(values):,.{digits}f} {unit} "
        f"(5-95 % {low:,.{digits}f}-{high:,.{digits}f}, n = {len(values)})"
    )


def _appends(count: int) -> MerkleLog:
    log, single = MerkleLog(), MerkleLog()
    rates, alone = [], []
    for start in range(0, count, _CHUNK):
        entries = [_entry(i) for i in range(start, min(start + _CHUNK, count))]
        batches = [entries[i : i + _BATCH] for i in range(0, len(entries), _BATCH)]
        taken = _timed(lambda b=batches: [log.extend(batch) for batch in b])
        rates.append(len(entries) / taken)
        taken = _timed(lambda e=entries: [single.append(entry) for entry in e[:_BATCH]])
        alone.append(min(_BATCH, len(entries)) / taken)
    _show(f"append, batches of {_BATCH:,}", rates, "/s", 0)
    _show("append, one by one", alone, "/s", 0)
    return log


def _proofs(log: MerkleLog) -> None:
    rng, size, root = random.Random(1), log.size, log.root()
    taken: dict[str, list[float]] = {}
    for _ in range(_ROUNDS):
        index, first = rng.randrange(size), rng.randint(1, size - 1)
        path, steps, old = log.inclusion(index), log.consistency(first), log.root(first)
        entry = _entry(index)
        calls: dict[str, Callable[[], object]] = {
            "inclusion, prove": lambda i=index: log.inclusion(i),
            "inclusion, verify": lambda e=entry, i=index, p=path: verify_inclusion(
                e, i, size, p, root
            ),
            "consistency, prove": lambda f=first: log.consistency(f),
            "consistency, verify": lambda f=first, o=old, s=steps: verify_consistency(
                f, o, size, root, s
            ),
        }
        for name, call in calls.items():
            taken.setdefault(name, []).append(1e3 * _timed(call))
    for name, values in taken.items():
        _show(name, values, "ms", 4)


def _receipts(log: MerkleLog) -> None:
    key = PrivateKey.generate("example.org/log")
    policy = Signers((key.public,))
    checkpoint = Checkpoint("example.org/log", log.size, log.root())
    rng, made, checked = random.Random(2), [], []
    data = b""
    for _ in range(_ROUNDS):
        index = rng.randrange(log.size)
        start = time.process_time()
        data = LogProof(index, log.inclusion(index), sign_checkpoint(checkpoint, [key])).encode()
        made.append(1e3 * (time.process_time() - start))
        entry = _entry(index)
        checked.append(1e3 * _timed(lambda d=data, e=entry: open_proof(d, e, policy)))
    _show("receipt, sign and make", made, "ms")
    _show("receipt, check", checked, "ms")
    print(f"{'receipt, size':28} {len(data):,} bytes")


def _tiles(log: MerkleLog) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.process_time()
        write_tiles(folder, log, 0, lambda *_: [])
        files = sum(path.is_file() for path in folder.rglob("*"))
        print(f"{'tiles, write':28} {time.process_time() - start:.2f} s, {files:,} files")
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        print(f"{'tiles, storage':28} {size / log.size:.3f} bytes per record")
        start = time.process_time()
        load_log(folder, log.size, log.root())
        print(f"{'tiles, load and check':28} {time.process_time() - start:.2f} s")
        rng, cold = random.Random(3), []
        for _ in range(_ROUNDS // 10):
            reader, index = TileFolder(folder, log.size), rng.randrange(log.size)
            cold.append(1e3 * _timed(lambda r=reader, i=index: r.inclusion(i)))
        _show("inclusion out of tiles, cold", cold, "ms")


def _part(entries: list[bytes], start: int, stop: int) -> list[bytes]:
    return entries[start:stop]


def _publications() -> None:
    """A publication of five more records each time, without and with the bundles of entries."""
    for what in ("hashes", "hashes and entries"):
        log, entries, last, taken = MerkleLog(), [], 0, []
        with tempfile.TemporaryDirectory() as name:
            for i in range(4 * _ROUNDS):
                entries.append(_entry(i))
                log.append(entries[-1])
                if i % 5 == 4:
                    held = partial(_part, entries) if "entries" in what else lambda *_: []
                    publish = partial(write_tiles, Path(name), log, last, held)
                    taken.append(1e3 * _timed(publish))
                    last = log.size
        _show(f"publish {what}", taken, "ms")


def _map(accounts: int) -> None:
    keys = [map_key("window", "tenant", str(i)) for i in range(accounts)]
    start = time.process_time()
    map_root({key: (1, bytes(32)) for key in keys})
    print(f"root of the map of {accounts:,} accounts {1e3 * (time.process_time() - start):.1f} ms")


def _seeds(count: int) -> None:
    start = time.process_time()
    seeds = [sub_seed(bytes(32), "window", number) for number in range(count)]
    derived = time.process_time()
    tree = seed_tree(seeds)
    done = time.process_time()
    print(f"{count:,} sub-seeds: derive {derived - start:.1f} s, commit {done - derived:.1f} s")
    rng, opened, checked = random.Random(5), [], []
    for _ in range(_ROUNDS):
        number = rng.randrange(count)
        opened.append(1e3 * _timed(lambda n=number: tree.inclusion(n)))
        opening = (number, seeds[number], tree.inclusion(number))
        checked.append(1e3 * _timed(lambda o=opening: verify_seed(tree.root(), count, *o)))
    _show("  open one", opened, "ms", 4)
    _show("  verify one", checked, "ms", 4)


if __name__ == "__main__":
    main()
