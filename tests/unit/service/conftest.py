"""A service in this process: a database in a file, and an application that is called directly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ragwitness.service.app import create_app
from ragwitness.service.retrieval import Retriever
from ragwitness.service.store import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty database."""
    opened = open_store(str(tmp_path / "service.db"), create=True)
    yield opened
    opened.close()


class Service:
    """Sends requests to an application over a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now = 0.0
        self.retriever = Retriever(store, clock=lambda: self.now)

    @property
    def app(self) -> Any:
        return create_app(self.store, retriever=self.retriever)

    def send(
        self, path: str, body: object = None, key: str | None = None, **options: Any
    ) -> httpx2.Response:
        """Send one request; a body that is no bytes goes as JSON, None makes it a GET."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        method = options.pop("method", "GET" if body is None else "POST")

        async def ask() -> httpx2.Response:
            transport = httpx2.ASGITransport(app=self.app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://service") as client:
                return await client.request(
                    method,
                    path,
                    content=None if body is None else content,
                    headers=headers | options.pop("headers", {}),
                    **options,
                )

        return asyncio.run(ask())


@pytest.fixture
def service(store: Store) -> Iterator[Service]:
    """A service over an empty database; its clock stands at the tenants' first second."""
    made = Service(store)
    yield made
    made.retriever.close()


@pytest.fixture
def retrieve(service: Service) -> Callable[..., httpx2.Response]:
    """Ask for documents by text."""

    def call(key: str | None, query: str = "the code of door 3", **more: Any) -> httpx2.Response:
        return service.send("/v1/retrieval", {"query": query, **more}, key)

    return call
