"""The service in processes of its own: races, kill -9, a database that goes, hostile requests."""

import asyncio
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
    store.close()


def test_hostile_requests_reach_nobody_else(database: str, tmp_path: Path) -> None:
    store = open_store(database)
    [attacker] = make_tenant(store, "mallory", accounts=1, claim=FULL)
    make_tenant(store, "victim", claim=FULL)
    with Server(database, tmp_path / "log") as server:
        replies = asyncio.run(send_all(server.url, list(attempts(attacker, "victim", 96))))
    text = "\n".join(reply.text for reply in replies)
    assert "is mallory" in text
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
    store.close()
