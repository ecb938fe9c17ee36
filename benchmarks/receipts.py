"""What a receipt costs: one server, two tenants alike, one of them in an audit window.

python benchmarks/receipts.py [--rounds 6] [--queries 200] [--workers 1]

On SQLite. The tenants are asked in turn, and so is which comes first; both draw the same
noise over 1,000 slots, exactly, as a strong promise needs it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import urllib.request
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests' server and clients

from ragwitness.service.policy import Claim
from ragwitness.service.store import open_store
from tests.support.service import Outcome, Server, commit_without_proofs, flood, make_tenant

DIMENSION = 384
_CLAIM = Claim(
    mechanism="noise",
    epsilon=1.0,
    queries=2000,
    accounts=8,
    capacity=1000,
    top=4,
    embedder=f"hashing:{DIMENSION}",
    scale=128,
)


def main() -> None:
    """Measure with one query in flight, and with 32."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        store = open_store(str(folder / "s.db"), create=True)
        keys = {tenant: make_tenant(store, tenant, 8, claim=_CLAIM) for tenant in ("log", "bare")}
        window, key = commit_without_proofs(store, "log", folder, patch)
        store.close()
        with Server(
            str(folder / "s.db"),
            folder / "out",
            options.workers,
            attest=(str(window),),
            key=str(key),
        ) as server:
            named = {one: _checkpoint(server.url, one) for one in keys["log"]}
            for flight in (1, 32):
                _measure(server.url, keys, named, flight, options)


def _measure(
    url: str,
    keys: dict[str, list[str]],
    named: dict[str, str],
    flight: int,
    options: argparse.Namespace,
) -> None:
    rows = []
    for i in range(-1, options.rounds):
        row = {}
        for tenant in ("log", "bare")[:: 1 if i % 2 else -1]:
            ask = flood(
                url,
                keys[tenant],
                options.queries,
                flight,
                DIMENSION,
                100 + i,
                checkpoints=named if tenant == "log" else None,
            )
            row[tenant] = _median(asyncio.run(ask))
        if i >= 0:  # the first round loads what later ones find loaded
            rows.append((row["log"], row["bare"]))
    times = np.array(rows)
    more = times[:, 0] - times[:, 1]
    print(
        f"{flight} in flight (n = {len(rows)} x {options.queries} each): median"
        f" {np.median(times[:, 0]):.1f} ms with a receipt, {np.median(times[:, 1]):.1f} without;"
        f" {np.median(more):.1f} more ({more.min():.1f} to {more.max():.1f})",
        flush=True,
    )


def _median(found: list[Outcome]) -> float:
    """Return the median time, in milliseconds."""
    failed = [one for one in found if one.status != 200]
    if failed:
        raise SystemExit(f"the server failed: {failed[0]}")
    return float(np.median([one.seconds for one in found])) * 1000


def _checkpoint(url: str, key: str) -> str:
    request = urllib.request.Request(  # noqa: S310  # our own server
        f"{url}/log/checkpoint", headers={"Authorization": f"Bearer {key}"}
    )
    with urllib.request.urlopen(request) as reply:  # noqa: S310
        return str(json.load(reply)["checkpoint"])


if __name__ == "__main__":
    main()
