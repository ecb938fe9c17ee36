import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import select, update

from ragwitness.models.embedders import HashingEmbedder
from ragwitness.service.policy import Claim
from ragwitness.service.store import StoreGoneError
from ragwitness.service.tables import accounts, tenants
from ragwitness.service.tenants import add_account, budget_of, create_tenant, revoke, rotate_key
from tests.support.full_disk import full_disk
from tests.support.service import SMALL, attempts, make_tenant

Retrieve = Callable[..., httpx2.Response]


def test_retrieval_returns_slots_alone(service: Any, retrieve: Retrieve) -> None:
    [key] = make_tenant(service.store, "t", accounts=1)
    reply = retrieve(key)
    assert reply.status_code == 200
    body = reply.json()
    assert set(body) == {"object", "ids"}
    assert len(set(body["ids"])) == 3
    assert all(0 <= slot < 32 for slot in body["ids"])
    # Each answer has noise of its own.
    assert len({tuple(retrieve(key).json()["ids"]) for _ in range(8)}) > 1


def test_429_says_when_the_next_window_begins(service: Any, retrieve: Retrieve) -> None:
    [key] = make_tenant(service.store, "t", accounts=1)
    service.now = 1e12  # long after: a later window, of which some seconds are left
    replies = [retrieve(key) for _ in range(21)]
    assert [reply.status_code for reply in replies] == [200] * 20 + [429]
    left = int(replies[20].headers["Retry-After"])
    assert 0 < left <= SMALL.window
    service.now += left
    assert retrieve(key).status_code == 200


def test_every_spent_meter_is_refused_in_the_same_words(service: Any, retrieve: Retrieve) -> None:
    base = {"accounts": 1, "capacity": 32, "top": 3, "embedder": "hashing:64"}
    claims = {
        "account": Claim(mechanism="noise", epsilon=1.0, queries=2, **base),
        "payer": Claim(mechanism="noise", epsilon=1.0, queries=9, payer_queries=2, **base),
        "index": Claim(mechanism="noise", epsilon=1.0, queries=900, joint_epsilon=0.05, **base),
    }
    refusals = []
    for name, claim in claims.items():
        [key] = make_tenant(service.store, name, accounts=1, claim=claim)
        replies = [retrieve(key) for _ in range(12)]
        assert replies[0].status_code == 200, name
        assert replies[-1].status_code == 429, name
        refusals.append(replies[-1])
    assert len({reply.content for reply in refusals}) == 1
    assert all("Retry-After" in reply.headers for reply in refusals)


def test_every_wrong_key_is_refused_in_the_same_words(service: Any, retrieve: Retrieve) -> None:
    keys = make_tenant(service.store, "t", accounts=3)
    revoke(service.store, "t", "a1")
    fresh = rotate_key(service.store, "t", "a2")
    forged = keys[0][:-2] + ("AA" if keys[0][-2:] != "AA" else "BB")
    wrong = [None, "", "x", forged, keys[1], keys[2], f"rw_{'0' * 16}_{'A' * 43}", keys[0].upper()]
    replies = [retrieve(key) for key in wrong]
    replies += [service.send("/v1/usage", None, key) for key in wrong]
    assert {reply.status_code for reply in replies} == {401}
    assert len({reply.content for reply in replies}) == 1
    assert len({tuple(sorted(set(reply.headers))) for reply in replies}) == 1
    assert retrieve(keys[0]).status_code == retrieve(fresh).status_code == 200


BAD_RETRIEVALS: list[tuple[Any, int, str]] = [
    (b"{", 400, "JSON"),
    (b"[]", 400, "object"),
    (b"\xff", 400, "JSON"),
    (b"[" * 100_000, 400, "JSON"),
    (b'{"query": "' + b"a" * 300_000 + b'"}', 413, "larger"),
    ({"query": "a " * 5000}, 400, "query"),
    ({"query": ""}, 400, "blank"),
    ({"query": 5}, 400, "query"),
    ({}, 400, "either"),
    ({"query": "doors", "vector": [1.0] * 64}, 400, "either"),
    ({"query": "doors", "tenant": "u"}, 400, "tenant"),
    ({"query": "doors", "k": 30}, 400, "k"),
    ({"query": "!!! ???"}, 400, "zero"),
    (b'{"query": "\\ud800 half"}', 400, "unicode"),
    ({"vector": [1.0] * 63}, 400, "63 numbers, not 64"),
    ({"vector": [0.0] * 64}, 400, "zero"),
    ({"vector": [True] * 64}, 400, "vector"),
    (b'{"vector": [NaN' + b", 1" * 63 + b"]}", 400, "finite"),
    (b'{"vector": [1e999' + b", 1" * 63 + b"]}", 400, "finite"),
]


