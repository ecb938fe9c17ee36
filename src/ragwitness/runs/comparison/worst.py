"""Texts held against the records themselves: an upper bound of what any attack gets (A.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragwitness.extraction.score import LeakPlan, measure_leaks
from ragwitness.extraction.transcript import Transcript
from ragwitness.runs.comparison.result import WorstCase
from ragwitness.text.runs import shared_runs
from ragwitness.text.subsequence import SubsequenceIndex
from ragwitness.text.tokens import Vocabulary
from ragwitness.types import Document

__all__ = ["closest_f1", "longest_run", "worst_case"]


def worst_case(
    texts: Sequence[Document], plan: LeakPlan, originals: Mapping[str, str]
) -> WorstCase:
    """Measure texts as if each were an answer.

    Args:
        texts: What is indexed.
        plan: The records and secrets.
        originals: By id: published counts hold a text against its own original alone.
    """
    said = [
        Transcript("texts", "", one.text, (originals[one.id],) if one.id in originals else None)
        for one in texts
    ]
    known = [one.text for one in plan.records]
    shown = [one.text for one in texts]
    return WorstCase(
        len(texts),
        longest_run(shown, known),
        closest_f1(shown, known),
        tuple(measure_leaks(said, plan)),
    )


def longest_run(texts: Sequence[str], records: Sequence[str]) -> int:
    """Return the tokens of the longest run that any text shares with any record.

    Without regard to case. A shared run of n holds one of n - 1, so the length is searched for by
    halving.
    """
    vocabulary = Vocabulary()
    first, second = vocabulary.tokenize(texts), vocabulary.tokenize(records)

    def shared(n: int) -> bool:
        return bool(shared_runs(first, second, n).outputs.any())

    low, high = 0, 1
    while shared(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if shared(middle) else (low, middle)
    return low


def closest_f1(texts: Sequence[str], records: Sequence[str]) -> float:
    """Return the highest ROUGE-L F1 of any text with any record."""
    vocabulary = Vocabulary()
    said, index = vocabulary.tokenize(texts), SubsequenceIndex(vocabulary.tokenize(records))
    best = 0.0
    for place in range(len(said)):
        for pair in index.above_f1(said[place], best):
            best = max(best, pair.f1)
    return best
