"""The library: a private retriever behind keys and meters, in an application of somebody else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from prometheus_client import REGISTRY
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from ragwitness.core.errors import InputError
from ragwitness.service.middleware import KeyedAccounts
from ragwitness.service.policy import Claim
from ragwitness.service.private import PrivateRetriever, TenantMeter
from ragwitness.service.store import Store
from ragwitness.service.tenants import add_account, budget_of, create_tenant, revoke

NOISE = Claim(
    mechanism="noise", epsilon=1.0, queries=3, accounts=2, capacity=16, top=4, embedder="none"
)
CODES = Claim(capacity=16, epsilon=12.0)


class Retriever:
    """All documents with a score each, as a LlamaIndex retriever gives them."""

    def __init__(self, count: int = 12, score: Any = 0.1) -> None:
        self.count, self.score, self.text = count, score, "about item{}"

    def retrieve(self, query: Any) -> list[Any]:
        return [
            SimpleNamespace(
                node=SimpleNamespace(
                    node_id=f"d{at}", get_content=lambda at=at: self.text.format(at)
                ),
                score=self.score,
            )
            for at in range(self.count)
        ]

    async def aretrieve(self, query: Any) -> list[Any]:
        return self.retrieve(query)


def application(store: Store, private: PrivateRetriever) -> Starlette:
    """An application as a provider has it."""

    async def ask(request: Request) -> JSONResponse:
        nodes = await private.aretrieve(request.query_params["q"])
        return JSONResponse([node.node.node_id for node in nodes])

    async def fail(_request: Request) -> JSONResponse:
        raise ValueError("it quotes a document")

    routes = [Route("/ask", ask), Route("/fail", fail), Route("/open", lambda _: JSONResponse({}))]
    return Starlette(
        routes=routes, middleware=[Middleware(KeyedAccounts, store=store, open_paths=["/open"])]
    )


def get(app: Any, path: str, key: str | None = None) -> httpx2.Response:
    async def ask() -> httpx2.Response:
        transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://app") as client:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            return await client.get(path, headers=headers)

    return asyncio.run(ask())


def private(store: Store, claim: Claim, retriever: Any = None) -> PrivateRetriever:
    create_tenant(store, "t", claim)
    meter = TenantMeter(store, "t")
    return PrivateRetriever(retriever or Retriever(), meter.policy, meter)


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_the_key_decides_who_pays_and_a_spent_meter_is_a_429(store: Store) -> None:
    app = application(store, private(store, NOISE))
    key = add_account(store, "t", "ann")
    before = counted("ragwitness_refused_total", tenant="t", meter="account")
    replies = [get(app, "/ask?q=item3", key) for _ in range(4)]
    assert [reply.status_code for reply in replies] == [200, 200, 200, 429]
    assert int(replies[3].headers["Retry-After"]) > 0
    assert replies[0].headers["Cache-Control"] == "no-store"
    assert budget_of(store, "t").queries == 3
    assert counted("ragwitness_refused_total", tenant="t", meter="account") == before + 1
    assert counted("ragwitness_requests_total", tenant="t", status="200") >= 3


def test_no_key_no_answer_but_for_open_paths_and_failures_quote_nothing(store: Store) -> None:
    app = application(store, private(store, CODES))
    key = add_account(store, "t", "ann")
    assert get(app, "/ask?q=item3").status_code == 401
    assert get(app, "/open").status_code == 200
    failed = get(app, "/fail", key)
    assert failed.status_code == 500
    assert "quotes" not in failed.text
    revoke(store, "t", "ann")
    assert get(app, "/ask?q=item3", key).status_code == 401


def test_a_websocket_does_not_pass_without_a_key(store: Store) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def nothing() -> Any:
        raise AssertionError("it was asked")

    guarded = KeyedAccounts(nothing, store)
    asyncio.run(guarded({"type": "websocket", "path": "/"}, nothing, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_another_tenant_s_account_is_refused_and_charged_nothing(store: Store) -> None:
    app = application(store, private(store, NOISE))
    create_tenant(store, "other", NOISE)
    key = add_account(store, "other", "eve")
    assert get(app, "/ask?q=item3", key).status_code == 500
    assert budget_of(store, "t").queries == budget_of(store, "other").queries == 0


@pytest.mark.parametrize(
    ("retriever", "why"),
    [
        (Retriever(score=None), "no scores from -1 to 1"),
        (Retriever(score=float("nan")), "no scores from -1 to 1"),
        (Retriever(score=17.0), "no scores from -1 to 1"),
        (Retriever(count=17), "more than the capacity"),
        (SimpleNamespace(retrieve=lambda _: [SimpleNamespace(score=0.1)]), "without an id"),
    ],
)
def test_retrievers_that_cannot_be_protected_are_named(
    store: Store, retriever: Any, why: str
) -> None:
    with pytest.raises(InputError, match=why):
        private(store, NOISE, retriever).retrieve("item3")


def test_a_change_of_documents_is_told_and_nothing_else_passes(store: Store) -> None:
    behind = Retriever()
    before = private(store, CODES, behind)
    first = [node.node.node_id for node in before.retrieve("What is item3?")]
    behind.count = 13
    with pytest.raises(InputError, match="other documents than before"):
        before.retrieve("What is item3?")
    before.refresh()
    assert [node.node.node_id for node in before.retrieve("What is item3?")] == first
    behind.text = "now about item{}"  # a changed text under a known id is a change as well
    with pytest.raises(InputError, match="other documents than before"):
        before.retrieve("What is item3?")
    before.refresh()
    assert [node.node.node_id for node in before.retrieve("What is item3?")] == first
    asked: Callable[[str], list[Any]] = before.retrieve
    assert all(node.score is None for node in asked("item1 item2 item3 item4"))