def test_bad_retrievals_are_refused_and_cost_nothing(service: Any) -> None:
    [key] = make_tenant(service.store, "t", accounts=1)
    for body, status, word in BAD_RETRIEVALS:
        reply = service.send("/v1/retrieval", body, key)
        assert reply.status_code == status, body
        assert word in reply.json()["error"]["message"], body
    assert budget_of(service.store, "t").queries == 0


@pytest.mark.parametrize("texts", [True, False])
def test_retrieval_gives_documents_only_where_the_tenant_does(
    service: Any, retrieve: Retrieve, texts: bool
) -> None:
    [key] = make_tenant(service.store, "t", accounts=1, claim=replace(SMALL, texts=texts))
    reply = retrieve(key).json()
    assert ("documents" in reply) is texts
    if texts:
        slots = [one["slot"] for one in reply["documents"]]
        assert slots == [slot for slot in reply["ids"] if slot in slots]
        assert all(one["text"].startswith("secrett record") for one in reply["documents"])
        assert all(one["id"].startswith("t-") for one in reply["documents"])


def test_parameters_and_unknown_paths_are_refused(service: Any) -> None:
    [key] = make_tenant(service.store, "t", accounts=1)
    assert service.send("/v1/usage?tenant=u", None, key).status_code == 400
    assert service.send("/v1/tenants", None, key).status_code == 404
    assert service.send("/v1/usage", {"x": 1}, key).status_code == 405
    assert service.send("/health").json() == {"status": "ok"}


def test_hostile_requests_reach_nobody_else(service: Any) -> None:
    claim = Claim(
        mechanism="noise",
        epsilon=1.0,
        queries=500,
        accounts=1,
        capacity=12,
        top=3,
        embedder="hashing:64",
        texts=True,
    )
    [key] = make_tenant(service.store, "mallory", accounts=1, claim=claim)
    make_tenant(service.store, "victim", claim=claim)
    said, statuses = "", set()
    for attempt in attempts(key, "victim", 64):
        reply = service.send(
            f"/v1{attempt.path}", attempt.content, method=attempt.method, headers=attempt.headers
        )
        said += reply.text
        statuses.add(reply.status_code)
    assert "is mallory" in said
    assert not any(f"is victim{i}." in said for i in range(12))
    assert statuses <= {200, 400, 401, 404, 405, 413}
    assert budget_of(service.store, "victim").queries == 0
    assert budget_of(service.store, "mallory").queries > 0


def test_usage_shows_ones_own_meters(service: Any, retrieve: Retrieve) -> None:
    keys = make_tenant(service.store, "t", accounts=2, payers=1)
    retrieve(keys[0])
    retrieve(keys[1])
    usage = service.send("/v1/usage", None, keys[0]).json()
    assert usage["meters"] == {
        "account": {"limit": 20, "used": 1, "left": 19},
        "payer": {"limit": 80, "used": 2, "left": 78},
    }
    promise = usage["promise"]
    assert (promise["epsilon"], promise["delta"], promise["covers"]) == (1.0, 1e-8, "ids")
    assert "answers" in promise["not_covered"]


def test_a_tenant_without_documents_is_refused_for_nothing(
    service: Any, retrieve: Retrieve
) -> None:
    create_tenant(service.store, "empty", SMALL)
    key = add_account(service.store, "empty", "a")
    reply = retrieve(key)
    assert reply.status_code == 409
    assert "no documents" in reply.json()["error"]["message"]
    assert budget_of(service.store, "empty").queries == 0


