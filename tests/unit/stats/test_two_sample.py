"""Sets that are alike are told apart no more often than the level says; others are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

from ragwitness.core.errors import InputError
from ragwitness.stats.p_values import _RIDGE, _aucs, _differences, _out_of_fold, two_sample


def _rows(n: int, columns: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, columns))


def test_out_of_fold_predictions_are_those_of_ridge_regression() -> None:
    x, y = _rows(23, 4, 1), np.random.default_rng(2).random(23)
    folds = np.random.default_rng(3).permutation(23) % 5
    expected = np.empty(23)
    for fold in range(5):
        learnt = folds != fold
        model = Ridge(alpha=_RIDGE).fit(x[learnt], y[learnt])
        expected[~learnt] = model.predict(x[~learnt]) - y[learnt].mean()
    found = _out_of_fold(x @ x.T, np.random.default_rng(3)) @ y
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_the_auc_is_that_of_scikit_learn_ties_included() -> None:
    scores = np.round(_rows(1, 30, 4), 1)
    labels = np.arange(30)[None] < 11
    assert _aucs(scores, labels)[0] == pytest.approx(roc_auc_score(labels[0], scores[0]))


def test_a_difference_is_that_of_the_means_in_standard_deviations() -> None:
    x = _rows(20, 3, 5)
    expected = np.abs(x[:6].mean(axis=0) - x[6:].mean(axis=0)) / x.std(axis=0)
    np.testing.assert_allclose(_differences(np.arange(20)[None] < 6, x)[0], expected)


@pytest.mark.parametrize("first", [1, 3, 12])
def test_alike_sets_are_told_apart_as_often_as_the_level_says(first) -> None:
    found = []
    for seed in range(300):
        x = _rows(36, 6, 100 + seed)
        rng = np.random.default_rng(seed)
        found.append(two_sample(x @ x.T, x, first, rng, rounds=39).p_value)
    wrong = sum(p <= 0.1 for p in found)
    assert wrong <= binom.ppf(0.999, 300, 0.1)


@pytest.mark.parametrize("first", [4, 12, 30])
def test_a_shift_is_seen_and_its_column_named(first) -> None:
    x = _rows(36, 6, 7)
    x[:first, 2] += 4
    found = two_sample(x @ x.T, x, first, np.random.default_rng(0), rounds=199)
    assert found.p_value <= 0.02
    assert found.columns[2] <= 0.02
    assert min(np.delete(found.columns, 2)) > 0.05
    assert np.isnan(found.auc) if first == 4 else found.auc > 0.9


def test_one_row_by_itself_is_unlike_only_where_no_other_lies_as_far_out() -> None:
    x = _rows(120, 6, 8)
    inlier = two_sample(x @ x.T, x, 1, np.random.default_rng(0))
    x[0] = 9
    outlier = two_sample(x @ x.T, x, 1, np.random.default_rng(0))
    assert outlier.least == 1 / 120
    assert outlier.p_value <= 0.02
    assert inlier.p_value > 0.01


def test_classes_that_differ_in_no_single_column_are_told_apart_by_the_classifier() -> None:
    rng = np.random.default_rng(9)
    x = rng.standard_normal((160, 60))
    x[:80] += 0.25  # a little in each column
    found = two_sample(x @ x.T / 60, x, 80, rng)
    assert found.p_value <= 0.01
    assert found.columns.min() > 0.01


def test_few_rows_say_how_little_they_can_show() -> None:
    x = _rows(6, 2, 10)
    assert two_sample(x @ x.T, x, 2, np.random.default_rng(0)).least == pytest.approx(1 / 15)
    with pytest.raises(InputError, match="neither is empty"):
        two_sample(x @ x.T, x, 6, np.random.default_rng(0))
