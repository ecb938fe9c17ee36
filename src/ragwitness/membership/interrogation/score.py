"""From outcomes to the score of IA."""

from __future__ import annotations

from collections.abc import Sequence

from ragwitness.membership.questions import Outcome, Question

__all__ = ["accuracy", "balanced_accuracy", "contribution", "score_of"]


def contribution(question: Question, outcome: Outcome, penalty: float) -> float:
    """Return 1(r = g) - lambda * 1(r = unknown) for one readable answer."""
    if outcome is Outcome.UNKNOWN:
        return -penalty
    return float((outcome is Outcome.YES) == question.expected)


def score_of(
    questions: Sequence[Question], outcomes: Sequence[Outcome], penalty: float
) -> float | None:
    """Return the mean contribution of the readable answers (IA: (1/n) sum[1(r=g) - l 1(UNK)]).

    None where fewer than half are readable: what is left would be the target's choice.
    """
    pairs = [(q, o) for q, o in zip(questions, outcomes, strict=True) if o.readable]
    if not pairs or 2 * len(pairs) < len(questions):
        return None
    return sum(contribution(q, o, penalty) for q, o in pairs) / len(pairs)


def accuracy(questions: Sequence[Question], outcomes: Sequence[Outcome]) -> float | None:
    """Return the score without a penalty: the share of readable answers that are right."""
    return score_of(questions, outcomes, 0.0)


def balanced_accuracy(questions: Sequence[Question], outcomes: Sequence[Outcome]) -> float | None:
    """Return the mean of the accuracies on yes and on no; None where one of them is not asked.

    A target that says yes to everything earns one half, however many answers are yes.
    """
    parts = []
    for expected in (True, False):
        own = [
            contribution(q, o, 0.0)
            for q, o in zip(questions, outcomes, strict=True)
            if o.readable and q.expected is expected
        ]
        if not own:
            return None
        parts.append(sum(own) / len(own))
    return sum(parts) / 2
