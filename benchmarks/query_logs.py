"""What a large query log costs: reading it, and each estimator, in CPU minutes and gigabytes.

    python -m benchmarks.query_logs [--queries 1000000] [--accounts 10000] [--dim 384]
        [--only means spectral communities] [--window 3600]
        [--folder FOLDER]

The log is a day of benign traffic, as ``benchmarks/coalitions.py`` makes it (interests of each
account's own), among it ten accounts that ask one question. It is written in blocks, in each form
once; every reading and every estimator is a process of its own, so that each peak is its own.
``pairs`` compares queries within ``--window`` seconds, as the paper's R5 does; the others take
any two.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragwitness.collusion.detectors import DETECTORS, Settings, detect
from ragwitness.collusion.log_files import read_log
from research.coalitions import unit_rows

_DAY = 86_400.0
_BLOCK = 50_000
_COALITION = 10
_Block = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float32]]


def blocks(queries: int, accounts: int, dim: int) -> Iterator[_Block]:
    """Accounts, times (ascending) and vectors of one block after the other."""
    rng = np.random.default_rng(0)
    topics, cone, secret = unit_rows(rng, 400, dim), unit_rows(rng, dim), unit_rows(rng, dim)
    interests = rng.integers(400, size=(accounts, 3))
    for start in range(0, queries, _BLOCK):
        n = min(_BLOCK, queries - start)
        who = rng.integers(accounts, size=n)
        times = np.sort(rng.uniform(start, start + n, n)) * (_DAY / queries)
        about = topics[interests[who, rng.integers(3, size=n)]]
        rows = 0.5 * cone + about + 1.1 * unit_rows(rng, n, dim)
        rows[who < _COALITION] = secret + 0.5 * unit_rows(rng, int((who < _COALITION).sum()), dim)
        yield who, times, rows.astype(np.float32)


def write(path: Path, queries: int, accounts: int, dim: int) -> None:
    """Write the log."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    form = pa.schema(
        [("account", pa.string()), ("time", pa.float64()), ("vector", pa.list_(pa.float32(), dim))]
    )
    with pq.ParquetWriter(str(path), form) as out:
        for who, times, rows in blocks(queries, accounts, dim):
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), dim)
            names = pa.array([f"account-{at}" for at in who])
            out.write_batch(pa.record_batch([names, times, vectors], schema=form))


def one(path: Path, name: str, window: float) -> dict[str, object]:
    """Read the log, run one estimator, and say what this process took."""
    log = read_log(path).log()
    read = _spent()
    told: dict[str, object] = {"read": read, "queries": len(log.times), "accounts": log.size}
    if name:
        found = detect(name, log, Settings(window=window))
        members = [log.names[at] for at in found.members]
        inside = sum(int(one.removeprefix("account-")) < _COALITION for one in members)
        told |= {"seconds": _spent() - read, "group": len(members), "of the coalition": inside}
    told["gigabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return told


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Write the logs, then measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=1_000_000)
    parser.add_argument("--accounts", type=int, default=10_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--only", nargs="*", default=["means", "spectral", "communities"])
    parser.add_argument("--window", type=float, default=math.inf)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--one", nargs=2, metavar=("LOG", "ESTIMATOR"))
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(one(Path(asked.one[0]), asked.one[1], asked.window)))
        return
    unknown = set(asked.only) - set(DETECTORS)
    if unknown:
        parser.error(f"no estimator {', '.join(sorted(unknown))}; there are {', '.join(DETECTORS)}")
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        for form in ("parquet",):
            path = Path(folder) / f"log.{form}"
            write(path, asked.queries, asked.accounts, asked.dim)
            names = ["", *asked.only] if form == asked.forms[0] else [""]
            for name in names:
                window = str(asked.window) if name == "pairs" else "inf"
                command = [
                    sys.executable,
                    "-m",
                    "benchmarks.query_logs",
                    "--window",
                    window,
                    "--one",
                    str(path),
                    name,
                ]
                told = subprocess.run(command, check=True, capture_output=True, text=True)
                size = path.stat().st_size / 1024**3
                print(f"{form} {size:.2f} GiB {name or 'read'}: {told.stdout.strip()}", flush=True)
            path.unlink()


if __name__ == "__main__":
    main()