def test_a_database_that_goes_away_is_a_503_and_keeps_its_meters(
    service: Any, retrieve: Retrieve, monkeypatch: pytest.MonkeyPatch
) -> None:
    [key] = make_tenant(service.store, "t", accounts=1)
    assert retrieve(key).status_code == 200
    with monkeypatch.context() as patch:

        def gone(*_: Any) -> None:
            raise StoreGoneError("The database failed: it went away.")

        patch.setattr("ragwitness.service.meters.write_counts", gone)  # in the middle of a charge
        reply = retrieve(key)
        assert reply.status_code == 503
        assert reply.json()["error"]["code"] == "unavailable"
    assert budget_of(service.store, "t").queries == 1
    assert retrieve(key).status_code == 200
    assert budget_of(service.store, "t").queries == 2


def test_a_broken_embedder_costs_nothing(
    service: Any, retrieve: Retrieve, monkeypatch: pytest.MonkeyPatch
) -> None:
    [key] = make_tenant(service.store, "t", accounts=1)
    embed = HashingEmbedder.embed
    monkeypatch.setattr(HashingEmbedder, "embed", lambda *args: embed(*args) * float("nan"))
    assert retrieve(key).status_code == 500
    monkeypatch.setattr(HashingEmbedder, "embed", lambda *args: embed(*args)[:, :9])
    assert retrieve(key).status_code == 500
    assert budget_of(service.store, "t").queries == 0


def test_documents_added_later_are_searched(service: Any, retrieve: Retrieve) -> None:
    from ragwitness.core.types import Document
    from ragwitness.service.documents import add_documents

    [key] = make_tenant(service.store, "t", accounts=1)
    retrieve(key)
    [held] = service.retriever._indexes._held.values()
    add_documents(service.store, "t", [Document("new", "a new record about gardens")])
    retrieve(key)
    [again] = service.retriever._indexes._held.values()
    assert (held[0], again[0]) == (1, 2)
    assert [int((one[1].rows != 0).any(axis=1).sum()) for one in (held, again)] == [12, 13]


def test_a_key_revoked_during_the_request_is_a_401(
    service: Any, retrieve: Retrieve, monkeypatch: pytest.MonkeyPatch
) -> None:
    [key] = make_tenant(service.store, "t", accounts=1)
    charge = service.retriever._reserver._meters.charge

    def revoked(connection: Any, asks: Any) -> Any:
        connection.execute(update(accounts).values(revoked=1))
        return charge(connection, asks)

    monkeypatch.setattr(service.retriever._reserver._meters, "charge", revoked)
    assert retrieve(key).status_code == 401
    assert budget_of(service.store, "t").queries == 0


