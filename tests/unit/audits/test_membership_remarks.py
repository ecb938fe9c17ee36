"""What a report says of samples that never differ."""

from __future__ import annotations

import pytest

from ragwitness.asking.worker import Outcome
from ragwitness.audits.membership import unvaried, words_read
from ragwitness.types import Document, Score

_WORDS = {"probes": 10.0, "unread": 1.0, "censored": 2.0}


def _outcomes(*alike: float | None) -> list[Outcome]:
    details = [_WORDS | ({} if a is None else {"samples": 20.0, "alike": a}) for a in alike]
    return [
        Outcome(Document(str(i), "text"), Score(1.0, details=d), 20, 20)
        for i, d in enumerate(details)
    ]


@pytest.mark.parametrize(
    ("alike", "warns", "counted"),
    [
        ((1.0, 1.0), True, "of 2 of 2 documents"),
        ((1.0, 0.0), False, "of 1 of 2 documents"),
        ((0.0, 0.0), False, None),
        ((None, None), False, None),
        ((), False, None),
    ],
)
def test_samples_that_never_differ_are_named(alike, warns: bool, counted: str | None) -> None:
    outcomes = _outcomes(*alike)
    assert bool(unvaried(outcomes)) == warns
    said = words_read(outcomes).get("samples that never differed")
    assert said is None if counted is None else said.startswith(counted)


def test_documents_without_a_score_are_no_samples() -> None:
    lost = Outcome(Document("a", "text"), Score(None, reason="lost"), 20, 20)
    assert unvaried([lost]) == []
