import numpy as np
import pytest

from ragwitness.core.errors import InputError
from ragwitness.rag.config import Metric, RagConfig
from ragwitness.rag.index import DenseIndex, Index, LexicalIndex, index_words
from tests.unit.rag.rag_fakes import CORPUS, FakeEmbedder

TEXTS = [document.text for document in CORPUS]


def _indexes() -> list[Index]:
    return [LexicalIndex(TEXTS), DenseIndex(TEXTS, FakeEmbedder(), "l2")]


@pytest.mark.parametrize("i", range(len(TEXTS)))
def test_words_find_a_document_by_its_half(i: int) -> None:
    half = TEXTS[i][: len(TEXTS[i]) // 2]
    assert LexicalIndex(TEXTS).search(half, 1)[0].index == i


@pytest.mark.parametrize("index", _indexes())
def test_k_beyond_the_corpus_and_blank_queries(index: Index) -> None:
    hits = index.search("the microwave contract fever Penguins", 99)
    assert 0 < len(hits) <= len(TEXTS) == len(index)
    assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)
    assert index.search("", 3) == index.search(" \n", 3) == index.search("x", 0) == []


def test_query_of_stop_words_still_finds_something() -> None:
    assert LexicalIndex(TEXTS).search("the of and a", 2)


def test_words_never_seen_find_nothing() -> None:
    assert LexicalIndex(TEXTS).search("zyzzyva", 3) == []


@pytest.mark.parametrize("texts", [[], [""], ["...", "!"]])
def test_index_without_words_finds_nothing(texts: list[str]) -> None:
    assert LexicalIndex(texts).search("a word", 3) == []


def test_ties_follow_the_order_of_the_passages() -> None:
    index = LexicalIndex(["same words here", "other", "same words here", "same words here"])
    assert [hit.index for hit in index.search("same words", 2)] == [0, 2]


def test_building_and_searching_say_nothing(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    LexicalIndex(TEXTS).search("fever", 2)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_numbers_and_scripts_are_words() -> None:
    assert index_words("On 2024-03-01, 39.4°C; B12 É") == [
        "on", "2024-03-01", "39.4", "c", "b12", "é",
    ]  # fmt: skip
    assert index_words("頭痛です") == ["頭痛", "痛で", "です"]
    assert index_words("Колено STRAẞE") == ["колено", "strasse"]
    assert index_words("हिन्दी ไทย") == ["हिन्दी", "ไทย"]
    assert index_words("ﬁne x²") == ["fine", "x2"]


@pytest.mark.parametrize("metric", ["l2", "ip"])
def test_dense_search_equals_brute_force(metric: Metric) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(320, 16)).astype(np.float32)

    class Lookup:
        name = "lookup"

        def embed(self, texts: list[str]) -> np.ndarray:
            return vectors[[int(text) for text in texts]]

    index = DenseIndex([str(i) for i in range(300)], Lookup(), metric)
    exact = vectors[:300].astype(float)
    for i, query in enumerate(vectors[300:], 300):
        scores = exact @ query if metric == "ip" else -np.linalg.norm(exact - query, axis=1)
        hits = index.search(str(i), 7)
        assert [h.index for h in hits] == list(np.argsort(-scores)[:7])
        np.testing.assert_allclose([h.score for h in hits], np.sort(scores)[::-1][:7], rtol=1e-4)


@pytest.mark.parametrize("metric", ["l2", "ip"])
def test_equal_vectors_come_in_order_of_their_passages(metric: Metric) -> None:
    index = DenseIndex([TEXTS[0], TEXTS[1], TEXTS[0], TEXTS[0]], FakeEmbedder(), metric)
    assert [hit.index for hit in index.search(TEXTS[0], 2)] == [0, 2]
    assert [hit.index for hit in index.search(TEXTS[0], 99)] == [0, 2, 3, 1]
    assert index.search(TEXTS[0], 0) == []


def test_unknown_metric_and_empty_dense_index() -> None:
    with pytest.raises(InputError, match="cosine"):
        RagConfig(metric="cosine")  # type: ignore[arg-type]
    assert DenseIndex([], FakeEmbedder()).search("x", 3) == []
