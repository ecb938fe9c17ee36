"""Blind spots of an audit at a target: warnings that come first in its result."""

from __future__ import annotations

from collections.abc import Sequence

from ragwitness.core.types import Audit
from ragwitness.runner.worker import Outcome

_FEWEST = 3  # documents; fewer are alike by chance


def blind_spots(
    audit: Audit,
    outcomes: Sequence[Outcome],
    inside: Sequence[Outcome],
    outside: Sequence[Outcome],
) -> list[str]:
    """Return a warning for each sign that the method tells nothing at this target.

    Args:
        audit: The method.
        outcomes: Of all documents.
        inside: Of those known to be inside.
        outside: Of those known to be outside.
    """
    warnings = []
    # 1. Documents inside are a control: retrieval must find them, and the method must see them.
    marks = [o.score.value for o in inside if o.score.value is not None]
    bar = max((o.score.value for o in outside if o.score.value is not None), default=0.0)
    if inside and not any(value > bar for value in marks):
        warnings.append(
            f"None of {len(inside)} documents known to be inside gave a sign, so documents without"
            f" a sign may be inside too. Retrieval may not find them by such questions. {_OTHER}"
        )
    # 2. Every answer of one kind.
    details = [o.score.details for o in outcomes]
    questions = sum(row.get("asked", row.get("declined", 0.0)) for row in details)
    if questions >= _FEWEST and questions == sum(row.get("declined", 0.0) for row in details):
        warnings.append(
            f"All {questions:.0f} answers declined: {audit.name} sees nothing here. {_OTHER}"
        )
    elif len(details) >= _FEWEST and all(row.get("said again") == 0 for row in details):
        warnings.append(
            "No answer repeated any words of its question, so answers that go on with a text"
            f" cannot be seen. {_OTHER}"
        )
    # 3. Nothing differs.
    scores = [o.score.value for o in outcomes if o.score.value is not None]
    if len(scores) >= _FEWEST and len(set(scores)) == 1:
        warnings.append(
            f"All {len(scores)} documents have the same score: {audit.name} tells nothing apart at"
            f" this target. {_OTHER}"
        )
    return warnings


_OTHER = "Another --method may see more: joint, mba, rag-mia or runon."
