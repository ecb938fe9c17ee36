"""A twin reads like its document and is another text."""

from __future__ import annotations

from ragwitness.core.types import Document
from ragwitness.text.sample import load_sample
from research.reproduce.twins import with_twins


def test_each_document_has_a_twin_that_differs_in_an_eighth_of_its_words() -> None:
    documents = load_sample()[:40]
    found = with_twins(documents)
    assert found[::2] == tuple(documents)
    for document, twin in zip(found[::2], found[1::2], strict=True):
        assert twin.id != document.id
        pairs = list(zip(document.text.split(), twin.text.split(), strict=True))
        changed = sum(one != other for one, other in pairs)
        assert 1 <= changed <= max(1, len(pairs) // 8)


def test_a_twin_follows_from_its_document_and_the_seed_alone() -> None:
    documents = load_sample()[:10]
    turned = {one.id: one for one in with_twins(documents[::-1])}
    assert {one.id: one for one in with_twins(documents)} == turned
    assert with_twins(documents, seed=1) != with_twins(documents)


def test_a_document_without_long_words_keeps_its_text() -> None:
    documents = [Document("short", "a b c d e f g h")]
    assert with_twins(documents)[1].text == documents[0].text
