"""What a report says of words that were read, and of documents asked apart."""

from __future__ import annotations

import pytest

from ragwitness.core.types import Document, Score
from ragwitness.membership.run import confounded_by_time, words_read
from ragwitness.runner.worker import Outcome


def _outcomes(*details: dict[str, float]) -> list[Outcome]:
    return [Outcome(Document("d", "text"), Score(1.0, details=one), 1, 1) for one in details]


def test_words_that_were_read_are_counted() -> None:
    words = {"probes": 10.0, "unread": 1.0, "censored": 2.0}
    assert words_read(_outcomes(words, words)) == {
        "probe words read": "18 of 20, 4 of them only as a bound"
    }
    again = [{"said again": 2.0}, {"said again": 0.0}]
    assert words_read(_outcomes(*again)) == {"documents whose words were said again": "1 of 2"}
    assert words_read(_outcomes({})) == words_read([]) == {}


def _asked(**documents: int) -> list[Outcome]:
    """So many documents of each start; ``a1`` and ``a2`` asked about the same ones."""
    starts = [f"{start[:-1]} {start[-1]}" for start, n in documents.items() for _ in range(n)]
    texts = [Document(str(i), "text") for i in range(len(starts))]
    return [Outcome(d, Score(1.0), 2, 0, starts=(s,)) for d, s in zip(texts, starts, strict=True)]


@pytest.mark.parametrize(
    ("mine", "known", "apart"),
    [
        ({"a1": 20}, {"a1": 100}, False),
        ({"a1": 11, "a2": 9}, {"a1": 48, "a2": 52}, False),  # as an interruption leaves them
        ({"a1": 19, "a2": 1}, {"a1": 97, "a2": 3}, False),
        ({"a1": 1}, {"a1": 3, "a2": 97}, True),  # so few beside it are no comparison
        ({"a1": 1}, {"a1": 30, "a2": 70}, False),
        ({"a1": 4, "a2": 1}, {"a1": 100}, True),
        ({"b1": 20}, {"a1": 100}, True),  # other documents in the folder of a finished run
        ({"a1": 20}, {"a1": 50, "b1": 50}, True),  # more known-out documents
        ({"a1": 4, "b1": 1}, {"a1": 1000}, True),  # one more in question
        ({}, {"a1": 60}, False),
        ({"in turn a1": 20}, {"in turn a1": 100}, True),
    ],
)
def test_kinds_that_were_asked_at_other_times_are_noticed(mine, known, apart: bool) -> None:
    assert confounded_by_time(0.05, _asked(**mine), _asked(**known)) == apart
