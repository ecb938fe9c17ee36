"""The service in processes of its own: races, kill -9, a database that goes, hostile requests."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from ragwitness.service.policy import Claim
from ragwitness.service.store import open_store
from ragwitness.service.tenants import budget_of
from tests.support.postgres import Cluster
from tests.support.service import (
    Outcome,
    Server,
    attempts,
    flood,
    make_tenant,
    parrot,
    send_all,
)

pytestmark = pytest.mark.slow

CLAIM = Claim(
    mechanism="noise",
    epsilon=1.0,
    queries=10,
    payer_queries=18,
    accounts=8,
    capacity=16,
    top=3,
    embedder="hashing:64",
)
FULL = Claim(
    mechanism="noise",
    epsilon=1.0,
    queries=500,
    accounts=8,
    capacity=16,
    top=3,
    embedder="hashing:64",
    texts=True,
)


def paid(outcomes: list[Outcome]) -> list[Outcome]:
    return [one for one in outcomes if one.status == 200]


def test_races_and_kill_9_spend_no_query_twice_and_lose_none(database: str, tmp_path: Path) -> None:
    store = open_store(database)
    keys = make_tenant(store, "races", accounts=4, payers=2, claim=CLAIM)
    with Server(database, tmp_path / "log") as server:

        async def until_killed() -> list[Outcome]:
            task = asyncio.ensure_future(flood(server.url, keys, 60, 30))
            while budget_of(store, "races").queries < 6:
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.02)  # the clients, too, are busy when it happens
            await asyncio.to_thread(server.kill)
            return await task

        before = asyncio.run(until_killed())
        kept = budget_of(store, "races").queries
        assert len(paid(before)) <= kept <= 36
        server.start()
        after = asyncio.run(flood(server.url, keys, 60, 30))
    assert {one.status for one in after} <= {200, 429}
    found = budget_of(store, "races")
    assert found.queries == 36  # two payers of 18
    assert {row.payer_queries for row in found.accounts} == {18}
    assert all(row.queries <= 10 for row in found.accounts)
    assert len(paid(after)) == 36 - kept
    numbers = Counter((one.key, one.body["sequence"]) for one in paid(before) + paid(after))
    assert set(numbers.values()) == {1}
    store.close()


def test_hostile_requests_reach_nobody_else(database: str, tmp_path: Path) -> None:
    store = open_store(database)
    [attacker] = make_tenant(store, "mallory", accounts=1, claim=FULL)
    make_tenant(store, "victim", claim=FULL)
    with parrot() as generator, Server(database, tmp_path / "log", 2, generator) as server:
        replies = asyncio.run(send_all(server.url, list(attempts(attacker, "victim", 96))))
    text = "\n".join(reply.text for reply in replies)
    assert "is mallory" in text  # the generator repeats what it is shown
    assert not any(f"is victim{i}." in text for i in range(12))
    assert budget_of(store, "victim").queries == 0
    assert 0 < budget_of(store, "mallory").queries < 96
    assert {reply.status_code for reply in replies} <= {200, 400, 401, 404, 405, 413}
    refused = [reply.content for reply in replies if reply.status_code == 401]
    assert len(set(refused)) == 1
    log = (tmp_path / "log").read_text()
    assert "secretvictim" not in log
    assert attacker not in log
    store.close()


def test_a_database_that_goes_away_and_comes_back(cluster: Cluster, tmp_path: Path) -> None:
    store = open_store(cluster.url)
    keys = make_tenant(store, "away", accounts=1, claim=FULL)
    with Server(cluster.url, tmp_path / "log") as server:
        first = asyncio.run(flood(server.url, keys, 8, 4))
        cluster.stop(crash=True)
        gone = asyncio.run(flood(server.url, keys, 8, 4))
        health = httpx2.get(f"{server.url.removesuffix('/v1')}/health", trust_env=False)
        cluster.start()
        again = asyncio.run(flood(server.url, keys, 8, 4))
    assert [one.status for one in first + again] == [200] * 16
    assert [one.status for one in gone] == [503] * 8
    assert health.status_code == 503
    assert budget_of(store, "away").queries == 16
    assert sorted(one.body["sequence"] for one in first + again) == list(range(16))
    store.close()


def test_no_worker_outlives_the_first_process_and_a_dead_one_is_replaced(tmp_path: Path) -> None:
    path = str(tmp_path / "service.db")
    store = open_store(path, create=True)
    [key] = make_tenant(store, "t", accounts=1, claim=FULL)
    with Server(path, tmp_path / "log") as server:
        first = children(server.process.pid)
        time.sleep(10)  # who ends sooner would end again, and is not replaced
        os.kill(first[0], signal.SIGKILL)
        wait_for(lambda: len(set(children(server.process.pid)) - set(first)) == 1)
        assert paid(asyncio.run(flood(server.url, [key], 4, 4)))
        workers = children(server.process.pid)
        server.process.kill()
        server.process.wait()
        wait_for(lambda: not any(map(alive, workers)))
    store.close()


def test_workers_that_cannot_start_end_the_service(
    command: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    path = tmp_path / "service.db"
    open_store(str(path), create=True).close()
    words = ("--database", path, "--workers", 2, "--port", 0, "--generator", "none")
    code, out = command("serve", *words)
    assert code == 1
    assert "no language model 'none'" in out
    assert "A worker ended while it started (exit code 2)" in out


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed if alive(int(child))]


def alive(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def wait_for(condition: object, patience: float = 60) -> None:
    deadline = time.monotonic() + patience
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.1)