def test_a_key_ends_for_every_request_that_is_sent_after_it_was_revoked(service: Any) -> None:
    """Many requests share one read of their keys: none may see a row of before it was sent."""
    revoked, kept = make_tenant(service.store, "t", accounts=2)

    async def statuses() -> tuple[list[int], list[int]]:
        transport = httpx2.ASGITransport(app=service.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://service") as client:

            async def ask(key: str) -> int:
                reply = await client.get("/v1/usage", headers={"Authorization": f"Bearer {key}"})
                return reply.status_code

            before = [asyncio.create_task(ask(revoked)) for _ in range(20)]
            await asyncio.sleep(0.01)  # some of them are being read
            revoke(service.store, "t", "a0")
            after = await asyncio.gather(*(ask(key) for key in [revoked, kept] * 20))
            return await asyncio.gather(*before), after

    before, after = asyncio.run(statuses())
    assert {*before} <= {200, 401}
    assert {*after[::2]} == {401}
    assert {*after[1::2]} == {200}


def test_logs_are_json_without_texts_or_keys(
    service: Any, retrieve: Retrieve, caplog: pytest.LogCaptureFixture
) -> None:
    from ragwitness.service.server import JsonLines

    [key] = make_tenant(service.store, "t", accounts=1)
    with caplog.at_level("INFO", logger="ragwitness.service"):
        retrieve(key, "a private question about doors")
        retrieve(key, "a private question", secretfield="hidden")
        retrieve(key[:-3] + "abc", "a private question")
        with pytest.MonkeyPatch.context() as patch:  # fails inside, with a message of its own
            patch.setattr(service.retriever, "_noisy", None)
            retrieve(key, "a private question")
        for _ in range(20):
            retrieve(key, "a private question")
    lines = [JsonLines().format(record) for record in caplog.records]
    rows = [json.loads(line) for line in lines]
    joined = "\n".join(lines)
    for secret in ("private", "hidden", "secretfield", key, key.split("_", 2)[2], "record"):
        assert secret not in joined
    requests = [row for row in rows if row["event"] == "request"]
    assert [row["status"] for row in requests[:4]] == [200, 400, 401, 500]
    assert requests[0]["tenant"] == "t"
    assert requests[0]["account"] == "a0"
    assert "tenant" not in requests[2]
    assert requests[3]["cause"].startswith("TypeError at retrieve:")
    assert {row["refused_by"] for row in requests if row["status"] == 429} == {"account"}


@pytest.mark.slow
def test_a_clock_set_back_refills_no_window(service: Any, retrieve: Retrieve) -> None:
    """Over HTTP: windows go on where they were left, whatever the clock says; none is refilled."""
    claim = replace(SMALL, queries=4, window=60, lifetime_epsilon=30.0)
    [key] = make_tenant(service.store, "t", 1, claim=claim)
    with service.store.reading() as connection:
        created = connection.execute(select(tenants.c.created)).scalar_one()
    counts: Counter[int] = Counter()
    refused = 0
    for at in (0, 65, 3, -1e9, 125, 64, 0, 119, 61, 130, 2, 66, 180, 1, 0):
        service.now = created + at
        reply = retrieve(key)
        if reply.status_code == 429:
            assert 1 <= int(reply.headers["retry-after"]) <= 60
            refused += 1
            continue
        counts[int(max(0, at) // 60)] += 1
        used = service.send("/v1/usage", key=key).json()["meters"]["account"]["used"]
        assert used == counts[int(max(0, at) // 60)]
    assert counts == {0: 4, 1: 4, 2: 2, 3: 1}
    assert refused == 4  # windows 0 and 1 have no query left, however often they come back
    spent = budget_of(service.store, "t", now=created)
    assert spent.epsilon <= spent.life_epsilon <= 30.0 * (1 + 1e-9)


def test_a_disk_without_room_is_a_503_and_no_answer_leaves_unpaid(
    service: Any, retrieve: Retrieve
) -> None:
    """The system refuses to let the write-ahead log grow, as a full disk or a quota does."""
    [key] = make_tenant(
        service.store, "t", 1, claim=replace(SMALL, queries=400, joint_epsilon=None)
    )
    log = Path(service.store._engine.url.database + "-wal")
    assert retrieve(key).status_code == 200
    with full_disk(log.stat().st_size + 30_000):
        answered = 1
        while (reply := retrieve(key)).status_code == 200:
            answered += 1
        again = retrieve(key)
        health = service.send("/live")
    assert 1 < answered < 400
    for one in (reply, again):
        assert one.status_code == 503
        assert one.json()["error"]["code"] == "unavailable"
        assert "ids" not in one.json()
    assert health.status_code == 200
    assert budget_of(service.store, "t").queries == answered
    assert retrieve(key).status_code == 200  # with room again it goes on


def test_two_keys_in_one_request_are_none(service: Any) -> None:
    [key] = make_tenant(service.store, "t", accounts=1)
    headers = [("Authorization", f"Bearer {key}"), ("Authorization", f"Bearer {key}")]
    assert service.send("/v1/usage", None, key).status_code == 200

    async def ask() -> int:
        transport = httpx2.ASGITransport(app=service.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://service") as client:
            return (await client.get("/v1/usage", headers=headers)).status_code

    assert asyncio.run(ask()) == 401


def test_the_log_says_why_a_database_failed(
    service: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        raise StoreGoneError("The database failed: database or disk is full.")

    monkeypatch.setattr(service.store, "check", full)
    with caplog.at_level("INFO", "ragwitness.service"):
        assert service.send("/health").status_code == 503
    [line] = [one.fields for one in caplog.records]
    assert line["reason"] == "The database failed: database or disk is full."
