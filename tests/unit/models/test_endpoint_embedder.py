"""Embedders by name: one behind an HTTP endpoint, over a real loopback."""

import asyncio
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ragwitness.core.errors import (
    InputError,
    RagwitnessError,
    TargetResponseError,
    TargetUnreachableError,
)
from ragwitness.core.types import Query
from ragwitness.models.endpoint import KEY_VARIABLE, EndpointEmbedder
from ragwitness.models.model_registry import load_embedder
from ragwitness.rag.config import RagConfig
from ragwitness.rag.pipeline import build_system
from ragwitness.targets.transport import RetryPolicy, TransportOptions
from tests.unit.rag.rag_fakes import CORPUS, FakeEmbedder, FakeModel, served

FAST = TransportOptions(retry=RetryPolicy(retries=2, first=0.001))
TEXTS = [document.text for document in CORPUS]


class Endpoint:
    """Serves :class:`FakeEmbedder`, three times too long and in reverse order."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.failures = 0
        self.reply: Any = None

    async def embeddings(self, request: Request) -> Response:
        asked = await request.json()
        self.requests.append(asked)
        self.keys.append(request.headers.get("authorization"))
        if self.failures:
            self.failures -= 1
            return JSONResponse({"error": {"message": "busy"}}, 503)
        if self.reply is not None:
            status, body = self.reply
            return Response(body, status, media_type="application/json")
        vectors = 3 * FakeEmbedder().embed(asked["input"])
        rows = [{"index": i, "embedding": v.tolist()} for i, v in enumerate(vectors)]
        return JSONResponse({"object": "list", "data": rows[::-1], "model": asked["model"]})

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/v1/embeddings", self.embeddings, methods=["POST"])])


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint()


@pytest.fixture
def url(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    with served(endpoint.app()) as base:
        yield base


def test_vectors_are_unit_length_and_in_the_order_of_the_texts(
    url: str, endpoint: Endpoint
) -> None:
    embedder = EndpointEmbedder(f"{url}#hashes")
    texts = [f"{TEXTS[i % 6]} {i}" for i in range(150)]
    vectors = embedder.embed(texts)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, FakeEmbedder().embed(texts), atol=1e-6)
    assert sorted(len(request["input"]) for request in endpoint.requests) == [22, 64, 64]
    assert {request["model"] for request in endpoint.requests} == {"hashes"}
    assert embedder.name == f"{url}#hashes"
    assert embedder.embed([]).shape == (0, 64)


def test_failures_that_pass_are_asked_again(url: str, endpoint: Endpoint) -> None:
    endpoint.failures = 2
    assert EndpointEmbedder(f"{url}#m", FAST).embed(TEXTS[:1]).shape == (1, 64)
    assert len(endpoint.requests) == 3
    endpoint.failures = 3
    with pytest.raises(TargetResponseError, match="status 503 after 3 attempts: busy"):
        EndpointEmbedder(f"{url}#m", FAST).embed(TEXTS)


def test_only_the_named_key_is_sent_and_none_is_shown(
    url: str, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    EndpointEmbedder(f"{url}#m").embed(TEXTS)
    monkeypatch.setenv(KEY_VARIABLE, "very-secret")
    EndpointEmbedder(f"{url}#m").embed(TEXTS)
    assert endpoint.keys == [None, "Bearer very-secret"]
    endpoint.reply = (401, json.dumps({"error": {"message": "very-secret is no key"}}))
    with pytest.raises(TargetResponseError, match=KEY_VARIABLE) as caught:
        EndpointEmbedder(f"{url}#m").embed(TEXTS)
    assert "very-secret" not in str(caught.value)
    assert "--key-env" not in str(caught.value)


def rows(*vectors: object) -> str:
    return json.dumps({"data": [{"index": i, "embedding": v} for i, v in enumerate(vectors)]})


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("{}", "missing or odd"),
        ("[]", "missing or odd"),
        ('{"data": [{"embedding": [1.0]}]}', "missing or odd"),
        (rows("AAAA", "BBBB"), "missing or odd"),
        (rows([1.0, None], [1.0, 2.0]), "no direction"),
        (rows([1.0, 2.0], [math.nan, 1.0]), "no direction"),
        (rows([], []), "no direction"),
        (rows([1.0]), "1 vectors for 2 texts"),
        ('{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}', "numbered"),
        (rows([1.0], [1.0, 2.0]), "several sizes"),
        (rows([1.0, 2.0], [0.0, 0.0]), "no direction"),
        ("<html>", "HTML"),
        ("", "empty reply"),
    ],
)
def test_replies_without_vectors_say_what_is_wrong(
    url: str, endpoint: Endpoint, body: str, says: str
) -> None:
    endpoint.reply = (200, body)
    with pytest.raises(TargetResponseError, match=says) as caught:
        EndpointEmbedder(f"{url}#m", FAST).embed(["a", "b"])
    assert url in caught.value.message
    assert caught.value.hint


def test_a_size_that_changes_is_refused(url: str, endpoint: Endpoint) -> None:
    embedder = EndpointEmbedder(f"{url}#m")
    embedder.embed(TEXTS)
    endpoint.reply = (200, rows([1.0, 2.0]))
    with pytest.raises(TargetResponseError, match="size has changed"):
        embedder.embed(["a"])


def test_nobody_there() -> None:
    with pytest.raises(TargetUnreachableError, match="3 attempts"):
        EndpointEmbedder("http://127.0.0.1:9/v1#m", FAST).embed(["a"])


@pytest.mark.parametrize(
    "spec",
    ["http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1#", "https://", "http://me:secret@host/v1#m"],
)
def test_addresses_that_cannot_be_used(spec: str) -> None:
    with pytest.raises(InputError, match="URL#MODEL") as caught:
        load_embedder(spec)
    assert "secret" not in str(caught.value)


def test_other_names_are_those_of_local_models() -> None:
    for spec in ("bge", "reader", "", "ftp://host#m"):
        with pytest.raises(InputError, match=r"hf:NAME_OR_FOLDER, hashing:DIMENSION, URL#MODEL"):
            load_embedder(spec)


def test_one_embedder_per_address(url: str) -> None:
    assert load_embedder(f"{url}#m") is load_embedder(f"{url}#m")
    assert load_embedder(f"{url}#m") is not load_embedder(f"{url}#other")


def test_it_serves_threads_and_a_running_loop(url: str) -> None:
    embedder = EndpointEmbedder(f"{url}#m")
    expected = FakeEmbedder().embed(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: embedder.embed([text])[0], TEXTS))
    np.testing.assert_allclose(found, expected, atol=1e-6)

    async def inside() -> Any:
        return embedder.embed(TEXTS)

    np.testing.assert_allclose(asyncio.run(inside()), expected, atol=1e-6)


@pytest.mark.slow
def test_a_system_retrieves_through_an_endpoint(url: str) -> None:
    config = RagConfig(k=1, retrieval=f"{url}#hashes")
    system = build_system(CORPUS, config, generator=FakeModel())
    assert [system.retrieve(text)[0].index for text in TEXTS] == list(range(6))
    assert system.answer(Query("Maria Keller came on 2024-03-01 with a", 2)).text == " fever of"
    assert f"over {url}#hashes" in str(system.describe()["retrieval"])


def test_an_endpoint_that_goes_away_is_an_unreachable_target(endpoint: Endpoint) -> None:
    with served(endpoint.app()) as base:
        embedder = EndpointEmbedder(f"{base}#m", FAST)
        embedder.embed(TEXTS)
    with pytest.raises(RagwitnessError) as caught:
        embedder.embed(TEXTS)
    assert isinstance(caught.value, TargetUnreachableError)


@pytest.mark.slow
def test_an_embedder_of_a_window_needs_neither_the_service_nor_its_database() -> None:
    # A provider with [zk] alone commits, and a verifier with [verify] alone embeds texts again.
    program = """
import sys
sys.modules["sqlalchemy"] = None  # as where it is not installed
from ragwitness import load_embedder
import ragwitness.cli.attest_indexes
print(load_embedder("hashing:32").embed(["one door"]).shape)
assert "ragwitness.service" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "(1, 32)\n", done.stderr
