"""Verdicts: both errors are controlled, and what is not known stays open."""

import numpy as np
import pytest

from ragwitness.core.types import Decision, Document, Score
from ragwitness.membership.verdicts import Judged, judge


def _items(values: list[float | None]) -> list[Judged]:
    return [
        Judged(
            Document(str(i), "text", member=None),
            Score(value, reason=None if value is not None else "too short"),
            value,
            None,
            1,
        )
        for i, value in enumerate(values)
    ]


_OUTSIDE = list(np.linspace(-3, -1, 99))
_INSIDE = list(np.linspace(1, 3, 99))


def test_clear_cases_are_decided() -> None:
    found = judge(_items([5.0, -5.0]), outside=_OUTSIDE, inside=_INSIDE, alpha=0.05)
    assert [v.decision for v in found] == [Decision.IN, Decision.OUT]
    assert found[0].p_value == pytest.approx(0.01)
    assert found[0].q_value == pytest.approx(0.02)


def test_a_score_like_neither_is_inconclusive_with_the_reason() -> None:
    (found,) = judge(_items([0.0]), outside=_OUTSIDE, inside=_INSIDE, alpha=0.05)
    assert found.decision is Decision.INCONCLUSIVE
    assert found.reason == "unlike documents outside, and unlike documents inside"


def test_too_few_known_documents_cannot_accuse() -> None:
    (found,) = judge(_items([9.0]), outside=[0.0] * 18, inside=[], alpha=0.05)
    assert found.decision is Decision.INCONCLUSIVE
    assert "too few" in found.reason
    (found,) = judge(_items([9.0]), outside=[0.0] * 19, inside=[], alpha=0.05)
    assert found.decision is Decision.IN


def test_without_any_known_document_there_is_no_p_value() -> None:
    (found,) = judge(_items([9.0]), outside=[], inside=[], alpha=0.05)
    assert (found.decision, found.p_value) == (Decision.INCONCLUSIVE, None)


def test_unscorable_documents_keep_their_reason_and_take_no_part() -> None:
    with_gap = judge(_items([5.0, None, -5.0]), outside=_OUTSIDE, inside=_INSIDE, alpha=0.05)
    without = judge(_items([5.0, -5.0]), outside=_OUTSIDE, inside=_INSIDE, alpha=0.05)
    assert with_gap[1].reason == "too short"
    assert with_gap[1].score is None
    assert [with_gap[0].q_value, with_gap[2].q_value] == [v.q_value for v in without]


def test_false_discoveries_are_controlled() -> None:
    rng, wrong = np.random.default_rng(3), []
    for _ in range(300):
        outside = rng.normal(0, 1, 200)
        values = np.concatenate([rng.normal(3, 1, 30), rng.normal(0, 1, 70)])
        found = judge(_items(values.tolist()), outside=outside, inside=[], alpha=0.1)
        called = [i for i, v in enumerate(found) if v.decision is Decision.IN]
        wrong.append(sum(i >= 30 for i in called) / max(1, len(called)))
    assert np.mean(wrong) <= 0.1 * 0.7 + 3 * np.std(wrong) / np.sqrt(300)


def test_what_is_left_out_is_rejected_nowhere_and_counts_as_a_test() -> None:
    outside = [i / 100 for i in range(100)]
    found = judge(_items([9.0] * 4), outside=outside, inside=(), alpha=0.05, odd={"0", "1"})
    assert [one.q_value for one in found[:2]] == [1.0, 1.0]
    # 2 of 4 are rejected: 1/101 times 4/2.
    assert [one.q_value for one in found[2:]] == pytest.approx([2 / 101] * 2)
    assert [one.decision for one in found[:2]] == [Decision.INCONCLUSIVE] * 2
