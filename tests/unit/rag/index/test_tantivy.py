"""Tantivy beside its opponents: BM25 counted by bm25s, and queries that look like a language."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from ragwitness.errors import InputError, MissingExtraError
from ragwitness.rag.build import build_system
from ragwitness.rag.config import RagConfig
from ragwitness.rag.index.lexical import LexicalIndex, index_words
from tests.unit.rag.rag_fakes import CORPUS, FakeModel

pytest.importorskip("tantivy")

from ragwitness.rag.index.tantivy import TantivyIndex

WORDS = [f"w{i}" for i in range(2000)]
WEIGHTS = [1 / (i + 3) for i in range(2000)]
K1 = 1.2


def _drawn(rng: random.Random, least: int, most: int) -> str:
    return " ".join(rng.choices(WORDS, WEIGHTS, k=rng.randint(least, most)))


@pytest.fixture(scope="module")
def short() -> list[str]:
    """Passages of at most 40 words, whose lengths are not rounded, and copies of some."""
    rng = random.Random(0)
    texts = [_drawn(rng, 5, 40) for _ in range(1500)]
    return texts + texts[:100]


def test_scores_and_order_are_those_of_an_independent_bm25(short: list[str]) -> None:
    import bm25s

    oracle = bm25s.BM25(method="lucene", k1=K1, b=0.75)
    oracle.index([index_words(text) for text in short], show_progress=False)
    index, rng = TantivyIndex(short), random.Random(1)
    for _ in range(100):
        query = _drawn(rng, 1, 60)
        scores = oracle.get_scores(index_words(query))
        hits = index.search(query, 10)
        # The factor (k1 + 1) is in Tantivy's score and not in Lucene's.
        assert [hit.score / (K1 + 1) for hit in hits] == pytest.approx(
            [float(scores[hit.index]) for hit in hits], rel=2e-6
        )
        rounded = [round(float(score), 5) for score in scores]  # copies tie
        order = sorted(range(len(short)), key=lambda at: (-rounded[at], at))
        assert [hit.index for hit in hits] == order[:10]


def test_the_same_passages_as_the_index_in_memory_where_nothing_ties() -> None:
    # Passage i alone has its words; a query of many words of one and few of others has one order.
    texts = [" ".join(f"p{i}x{j}" for j in range(30)) for i in range(300)]
    index, memory = TantivyIndex(texts), LexicalIndex(texts)
    for at in range(0, 290, 10):
        query = " ".join(f"p{at + step}x{j}" for step in range(8) for j in range(16 - 2 * step))
        found = [hit.index for hit in index.search(query, 8)]
        assert found == [hit.index for hit in memory.search(query, 8)] == list(range(at, at + 8))


@pytest.mark.parametrize(
    "query",
    [
        '"w1 w2" w3',
        "words:w1 w2:w3",
        "+w1 -w2 w3",
        "(w1 AND w2) OR NOT w3",
        "w1^4 w2~3 w*",
        "[w1 TO w9} {w2 TO *]",
        "words: IN [w1 w2]",
        "w1\\",
        '"w1',
        "w1 \ud800 w2 \x00",
        "\uff37\uff29\uff24\uff25 w1 \xe9\xc9 \u65e5\u672c\u8a9e \u0967\u0968",
    ],
)
def test_a_query_is_words_and_never_syntax(short: list[str], query: str) -> None:
    index = TantivyIndex(short)
    hits = index.search(query, 5)
    assert hits == index.search(" ".join(index_words(query)), 5)
    assert {hit.index for hit in hits} & {hit.index for hit in LexicalIndex(short).search(query, 9)}


@pytest.mark.parametrize("query", ["", " \n", "?!", "()", '""', "*", "-", "zyzzyva", "x" * 70_000])
def test_a_query_without_known_words_finds_nothing(short: list[str], query: str) -> None:
    assert TantivyIndex(short).search(query, 5) == []


def test_stop_words_alone_and_a_word_twice() -> None:
    index = TantivyIndex([document.text for document in CORPUS])
    assert index.search("the of and a", 2)
    once, twice = (index.search(query, 1)[0].score for query in ("the", "the the"))
    assert twice == pytest.approx(2 * once)
    assert index.search("the", 0) == []


@pytest.mark.parametrize("texts", [[], [""], ["...", "!"]])
def test_passages_without_words(texts: list[str]) -> None:
    index = TantivyIndex(texts)
    assert len(index) == len(texts)
    assert index.search("a word", 3) == []


def test_it_is_opened_again_from_its_folder(short: list[str], tmp_path: Path) -> None:
    first = TantivyIndex(short, tmp_path / "kept")
    (home,) = (tmp_path / "kept").iterdir()
    before = {path.name: path.stat().st_mtime_ns for path in home.iterdir()}
    again = TantivyIndex(short, tmp_path / "kept")
    assert again.search("w1 w5 w9", 20) == first.search("w1 w5 w9", 20)
    assert {path.name: path.stat().st_mtime_ns for path in home.iterdir()} == before
    # Other passages have a folder of their own beside it.
    TantivyIndex(short[:9], tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_an_index_cut_short_is_named_with_what_to_do(short: list[str], tmp_path: Path) -> None:
    TantivyIndex(short, tmp_path)
    (home,) = tmp_path.iterdir()
    (home / "meta.json").write_text("{")
    with pytest.raises(InputError, match="cannot be used") as caught:
        TantivyIndex(short, tmp_path)
    assert "Delete that folder" in caught.value.hint


def test_a_killed_build_is_no_index(
    short: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        TantivyIndex(short, tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    assert TantivyIndex(short, tmp_path).search("w1", 1)


def test_a_file_in_the_way(short: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="cannot be used"):
        TantivyIndex(short, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_system_over_it(tmp_path: Path) -> None:
    config = RagConfig(k=1, index="tantivy")
    system = build_system(CORPUS, config, generator=FakeModel(), index_folder=tmp_path)
    assert system.describe()["retrieval"] == "lexical (Tantivy BM25)"
    half = CORPUS[1].text[: len(CORPUS[1].text) // 2]
    assert system.passages[system.retrieve(half)[0].index].document == CORPUS[1].id


def test_what_does_not_go_together() -> None:
    with pytest.raises(InputError, match="holds words"):
        RagConfig(index="tantivy", retrieval="minilm")
    with pytest.raises(InputError, match="needs no folder"):
        build_system(CORPUS, RagConfig(), generator=FakeModel(), index_folder=Path("x"))


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tantivy", None)
    with pytest.raises(MissingExtraError) as caught:
        TantivyIndex(["a"])
    assert "ragwitness[tantivy]" in caught.value.hint
