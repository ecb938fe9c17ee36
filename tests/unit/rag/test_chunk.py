import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwitness.core.errors import InputError
from ragwitness.core.types import Document
from ragwitness.rag.chunk import chunk_document, chunk_documents


def test_short_document_is_one_passage_without_outer_space() -> None:
    [passage] = chunk_document(Document("a", "  two\n words \n"))
    assert (passage.text, passage.start, passage.end) == ("two\n words", 2, 12)


def test_long_document_is_cut_with_overlap() -> None:
    text = " ".join(f"w{i}" for i in range(500))
    passages = chunk_document(Document("a", text), words=200, overlap=20)
    assert [len(p.text.split()) for p in passages] == [200, 200, 140]
    assert passages[0].text.split()[-20:] == passages[1].text.split()[:20]


@given(st.text(), st.integers(1, 9), st.integers(0, 8))
def test_passages_are_slices_that_cover_every_word(text: str, words: int, overlap: int) -> None:
    passages = chunk_document(Document("a", text), words, min(overlap, words - 1))
    covered: set[int] = set()
    for passage in passages:
        assert passage.text == text[passage.start : passage.end]
        covered |= set(range(passage.start, passage.end))
    assert all(char.isspace() for i, char in enumerate(text) if i not in covered)


def test_blank_documents_give_nothing_and_unspaced_text_is_cut() -> None:
    assert chunk_documents([Document("a", " \n"), Document("b", "")]) == []
    assert len(chunk_document(Document("a", "字" * 1000), words=200, overlap=0)) == 5
    assert len(chunk_document(Document("a", "\u10d0" * 1000), words=1, overlap=0)) == 10


@pytest.mark.parametrize(("words", "overlap"), [(0, 0), (5, 5), (5, -1)])
def test_impossible_sizes_are_refused(words: int, overlap: int) -> None:
    with pytest.raises(InputError, match="cannot be cut"):
        chunk_document(Document("a", "x"), words, overlap)
