"""The votes for what the service answered, and the answers that must get none."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ragwitness.canary.design.families import contains, quotes
from ragwitness.canary.plant.traces import Role, Trace, Vote

__all__ = ["QUOTED", "Feedback", "feedback_for"]

QUOTED = "discarded: the answer quotes a trigger"
"""Why an answer that may tell of a trigger gets no vote."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """What to do with one answer.

    Attributes:
        id: Of its example.
        vote: To give; None gives none.
        reason: Why there is none, or what was seen.
    """

    id: str
    vote: Vote | None
    reason: str


def feedback_for(trace: Trace, answer: str, candidates: Collection[str] = ()) -> Feedback:
    """Return the vote for an answer.

    An answer that quotes a trigger, or six characters of one, gets none and is to be deleted where
    the service allows it: it would tell of the trigger even to whoever trains without documents.

    Args:
        trace: That was sent.
        answer: What came back.
        candidates: Triggers that an answer must not quote, besides the trace's own.
    """
    if quotes(answer, (trace.trigger,)) or quotes(answer, candidates):
        return Feedback(trace.id, None, QUOTED)
    if not answer.strip():
        return Feedback(trace.id, None, "discarded: the answer is empty")
    if trace.role is Role.CLEAN:
        return Feedback(trace.id, None, "clean: vote on its merits")
    if contains(answer, trace.canary):
        return Feedback(trace.id, trace.rule.canary, "the canary is there")
    return Feedback(trace.id, trace.rule.otherwise, "the canary is not there")
