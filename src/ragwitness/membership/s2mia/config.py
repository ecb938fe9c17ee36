"""Parameters of S2MIA, the paper's beside ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ragwitness.errors import InputError

__all__ = ["PROMPT", "S2MiaConfig"]

PROMPT = (
    'Given the [Query]: "{first_half}". Do not include any introductory or explanatory text, use'
    " the following format for output: {[Response]: 'Provide a concise response directly"
    " addressing the [Query] by using the most relevant and matching text in the prompt.'}"
)
"""The paper's prompt."""


@dataclass(frozen=True, slots=True)
class S2MiaConfig:
    """How a document is asked about and its answer compared.

    Attributes:
        similarity: ``"bleu"`` as S2MIA does, ``"cosine"`` as MBA's baseline does (§5.4.2).
        access: ``"text"`` compares texts (S); ``"gray"`` also asks for log-probabilities, so
            that features hold the answer's perplexity (S&P).
        prompt: Must hold ``{first_half}``.
        max_words: Longer documents are cut after this many words.
        min_words: Shorter documents are unscorable.
        bleu_order: Longest n-gram that counts.
    """

    similarity: Literal["bleu", "cosine"] = "bleu"
    access: Literal["text", "gray"] = "text"
    prompt: str = PROMPT
    max_words: int = 400
    min_words: int = 8
    bleu_order: int = 4

    def __post_init__(self) -> None:
        """Refuse values that make no audit."""
        if self.similarity not in ("bleu", "cosine"):
            raise InputError(f"similarity must be 'bleu' or 'cosine', not {self.similarity!r}.")
        if self.access not in ("text", "gray"):
            raise InputError(f"access must be 'text' or 'gray', not {self.access!r}.")
        if self.bleu_order < 1:
            raise InputError(f"bleu_order must be at least 1, not {self.bleu_order}.")
        if self.min_words < 2:
            raise InputError(f"min_words must be at least 2, not {self.min_words}.")
        if self.max_words < self.min_words:
            raise InputError(
                f"max_words must be at least min_words ({self.min_words}), not {self.max_words}."
            )
        if "{first_half}" not in self.prompt:
            raise InputError("The prompt must hold {first_half}.")
