"""Parameters of the interrogation, the paper's beside ours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ragwitness.errors import InputError

__all__ = ["InterrogationConfig"]


@dataclass(frozen=True, slots=True)
class InterrogationConfig:
    """How a document is asked about.

    Attributes:
        questions: n; the paper asks 30 and finds 15 to 20 as good.
        penalty: lambda, taken off for each "I don't know"; the paper varies 0 to 7.
        fewest: Documents about which fewer questions can be written are unscorable.
        writer: ``"rules"`` (ours, no model) or ``"chat"``, which has the proxy write as the
            paper has GPT-4o; any other writer is handed to the audit itself.
        request: Closes every query.
        max_tokens: Room for an answer.
        seed: Of the choice and order of questions, together with the document's id.
    """

    questions: int = 30
    penalty: float = 5.0
    fewest: int = 4
    writer: Literal["rules", "chat"] = "rules"
    request: str = "Please answer with 'Yes,' 'No,' or 'I don't know'."
    max_tokens: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse values that make no audit."""
        for field in ("questions", "fewest", "max_tokens"):
            if getattr(self, field) < 1:
                raise InputError(f"{field} must be at least 1, not {getattr(self, field)}.")
        if self.fewest > self.questions:
            raise InputError(
                f"fewest must be at most questions ({self.questions}), not {self.fewest}."
            )
        if not (math.isfinite(self.penalty) and self.penalty >= 0):
            raise InputError(f"penalty must be at least 0, not {self.penalty}.")
        if self.writer not in ("rules", "chat"):
            raise InputError(f"writer must be 'rules' or 'chat', not {self.writer!r}.")
