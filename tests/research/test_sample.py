"""The corpus of the package: reproducible, nobody's data, and without a giveaway."""

from __future__ import annotations

import gzip
import random
import re
from importlib import resources

import numpy as np
import pytest

from ragwitness.text.sample import load_sample
from research.sample.__main__ import packed
from research.sample.generate import GENRES, generate, genre


def stored() -> bytes:
    return resources.files("ragwitness.text").joinpath("sample.jsonl.gz").read_bytes()


def test_regenerates_byte_for_byte() -> None:
    # the text, not its packing: compressors differ between builds of zlib
    assert gzip.decompress(packed()) == gzip.decompress(stored())
    assert packed() == packed()
    assert stored()[4:8] == bytes(4)
    assert len(stored()) <= 300_000


def test_sizes_ids_and_uniqueness() -> None:
    documents = load_sample()
    assert [d.id for d in documents] == [f"sample-{i:04d}" for i in range(1, 1201)]
    assert len({d.text for d in documents}) == 1200
    assert all(60 <= len(d.text.split()) <= 140 for d in documents)
    assert all(d.member is None for d in documents)
    assert [d.text for d in generate(50, seed=3)] != [d.text for d in generate(50, seed=4)]


@pytest.mark.parametrize("name", GENRES)
def test_genres_have_variety(name: str) -> None:
    kind = genre(name)
    assert len(set(kind.first)) == len(kind.first) >= 25
    assert len(set(kind.second)) == len(kind.second) >= 25
    assert all("{" in pattern for pattern in kind.first + kind.second)


def test_nothing_real_can_be_reached() -> None:
    for document in load_sample():
        text = document.text
        assert "{" not in text
        assert re.search(r"\b(a a|an an|the a|the the)\b", text, re.IGNORECASE) is None
        for number in re.findall(r"\+?\d[\d ()/-]{6,}\d", text):
            assert re.fullmatch(r"555-01\d\d", number.strip()), number
        for number in re.findall(r"\d{5,}", text):
            raise AssertionError(number)
        for domain in re.findall(r"@([\w.-]*\w)", text):
            assert domain in {"example.org", "example.com", "example.net"}
        assert not re.search(r"https?:|www\.", text)
        assert not re.search(r"dick|piss|shit|cock|cunt|fuck|slut", text, re.IGNORECASE)


def vectors() -> np.ndarray:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [document.text for document in load_sample()]
    return TfidfVectorizer(sublinear_tf=True).fit_transform(texts)  # type: ignore[no-any-return]


def test_most_documents_have_a_near_duplicate() -> None:
    matrix = vectors()
    similarity = (matrix @ matrix.T).toarray()
    np.fill_diagonal(similarity, 0)
    nearest = similarity.max(axis=1)
    assert np.median(nearest) > 0.35
    assert (nearest > 0.3).mean() > 0.7
    # and no copies
    assert nearest.max() < 0.95


def test_a_blind_classifier_learns_nothing_from_a_random_split() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    order = list(range(1200))
    random.Random(0).shuffle(order)
    members = np.zeros(1200, dtype=bool)
    members[order[:600]] = True
    matrix = vectors()
    train, test = order[::2], order[1::2]
    model = LogisticRegression().fit(matrix[train], members[train])
    area = roc_auc_score(members[test], model.decision_function(matrix[test]))
    assert abs(area - 0.5) < 0.08
