"""The audit classifier is trained on shadow data alone and gives probabilities."""

import math

import numpy as np
import pytest

from ragwitness.core.errors import InputError, MissingExtraError
from ragwitness.core.types import Document
from ragwitness.membership import shadow
from ragwitness.membership.shadow import (
    AuditClassifier,
    ShadowConfig,
    split_auxiliary,
    train_classifier,
)


def _shadow(n: int, shift: float, seed: int = 0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2 == 0
    return rng.normal(labels[:, None] * shift, 1.0, (n, 4)), labels


def _small_forests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow, "_TREES", 30)


@pytest.mark.slow
def test_separable_shadow_data_is_learned() -> None:
    features, labels = _shadow(60, 3.0)
    fresh, truth = _shadow(200, 3.0, seed=1)
    p = train_classifier(features, labels).member_probability(fresh)
    assert np.mean((p > 0.5) == truth) > 0.9
    assert ((p >= 0) & (p <= 1)).all()


def test_training_is_deterministic(monkeypatch: pytest.MonkeyPatch) -> None:
    _small_forests(monkeypatch)
    features, labels = _shadow(60, 1.0)
    fresh, _ = _shadow(20, 1.0, seed=2)
    one, two = (train_classifier(features, labels) for _ in range(2))
    assert one.name == two.name
    assert one.member_probability(fresh).tolist() == two.member_probability(fresh).tolist()


def test_one_odd_document_convinces_no_leaf_alone() -> None:
    """A leaf holds three documents, so that one of the other kind is a third of it at most.

    A tree draws it with probability 1 - 1/e, so the forest gives it 1 - (1 - 1/e) / 3.
    """
    features = [[float(n)] for n in (*range(-12, 0), *range(1, 13))]
    members = [n > 0 and n != 7 for (n,) in features]
    [p] = train_classifier(features, members).member_probability([[7.0]])
    assert p == pytest.approx(1 - (1 - math.exp(-1)) / 3, abs=0.035)


def test_too_few_shadow_documents_are_refused() -> None:
    features, labels = _shadow(8, 1.0)
    with pytest.raises(InputError, match="only 4 scorable"):
        train_classifier(features, labels)


def test_five_documents_of_each_kind_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    _small_forests(monkeypatch)
    p = train_classifier(*_shadow(10, 1.0)).member_probability([[0.0] * 4, [9.0] * 4])
    assert ((p >= 0) & (p <= 1)).all()


def test_half_of_the_outside_documents_is_spare_but_ten_are_probed() -> None:
    documents = [Document(str(n), f"text {n}") for n in range(60)]
    for auxiliary, probed in ((20, 10), (30, 10), (60, 15)):
        split = split_auxiliary(documents[:auxiliary], ShadowConfig())
        assert len(split.outside) == probed
        assert len(split.spare) == auxiliary // 2 - probed
    assert len(split_auxiliary(documents, ShadowConfig(audited=12)).outside) == 12


def test_autogluon_names_its_extra_where_it_is_missing() -> None:
    try:
        import autogluon.tabular  # noqa: F401
    except ImportError:
        features, labels = _shadow(20, 1.0)
        with pytest.raises(MissingExtraError, match=r"ragwitness\[automl\]"):
            train_classifier(features, labels, automl=True)
    else:
        pytest.skip("AutoGluon is installed")


def test_the_classifier_says_what_stands_for_autogluon(monkeypatch: pytest.MonkeyPatch) -> None:
    _small_forests(monkeypatch)
    monkeypatch.setattr(shadow, "find_spec", lambda name: None)
    found = train_classifier(*_shadow(60, 1.0))
    assert found.name.startswith("random forest")
    assert found.name.endswith("AutoGluon is not installed")


def test_the_classifier_is_autogluon_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = AuditClassifier("AutoGluon", None)
    monkeypatch.setattr(shadow, "find_spec", lambda name: object())
    monkeypatch.setattr(shadow, "train_autogluon", lambda features, members: made)
    assert train_classifier(*_shadow(20, 1.0)) is made
