"""What a report says of samples that never differ."""

from __future__ import annotations

import pytest

from ragwitness.asking.worker import Outcome
from ragwitness.audits.membership import asked_apart, unvaried, words_read
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


def _kept(n: int, new: int) -> list[Outcome]:
    return [Outcome(Document(str(i), "text"), Score(1.0), 2, 2 * (i >= n)) for i in range(n + new)]


@pytest.mark.parametrize(
    ("mine", "known", "apart"),
    [
        ((0, 20), (0, 50), False),
        ((20, 0), (50, 0), False),
        ((11, 9), (24, 26), False),  # as an interruption leaves them
        ((0, 20), (50, 0), True),  # other documents in the folder of a finished run
        ((20, 0), (25, 25), True),  # more known-out documents
        ((0, 1), (60, 0), True),
        ((0, 0), (60, 0), False),
    ],
)
def test_kinds_that_were_asked_at_other_times_are_noticed(mine, known, apart: bool) -> None:
    assert asked_apart(_kept(*mine), _kept(*known)) == apart
