"""A budget for life in a running service: an hour of windows, restarts and kill -9.

    python benchmarks/lifetime.py [--minutes 60] [--speed 6] [--database sqlite]

Two tenants hold one corpus and have windows of 60 s. All processes of the service read a clock that
runs `--speed` times as fast (a `sitecustomize` that this program writes; no option of the service
does that). All accounts ask one thing, which spends fastest, without pause. Every few windows the
server is ended in order or killed with everything in flight, in turn. What clients hold in
their hands at the end, and not what the service says of itself, is the account.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from service import database_of

from ragwitness.core.types import Document
from ragwitness.privacy.gaussian import epsilon_at
from ragwitness.privacy.release import quantise
from ragwitness.service.documents import add_documents
from ragwitness.service.policy import Claim, TenantPolicy, make_policy
from ragwitness.service.store import Store, open_store
from ragwitness.service.tenants import add_account, budget_of, create_tenant
from tests.support.service import Outcome, Server, flood

DIMENSION = 64
_TEXTS = [f"Record {at}: the code of door {at} is {at * 7}." for at in range(12)]
_CLOCK = """
import os, time
_real, _origin = time.time, float(os.environ["CLOCK_ORIGIN"])
_speed = float(os.environ["CLOCK_SPEED"])
time.time = lambda: _origin + (_real() - _origin) * _speed
"""


def main() -> None:
    """Run the hour on one database."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--speed", type=float, default=6)
    parser.add_argument("--database", default="sqlite")
    given = parser.parse_args()
    claim = Claim(mechanism="noise",
        queries=100_000, accounts=4, payer_queries=10**6, capacity=32, top=3, window=60,
        embedder=f"hashing:{DIMENSION}", epsilon=20.0, joint_epsilon=0.4, lifetime_epsilon=1.2,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as name, database_of(given.database, Path(name)) as url:
        if url is None:
            raise SystemExit(f"{given.database} is not installed")
        with _clock(Path(name), given.speed):
            _hour(url, Path(name) / "log", claim, given)


@contextlib.contextmanager
def _clock(folder: Path, speed: float) -> Iterator[None]:
    """Give processes that are started a faster clock."""
    (folder / "clock").mkdir()
    (folder / "clock" / "sitecustomize.py").write_text(_CLOCK)
    mine = {
        "PYTHONPATH": str(folder / "clock"),
        "CLOCK_ORIGIN": repr(time.time()),
        "CLOCK_SPEED": repr(speed),
    }
    before = {key: os.environ.get(key) for key in mine}
    os.environ.update(mine)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


def _hour(url: str, log: Path, claim: Claim, given: argparse.Namespace) -> None:
    store = open_store(url)
    keys: dict[str, list[str]] = {}
    for name in ("one", "two"):
        create_tenant(store, name, claim)
        add_documents(store, name, [Document(f"d{at}", text) for at, text in enumerate(_TEXTS)])
        keys[name] = [add_account(store, name, f"a{at}") for at in range(4)]
    policy = make_policy(claim, DIMENSION)
    mixed = [key for pair in zip(*keys.values(), strict=True) for key in pair]
    began, ended, killed, rounds = time.time(), 0, 0, 0
    found: list[Outcome] = []
    server = Server(url, log).start()
    try:
        while (hour := (time.time() - began) * given.speed) < given.minutes * 60:
            # One direction, with a little of its own in each query.
            found += asyncio.run(flood(server.url, mixed, 120, 32, DIMENSION, 0, 0.97))
            rounds += 1
            if rounds % 4:
                continue
            if rounds % 8:
                server.stop()
                ended += 1
            else:
                # In the middle of a flood, with everything in flight.
                found += asyncio.run(_struck(server, mixed))
                killed += 1
            server = Server(url, log).start()
            told = max(_epsilon(policy, found, mine) for mine in keys.values())
            print(
                f"  minute {hour / 60:5.1f}: epsilon {told:.4f} of {claim.lifetime_epsilon}",
                flush=True,
            )
    finally:
        server.stop()
    _report(store, policy, claim, found, keys, (ended, killed, hour / 60))
    store.close()


async def _struck(server: Server, keys: list[str]) -> list[Outcome]:
    job = asyncio.create_task(flood(server.url, keys, 120, 32, DIMENSION, 0, 0.97))
    await asyncio.sleep(0.7)
    await asyncio.to_thread(server.kill)
    return await job


def _epsilon(policy: TenantPolicy, found: list[Outcome], keys: list[str]) -> float:
    """Epsilon of the worst pair of texts, by all answers in the hands of clients.

    For `replace` a text may stand for any other: the largest eigenvalue of the queries bounds
    every pair.
    """
    paid = [one for one in found if one.status == 200 and one.key in set(keys)]
    if not paid:
        return 0.0
    rows = quantise(np.array([one.vector for one in paid]), policy.mechanism).astype(float)
    rows /= policy.terms.scale
    largest = float(np.linalg.eigvalsh(rows.T @ rows)[-1])
    return epsilon_at(policy.claim.joint_delta, policy.terms.mu_of(largest, len(rows)))


def _report(
    store: Store, policy: TenantPolicy, claim: Claim, found: list[Outcome],
    keys: dict[str, list[str]], what: tuple[int, int, float],
) -> None:  # fmt: skip
    ended, killed, minutes = what
    print(
        f"{minutes:.0f} minutes by the service's clock, ended {ended} times, killed {killed} times"
    )
    print(f"  replies {dict(Counter(one.status for one in found))}")
    for name, mine in keys.items():
        paid = [one for one in found if one.status == 200 and one.key in set(mine)]
        told = budget_of(store, name)
        print(f"  {name}: {len(paid)} answers; by the service epsilon {told.life_epsilon:.4f}")
    worst = max(_epsilon(policy, found, mine) for mine in keys.values())
    print(f"  by what clients hold of one tenant: epsilon {worst:.4f};", end=" ")
    print(f"promised {claim.lifetime_epsilon}, in a window {claim.joint_epsilon}")


if __name__ == "__main__":
    main()
