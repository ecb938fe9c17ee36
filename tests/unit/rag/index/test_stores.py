"""Every store finds what exact search finds, and scores it alike."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from ragwitness.errors import InputError, MissingExtraError
from ragwitness.rag.build import build_system
from ragwitness.rag.config import RagConfig
from ragwitness.rag.index.base import Metric
from ragwitness.rag.index.dense import STORES, DenseIndex, ExactStore, FaissFlatStore
from ragwitness.rag.target import LabTarget
from tests.unit.rag.rag_fakes import CORPUS, FakeEmbedder, FakeModel

FAISS = ("faiss-flat", "faiss-hnsw")
LEAST_RECALL = 0.9

pytestmark = pytest.mark.parametrize("metric", ["l2", "ip"])
stores = pytest.mark.parametrize("name", STORES)


def opened(name: str, metric: Metric, *parts: NDArray[np.float32]) -> ExactStore | FaissFlatStore:
    if name in FAISS:
        pytest.importorskip("faiss")
    store = STORES.load(name)(metric)
    for part in parts:
        store.add(part)
    return store


def units(n: int, dim: int = 24, seed: int = 0) -> NDArray[np.float32]:
    rows = np.random.default_rng(seed).normal(size=(n, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def truth(vectors: NDArray[np.float32], query: NDArray[np.float32], metric: str) -> NDArray:
    if metric == "ip":
        return vectors.astype(float) @ query
    return -np.linalg.norm(vectors.astype(float) - query, axis=1)


@pytest.mark.slow
@stores
def test_neighbours_scores_and_their_order(name: str, metric: Metric) -> None:
    vectors = units(700)
    store = opened(name, metric, vectors[:300], vectors[300:])
    found = 0
    for query in units(30, seed=1):
        hits, scores = store.search(query, 10), truth(vectors, query, metric)
        nearest = np.argsort(-scores)[:10]
        assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)
        own = scores[[h.index for h in hits]]
        np.testing.assert_allclose([h.score for h in hits], own, atol=1e-5)
        found += len({h.index for h in hits} & set(nearest.tolist()))
        if name != "faiss-hnsw":
            assert [h.index for h in hits] == nearest.tolist()
    assert found >= LEAST_RECALL * 300


@stores
def test_equal_vectors_come_in_order_of_their_positions(name: str, metric: Metric) -> None:
    vectors = units(60)
    vectors[[9, 20, 41, 59]] = vectors[4]
    store = opened(name, metric, vectors)
    for k in range(1, 6):
        assert [h.index for h in store.search(vectors[4], k)] == [4, 9, 20, 41, 59][:k]
    assert len({h.score for h in store.search(vectors[4], 5)}) == 1


@stores
def test_k_beyond_the_collection_and_a_collection_of_equals(name: str, metric: Metric) -> None:
    store = opened(name, metric, units(5))
    assert sorted(h.index for h in store.search(units(1, seed=1)[0], 99)) == [0, 1, 2, 3, 4]
    assert store.search(units(1)[0], 0) == []
    same = opened(name, metric, np.repeat(units(1), 12, axis=0))
    assert [h.index for h in same.search(units(1, seed=1)[0], 5)] == [0, 1, 2, 3, 4]


@stores
def test_an_empty_collection_finds_nothing(name: str, metric: Metric) -> None:
    store = opened(name, metric)
    assert len(store) == 0
    assert store.search(units(1)[0], 3) == []


@stores
def test_stores_of_one_process_know_nothing_of_each_other(name: str, metric: Metric) -> None:
    first, second = (opened(name, metric, units(n, dim=n)) for n in (6, 9))
    assert (len(first), len(second)) == (6, 9)
    assert len(second.search(units(1, dim=9)[0], 20)) == 9


@stores
def test_built_again_and_asked_side_by_side_it_finds_the_same(name: str, metric: Metric) -> None:
    vectors, queries = units(400), units(40, seed=1)
    one, other = opened(name, metric, vectors), opened(name, metric, vectors)
    alone = [one.search(query, 7) for query in queries]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda query: other.search(query, 7), queries)) == alone


@stores
def test_a_system_over_it_answers_as_over_exact_search(name: str, metric: Metric) -> None:
    if name in FAISS:
        pytest.importorskip("faiss")
    documents = [*CORPUS, CORPUS[1]]  # a text that is there twice
    systems = [
        build_system(
            documents,
            RagConfig(k=3, retrieval="minilm", metric=metric, index=index),
            generator=FakeModel(),
            embedder=FakeEmbedder(),
        )
        for index in ("exact", name)
    ]
    for document in documents:
        exact, hits = (system.retrieve(document.text) for system in systems)
        assert hits[0].index == exact[0].index  # the others may be as good as equal
        assert [h.score for h in hits] == pytest.approx([h.score for h in exact], abs=2e-3)
    assert [h.index for h in systems[1].retrieve(CORPUS[1].text)[:2]] == [1, 6]
    assert systems[1].retrieve(" ") == []
    assert systems[1].index.name.endswith(f" {metric.upper()} over hashes@1")
    names = {LabTarget(system).name for system in systems}
    assert len(names) == len({"exact", name})  # another index is another system


@pytest.mark.parametrize("name", FAISS)
def test_a_missing_library_names_its_extra(
    name: str, metric: Metric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)

    class Never(FakeEmbedder):
        def embed(self, texts: object) -> NDArray[np.float32]:
            raise AssertionError("embedding comes after the library is found")

    with pytest.raises(MissingExtraError, match=r"pip install 'ragwitness\[faiss\]'"):
        DenseIndex(["text"], Never(), metric, name)


def test_unknown_names_and_indexes_without_vectors(metric: Metric) -> None:
    with pytest.raises(InputError, match=r"no index 'annoy'.*faiss-hnsw"):
        STORES.load("annoy")(metric)
    with pytest.raises(InputError, match="no index 'FAISS'"):
        RagConfig(retrieval="minilm", index="FAISS")
    with pytest.raises(InputError, match=r"lexical retrieval has none.*minilm"):
        RagConfig(index="faiss-flat")
    with pytest.raises(InputError, match=r"no index 'qdrant'.*exact, faiss-flat, faiss-hnsw"):
        RagConfig(index="qdrant")
