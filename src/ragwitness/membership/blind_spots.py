"""Blind spots of an audit at a target: warnings that come first in its result."""

from __future__ import annotations

from collections.abc import Sequence

from ragwitness.core.types import Audit
from ragwitness.runner.worker import Outcome

_METHODS = ("joint", "mba", "rag-mia", "runon")
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
    bar = max(_values(outside), default=0.0)
    if inside and max(_values(inside), default=bar) <= bar:
        warnings.append(
            f"None of {len(inside)} documents known to be inside gave a sign, so documents without"
            " a sign may be inside too. Retrieval may not find them by such questions."
        )
    # 2. Every answer of one kind.
    details = [o.score.details for o in outcomes]
    questions = sum(row.get("asked", row.get("declined", 0.0)) for row in details)
    if questions >= _FEWEST and questions == sum(row.get("declined", 0.0) for row in details):
        warnings.append(f"All {questions:.0f} answers declined: {audit.name} sees nothing here.")
    elif len(details) >= _FEWEST and all(row.get("said again") == 0 for row in details):
        warnings.append(
            "No answer repeated any words of its question, so answers that go on with a text"
            " cannot be seen."
        )
    # 3. Nothing differs.
    scores = _values(outcomes)
    if len(scores) >= _FEWEST and len(set(scores)) == 1:
        warnings.append(
            f"{audit.name} saw the same in all {len(scores)} documents: some may be inside and look"
            " like the others."
        )
    others = ", ".join(name for name in _METHODS if name != audit.name)
    return [f"{warning} Another --method may see more: {others}." for warning in warnings]


def _values(outcomes: Sequence[Outcome]) -> list[float]:
    return [o.score.value for o in outcomes if o.score.value is not None]
