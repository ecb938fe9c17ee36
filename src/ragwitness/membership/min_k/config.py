"""Parameters of Min-K% and Min-K%++."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ragwitness.errors import InputError
from ragwitness.membership.srag.config import AUDIT_PROMPT

__all__ = ["MinKConfig"]


@dataclass(frozen=True, slots=True)
class MinKConfig:
    """How a document is asked about and its answer read.

    Attributes:
        variant: ``"min-k"`` averages log-probabilities, ``"min-k++"`` standardises them first.
        k: Per cent of the answer's tokens that are read, the least probable ones. MBA (§5.4.2)
            tries 1 to 20 and reports the best on its test set; here k is fixed beforehand.
        prompt: Must hold ``{prefix}``; S-RAG's, since the method has none for RAG.
        max_words: Longer documents are cut after this many words.
        min_words: Shorter documents are unscorable.
        min_tokens: An answer of fewer tokens is unscorable.
        top_logprobs: Alternatives asked for per token; OpenAI allows 20.
    """

    variant: Literal["min-k", "min-k++"] = "min-k"
    k: float = 20.0
    prompt: str = AUDIT_PROMPT
    max_words: int = 400
    min_words: int = 8
    min_tokens: int = 3
    top_logprobs: int = 20

    def __post_init__(self) -> None:
        """Refuse values that make no audit."""
        if self.variant not in ("min-k", "min-k++"):
            raise InputError(f"variant must be 'min-k' or 'min-k++', not {self.variant!r}.")
        if not 0.0 < self.k <= 100.0:
            raise InputError(f"k is a percentage above 0 and at most 100, not {self.k}.")
        for field in ("min_tokens", "top_logprobs"):
            if getattr(self, field) < 1:
                raise InputError(f"{field} must be at least 1, not {getattr(self, field)}.")
        if self.min_words < 2:
            raise InputError(f"min_words must be at least 2, not {self.min_words}.")
        if self.max_words < self.min_words:
            raise InputError(
                f"max_words must be at least min_words ({self.min_words}), not {self.max_words}."
            )
        if "{prefix}" not in self.prompt:
            raise InputError("The prompt must hold {prefix}.")
