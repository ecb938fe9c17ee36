"""Cosines with the nearest record, by an embedder small enough to check by hand."""

import numpy as np
import pytest

from ragwitness.leakage.score.table import nearest_cosines, semantic_measures


class Letters:
    """Counts of a, b and c, of unit length."""

    name = "letters"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts):
        self.asked += texts
        counts = np.array([[text.count(letter) for letter in "abc"] for text in texts], np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def test_the_nearest_record_counts_and_a_blank_output_is_like_nothing() -> None:
    embedder = Letters()
    found = nearest_cosines(["a", "ab", "", " \n"], ["aa", "c"], embedder)
    assert found == pytest.approx([1.0, 0.5**0.5, 0.0, 0.0])
    assert "" not in embedder.asked
    assert nearest_cosines(["", ""], ["a"], embedder).tolist() == [0.0, 0.0]


def test_many_outputs_are_compared_in_parts() -> None:
    outputs = ["a" * (i % 5) + "b" * (i % 3) + "c" for i in range(600)]
    records = ["a", "abc", "bbc"]
    found = nearest_cosines(outputs, records, Letters())
    all_pairs = Letters().embed(outputs) @ Letters().embed(records).T
    assert found == pytest.approx(all_pairs.max(axis=1))


def test_measures_take_off_the_background() -> None:
    cosines, background = np.array([0.95, 0.9, 0.2, 0.1]), np.array([0.9, 0.1, 0.2, 0.1])
    mean, share = semantic_measures(cosines, background, embedder="letters")
    assert mean.rate is not None
    assert mean.rate.value == mean.count == pytest.approx(0.5375)
    assert mean.background == pytest.approx(0.325)
    assert (share.count, share.of, share.background) == (2, 4, 0.25)
    assert share.excess is not None
    assert share.excess.value == pytest.approx(0.25)
    assert share.excess.low < 0.25 < share.excess.high
    assert "letters" in share.definition
    alone = semantic_measures(cosines)
    assert [one.background for one in alone] == [one.excess for one in alone] == [None, None]
