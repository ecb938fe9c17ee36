"""Clients that people have, unmodified, against the service in a process of its own.

Skipped by name where one is not installed; ``.ci/run`` installs all of them.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ragwitness.attest.receipts import verify_request
from ragwitness.attest.window import Window
from ragwitness.core.errors import TargetResponseError, TargetUnreachableError
from ragwitness.crypto.keys import read_key
from ragwitness.crypto.records import QueryRecord, SignedQueryRecord, decode
from ragwitness.service.clients import Client
from ragwitness.service.policy import Claim
from ragwitness.service.store import Store, open_store
from tests.support.service import Server, commit_without_proofs, make_tenant, parrot

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

CLAIM = Claim(
    mechanism="noise",
    epsilon=1.0,
    queries=60,
    accounts=8,
    capacity=12,
    top=3,
    embedder="hashing:64",
    texts=True,
)


class Running:
    """A server, its store, and keys of an account each."""

    def __init__(self, url: str, store: Store, keys: list[str]) -> None:
        self.url, self.store, self.keys = url, store, keys


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("clients")
    path = str(folder / "service.db")
    store = open_store(path, create=True)
    keys = make_tenant(store, "acme", accounts=6, claim=CLAIM)
    with (
        parrot() as generator,
        Server(path, folder / "log", 2, generator) as server,
    ):
        yield Running(server.url, store, keys)
    assert "secretacme" not in (folder / "log").read_text()
    store.close()


def test_openai_s_client_with_what_it_sends_by_itself(running: Running) -> None:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=running.url, api_key=running.keys[0], max_retries=0)
    assert [model.id for model in client.models.list()] == ["rag"]
    messages = [{"role": "user", "content": "the code of door 3"}]
    reply = client.chat.completions.with_raw_response.create(
        model="rag", messages=messages, top_p=0.9, user="u", max_completion_tokens=40
    )
    assert reply.headers["x-ragwitness-ignored"] == "top_p, user"
    assert "record" in reply.parse().choices[0].message.content
    parts = client.chat.completions.create(
        model="rag", messages=messages, stream=True, stream_options={"include_usage": True}
    )
    told = list(parts)
    assert "record" in "".join(p.choices[0].delta.content or "" for p in told if p.choices)
    assert told[-1].usage is not None
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=running.url, api_key="sk-none", max_retries=0).models.list()
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="gpt", messages=messages)


def test_langchain_s_chat_model(running: Running) -> None:
    chat = pytest.importorskip("langchain_openai").ChatOpenAI(
        base_url=running.url, api_key=running.keys[1], model="rag", top_p=0.9, max_retries=0
    )
    assert "record" in chat.invoke("the code of door 3").content


def test_langchain_s_retriever(running: Running) -> None:
    pytest.importorskip("langchain_core")
    from ragwitness.service.clients.langchain import LangChainRetriever

    retriever = LangChainRetriever(running.url, running.keys[2])
    found = retriever.invoke("the code of door 3")
    again = asyncio.run(retriever.ainvoke("the code of door 3"))
    for documents in (found, again):
        assert 0 < len(documents) <= 3
        assert all("secretacme" in one.page_content for one in documents)
    assert running.keys[2] not in repr(retriever) + str(retriever.model_dump())


def test_llamaindex_s_retriever(running: Running) -> None:
    pytest.importorskip("llama_index.core")
    from ragwitness.service.clients.llamaindex import LlamaIndexRetriever

    retriever = LlamaIndexRetriever(running.url, running.keys[3])
    found = retriever.retrieve("the code of door 3")
    again = asyncio.run(retriever.aretrieve("the code of door 3"))
    for nodes in (found, again):
        assert 0 < len(nodes) <= 3
        assert all("secretacme" in one.text for one in nodes)
        scores = [one.score for one in nodes]  # of the rank: postprocessors drop nodes without any
        assert scores[0] == 1.0
        assert scores == sorted(scores, reverse=True)


def test_haystack_s_component_in_a_pipeline(running: Running, monkeypatch) -> None:
    haystack = pytest.importorskip("haystack")
    from haystack.utils import Secret

    from ragwitness.service.clients.haystack import HaystackRetriever

    monkeypatch.setenv("SERVICE_KEY", running.keys[4])
    pipeline = haystack.Pipeline()
    pipeline.add_component(
        "find", HaystackRetriever(running.url, Secret.from_env_var("SERVICE_KEY"))
    )
    stored = pipeline.dumps()
    assert running.keys[4] not in stored
    with pytest.raises(ValueError, match="Cannot serialize"):
        HaystackRetriever(running.url, Secret.from_token(running.keys[4])).to_dict()
    for one in (
        pipeline,
        haystack.Pipeline.loads(stored, allowed_modules=["ragwitness.service.clients.haystack"]),
    ):
        found = one.run({"find": {"query": "the code of door 3"}})["find"]["documents"]
        assert 0 < len(found) <= 3
        assert all("secretacme" in document.content for document in found)


def test_a_client_says_why_it_has_nothing(running: Running) -> None:
    with pytest.raises(TargetResponseError, match="401: Incorrect API key"):
        Client(running.url, "rw_none").retrieve("a question")
    with pytest.raises(TargetUnreachableError, match="does not answer"):
        Client("http://127.0.0.1:9", "k").retrieve("a question")
    assert running.keys[0] not in repr(Client(running.url, running.keys[0]))


# Accounts that sign: the three retrievers against a tenant whose answers stand in a log.

SIGNING = Claim(mechanism="noise",
    epsilon=1, queries=4, accounts=4, capacity=16, top=3, embedder="hashing:16", texts=True,
    relation="add-remove", scale=64, sampler="coins",
)  # fmt: skip


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Path]]:
    folder = tmp_path_factory.mktemp("logged")
    path = str(folder / "service.db")
    store = open_store(path, create=True)
    keys = make_tenant(store, "acme", accounts=3, claim=SIGNING)
    with pytest.MonkeyPatch.context() as patch:
        window, key = commit_without_proofs(store, "acme", folder, patch)
    with Server(path, folder / "log", 2, attest=[str(window)], key=str(key)) as server:
        yield Running(server.url, store, keys), window
    store.close()


def _langchain(url: str, key: str, **own: Any) -> Callable[[str], list[str]]:
    pytest.importorskip("langchain_core")
    from ragwitness.service.clients.langchain import LangChainRetriever

    retriever = LangChainRetriever(url, key, **own)
    return lambda query: [one.page_content for one in retriever.invoke(query)]


def _llamaindex(url: str, key: str, **own: Any) -> Callable[[str], list[str]]:
    pytest.importorskip("llama_index.core")
    from ragwitness.service.clients.llamaindex import LlamaIndexRetriever

    retriever = LlamaIndexRetriever(url, key, **own)
    return lambda query: [one.text for one in retriever.retrieve(query)]


def _haystack(url: str, key: str, **own: Any) -> Callable[[str], list[str]]:
    haystack = pytest.importorskip("haystack")
    from haystack.utils import Secret

    from ragwitness.service.clients.haystack import HaystackRetriever

    pipeline = haystack.Pipeline()
    own = {name: str(value) for name, value in own.items()}
    pipeline.add_component("find", HaystackRetriever(url, Secret.from_token(key), **own))

    def ask(query: str) -> list[str]:
        found = pipeline.run({"find": {"query": query}})["find"]["documents"]
        return [one.content for one in found]

    return ask


@pytest.mark.parametrize(("place", "make"), enumerate((_langchain, _llamaindex, _haystack)))
def test_a_retriever_with_an_account_signs_what_it_asks(
    logged: tuple[Running, Path], tmp_path: Path, place: int, make: Callable[..., Any]
) -> None:
    running, folder = logged
    key, receipts = tmp_path / "account.key", tmp_path / "receipts"
    ask = make(running.url, running.keys[place], account=key, receipts=receipts)
    for query in ("the code of door 3", "the code of door 4"):
        assert all("secretacme" in text for text in ask(query))
    public = read_key(key).public.material
    records = [decode(entry) for entry in Window.load(folder).ledger.entries()]
    mine = [one for one in records if isinstance(one, QueryRecord) and one.account == f"a{place}"]
    assert [int(one.sequence) for one in mine] == [0, 1]
    for record in mine:
        assert isinstance(record, SignedQueryRecord)
        verify_request(record, bytes.fromhex(record.signature), public)
    assert len(list(receipts.iterdir())) == 2
