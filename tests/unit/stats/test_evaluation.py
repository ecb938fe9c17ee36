"""ROC statistics and intervals against scikit-learn, SciPy and simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, norm
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.metrics import roc_curve as sklearn_roc

from ragwitness.core.errors import InputError
from ragwitness.stats.evaluation import (
    auc,
    auc_interval,
    bootstrap_interval,
    evaluate,
    roc_curve,
    tpr_at_fpr,
)
from ragwitness.stats.rates import mean_rate, proportion_interval

_CASES = st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=4, max_size=60).filter(
    lambda rows: len({label for _, label in rows}) == 2
)


def _arrays(rows):
    return np.array([s for s, _ in rows], float), np.array([label for _, label in rows])


@given(_CASES)
def test_auc_agrees_with_scikit_learn(rows) -> None:
    scores, labels = _arrays(rows)
    assert auc(scores, labels) == pytest.approx(roc_auc_score(labels, scores))


@given(_CASES)
def test_roc_corners_agree_with_scikit_learn(rows) -> None:
    scores, labels = _arrays(rows)
    false, true, _ = sklearn_roc(labels, scores, drop_intermediate=False)
    assert np.array(roc_curve(scores, labels)) == pytest.approx(np.column_stack([false, true]))


def test_tpr_at_fpr_never_interpolates() -> None:
    scores = np.array([4.0, 3.0, 2.0, 1.0])
    labels = np.array([True, False, True, False])
    assert tpr_at_fpr(scores, labels, 0.49) == 0.5
    assert tpr_at_fpr(scores, labels, 0.5) == 1.0


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_proportion_interval_agrees_with_scipy(case) -> None:
    hits, n = case
    exact = binomtest(hits, n).proportion_ci(0.95, "exact")
    assert proportion_interval(hits, n) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_auc_interval_covers_the_truth() -> None:
    rng, shift = np.random.default_rng(1), 1.5
    truth = norm.cdf(shift / np.sqrt(2))
    labels = np.repeat([True, False], 60)
    covered = 0
    for _ in range(400):
        low, high = auc_interval(rng.normal(labels * shift, 1.0), labels)
        covered += low <= truth <= high
    assert covered / 400 >= 0.92


def test_perfect_separation_is_not_certainty() -> None:
    low, high = auc_interval(
        np.array([2.0] * 50 + [1.0] * 50), np.array([True] * 50 + [False] * 50)
    )
    assert high == 1.0
    assert low == pytest.approx(proportion_interval(50, 50)[0])


def test_one_document_of_a_kind_says_nothing_of_the_auc() -> None:
    for labels in ([True, False, False], [False, True, True]):
        assert auc_interval(np.array([3.0, 2.0, 1.0]), np.array(labels)) == (0.0, 1.0)
    low, _ = auc_interval(np.array([4.0, 3.0, 2.0, 1.0]), np.array([True, True, False, False]))
    assert low > 0.0


def test_evaluate_reports_every_rate_with_its_n() -> None:
    rng = np.random.default_rng(2)
    labels = np.repeat([True, False], [30, 50])
    scores = rng.normal(labels * 2.0, 1.0)
    decisions, p_values = scores > 1.0, 1 - norm.cdf(scores)
    found = evaluate(scores, labels, decisions=decisions, p_values=p_values, alpha=0.05)
    assert found.f1.value == pytest.approx(f1_score(labels, decisions))
    assert found.accuracy.value == pytest.approx(np.mean(decisions == labels))
    assert (found.false_positives.n, found.true_positives.n) == (50, 30)
    assert found.false_positives.value == np.mean(p_values[~labels] <= 0.05)
    for rate in (found.auc, found.accuracy, found.f1, found.tpr_at_1_fpr):
        assert rate.low <= rate.value <= rate.high


def test_one_kind_of_document_is_refused() -> None:
    with pytest.raises(InputError, match="at least one member"):
        evaluate([1.0], [True], decisions=[True], p_values=[0.1], alpha=0.05)


def test_impossible_proportion_is_refused() -> None:
    with pytest.raises(InputError, match="3 of 2"):
        proportion_interval(3, 2)


@pytest.mark.parametrize("n", [1, 7, 250, 3001])
def test_the_interval_of_a_mean_is_the_bootstraps_to_the_last_bit(n: int) -> None:
    values = np.random.default_rng(n).random(n)
    everyone = np.ones(n, np.bool_)
    slowly = bootstrap_interval(lambda picked: float(values[picked].mean()), everyone, seed=n)
    rate = mean_rate(values, n)
    assert n == 1 or (rate.low, rate.high) == slowly


def test_equal_values_are_not_certain() -> None:
    found = mean_rate(np.zeros(10))
    assert (found.value, found.n) == (0.0, 10)
    assert (-found.low, found.high) == (proportion_interval(0, 10)[1],) * 2
    assert mean_rate(np.zeros(10), least=0.0).low == 0.0
