"""Parameters of MEntA, the paper's beside ours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ragwitness.errors import InputError

__all__ = ["MentaConfig"]


@dataclass(frozen=True, slots=True)
class MentaConfig:
    """How a document is asked about, and how answers are judged.

    Attributes:
        questions: The paper asks 5.
        penalty: lambda, taken off for each "I don't know"; the paper has 1.
        against: ``"answer"``: does what the target says entail the expected answer;
            ``"document"``: does the document entail one of the sentences it says.
        threshold: Entailment from which a claim counts as entailed; one half stands for "the
            top class" of a three-way model.
        nli: ``""`` for the embedded stand-in, else the hub name or folder of an NLI model
            (the paper's: ``tasksource/deberta-base-long-nli``).
        writer: ``"rules"`` (ours, no model) or ``"chat"``, which has the proxy write.
        max_tokens: Room for an answer.
        seed: Of the choice and order of questions, together with the document's id.
    """

    questions: int = 5
    penalty: float = 1.0
    against: Literal["answer", "document"] = "answer"
    threshold: float = 0.5
    nli: str = ""
    writer: Literal["rules", "chat"] = "rules"
    max_tokens: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse values that make no audit."""
        for field in ("questions", "max_tokens"):
            if getattr(self, field) < 1:
                raise InputError(f"{field} must be at least 1, not {getattr(self, field)}.")
        if not (math.isfinite(self.penalty) and self.penalty >= 0):
            raise InputError(f"penalty must be at least 0, not {self.penalty}.")
        if not 0 < self.threshold <= 1:
            raise InputError(f"threshold must lie in (0, 1], not {self.threshold}.")
        if self.against not in ("answer", "document"):
            raise InputError(f"against must be 'answer' or 'document', not {self.against!r}.")
        if self.writer not in ("rules", "chat"):
            raise InputError(f"writer must be 'rules' or 'chat', not {self.writer!r}.")
