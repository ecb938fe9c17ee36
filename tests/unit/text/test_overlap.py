"""Shared runs and subsequences of whole collections against a loop over all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragwitness.text.overlap import SubsequenceIndex, Vocabulary, lcs_length, shared_runs
from ragwitness.text.words import word_tokens

# Few letters, so that runs repeat, overlap and meet the ends of texts.
_TEXT = st.lists(st.sampled_from("abc"), max_size=14).map(" ".join)
_TEXTS = st.lists(_TEXT, max_size=6)


def _windows(text: str, n: int) -> set[tuple[str, ...]]:
    tokens = word_tokens(text)
    return {tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)}


def _covered(record: str, outputs: list[str], n: int) -> int:
    known = set().union(*(_windows(output, n) for output in outputs))
    tokens, places = word_tokens(record), set()
    for start in range(len(tokens) - n + 1):
        if tuple(tokens[start : start + n]) in known:
            places |= set(range(start, start + n))
    return len(places)


@pytest.mark.slow
@given(_TEXTS, _TEXTS, st.integers(1, 6))
@settings(max_examples=200, deadline=None)
def test_runs_equal_those_of_all_pairs(outputs: list[str], records: list[str], n: int) -> None:
    vocabulary = Vocabulary(word_tokens)
    found = shared_runs(vocabulary.tokenize(outputs), vocabulary.tokenize(records), n)
    pairs = [[bool(_windows(o, n) & _windows(r, n)) for r in records] for o in outputs]
    assert found.outputs.tolist() == [any(row) for row in pairs]
    assert found.records.tolist() == [any(row[i] for row in pairs) for i in range(len(records))]
    assert found.recovered.tolist() == [_covered(record, outputs, n) for record in records]


def test_a_run_never_crosses_into_the_next_text() -> None:
    vocabulary = Vocabulary(word_tokens)
    found = shared_runs(vocabulary.tokenize(["a b c"]), vocabulary.tokenize(["a b", "c"]), 3)
    assert not found.outputs.any()
    assert not found.records.any()


def test_a_run_has_a_token() -> None:
    nothing = Vocabulary().tokenize([])
    with pytest.raises(ValueError, match="at least one token"):
        shared_runs(nothing, nothing, 0)


def _lcs(first: list[str], second: list[str]) -> int:
    table = np.zeros((len(first) + 1, len(second) + 1), int)
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            same = table[i, j] + 1
            table[i + 1, j + 1] = same if a == b else max(table[i, j + 1], table[i + 1, j])
    return int(table[-1, -1])


@pytest.mark.slow
@given(_TEXTS, _TEXTS, st.sampled_from([0.25, 0.5, 0.8]))
@settings(max_examples=200, deadline=None)
def test_pairs_above_a_threshold_are_those_of_a_loop(
    outputs: list[str], records: list[str], threshold: float
) -> None:
    vocabulary = Vocabulary()
    said, index = vocabulary.tokenize(outputs), None
    index = SubsequenceIndex(vocabulary.tokenize(records))
    for place, output in enumerate(outputs):
        first = output.split()
        lcs = {i: _lcs(first, record.split()) for i, record in enumerate(records)}
        sizes = {i: len(record.split()) for i, record in enumerate(records)}
        f1 = {i for i in lcs if 2 * lcs[i] > threshold * (len(first) + sizes[i])}
        found = list(index.above_f1(said[place], threshold))
        assert {pair.record for pair in found} == f1
        for pair in found:
            assert lcs[pair.record] == lcs_length(said[place], index.records[pair.record])
            assert pair.f1 == 2 * lcs[pair.record] / (len(first) + sizes[pair.record])


def test_many_frequent_words_are_all_counted() -> None:
    text = " ".join(f"w{i}" for i in range(700))
    vocabulary = Vocabulary()
    index = SubsequenceIndex(vocabulary.tokenize([text, text, "w1 w2 other"]))
    assert index.overlaps(vocabulary.tokenize([text])[0]).tolist() == [700, 700, 2]
