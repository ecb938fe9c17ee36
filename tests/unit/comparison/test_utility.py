"""Utility measures against rouge-score, NLTK and sacrebleu, and by hand."""

from __future__ import annotations

import random
import sys
import warnings

import numpy as np
import pytest

from ragwitness.comparison.usefulness import (
    MEASURES,
    answer_lengths,
    bleu_1,
    contains_verbatim,
    measure_utility,
    rouge_l,
    rouge_l_stemmed,
    token_f1,
)
from ragwitness.core.errors import InputError, MissingExtraError

_WORDS = "the cat sat on a mat. The dog, it barked! pain relief twice daily 20 mg Mg".split()


def _pairs(n: int) -> list[tuple[str, list[str]]]:
    rng = random.Random(4)

    def text() -> str:
        return " ".join(rng.choices(_WORDS, k=rng.randint(1, 14)))

    return [(text(), [text() for _ in range(rng.randint(1, 3))]) for _ in range(n)]


def test_rouge_l_is_rouge_scores() -> None:
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rougeL"])
    for answer, truths in _pairs(150):
        theirs = max(scorer.score(truth, answer)["rougeL"].fmeasure for truth in truths)
        assert rouge_l(answer, truths) == pytest.approx(theirs)


def test_rouge_l_as_published_is_stemmed() -> None:
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(
        ["rougeL"], use_stemmer=True
    )
    for answer, truths in [*_pairs(50), ("running dogs barked", ["the dog was run, and barks"])]:
        theirs = max(scorer.score(truth, answer)["rougeL"].fmeasure for truth in truths)
        assert rouge_l_stemmed(answer, truths) == pytest.approx(theirs)
    assert rouge_l("running dogs", ["run dog"]) == 0 < rouge_l_stemmed("running dogs", ["run dog"])


def test_bleu_1_is_nltks_as_published() -> None:
    bleu = pytest.importorskip("nltk.translate.bleu_score")
    for answer, truths in _pairs(150):
        split = [truth.lower().split() for truth in truths]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of n-grams whose weight is 0
            theirs = bleu.sentence_bleu(split, answer.lower().split(), weights=(1, 0, 0, 0))
        assert bleu_1(answer, truths) == pytest.approx(theirs, abs=1e-12)


def test_by_hand() -> None:
    assert rouge_l("a b c d", ["a x c", "q"]) == pytest.approx(2 * 2 / 7)
    assert bleu_1("the the the", ["the cat"]) == pytest.approx(1 / 3)
    assert bleu_1("cat", ["the cat sat"]) == pytest.approx(np.exp(1 - 3))
    assert token_f1("the cat sat", ["a cat"]) == pytest.approx(2 / 3)
    assert token_f1("the", ["a"]) == 1  # nothing is left of either
    assert contains_verbatim("in 1945.", ["1945"]) == 1
    assert contains_verbatim("In Paris", ["PARIS "]) == 1
    assert contains_verbatim("catalogue", ["cat"]) == 1


def test_an_empty_answer_scores_nothing_and_the_best_reference_counts() -> None:
    found = measure_utility(["", "b"], [["a word"], ["a word", "b"]])
    for name, values in found.items():
        assert values[0] == 0, name
        assert values[1] == pytest.approx(1), name
    assert set(found) == set(MEASURES)


def test_what_cannot_be_measured_is_named() -> None:
    with pytest.raises(InputError, match="2 answers have 1"):
        measure_utility(["a", "b"], [["a"]])
    with pytest.raises(InputError, match="1 answers have no reference"):
        measure_utility(["a", "b"], [["a"], [" "]])


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.bleu", None)
    with pytest.raises(MissingExtraError, match=r"ragwitness\[leak\]"):
        bleu_1("a", ["a"])


def test_lengths_are_in_words() -> None:
    assert answer_lengths(["two words", "", " one "]).tolist() == [2, 0, 1]
