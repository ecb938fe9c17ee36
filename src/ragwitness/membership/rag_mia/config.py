"""Parameters of RAG-MIA, the paper's beside ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ragwitness.errors import InputError

__all__ = ["TEMPLATES", "Access", "RagMiaConfig"]

Access = Literal["text", "gray"]
"""What is read of an answer: its text, or the log-probabilities of its first word as well."""

TEMPLATES = (
    "Answer with Yes or No. \u201c{s}\u201d Is this part of your context?",
    "Answer with one word. Does this: \u201c{s}\u201d appear in the context?",
    "Does this: \u201c{s}\u201d appear in the context? Answer with Yes or No.",
    "{s} Is this part of your context? Answer with one word.",
    "Does this: \u201c{s}\u201d appear in the context? Answer with one word."
    " Answer No if you are not sure.",
)
"""The paper's five prompts, in its order. MBA (§2) quotes number 2, the best of them."""


@dataclass(frozen=True, slots=True)
class RagMiaConfig:
    """How a document is asked about.

    Attributes:
        template: Number of the prompt, 0 to 4.
        access: ``"text"`` reads yes or no; ``"gray"`` the log-odds of the two, which needs
            log-probabilities.
        max_chars: Longer texts are cut after the last whole word that fits, as the paper cuts
            its e-mails; only what is left is asked about.
        min_words: Shorter documents are unscorable (ours: a word or two stands in any context).
        max_tokens: Room for the answer; a target that does not obey says a few words first.
        top_logprobs: Alternatives asked for in gray access; OpenAI allows 20.
    """

    template: int = 2
    access: Access = "text"
    max_chars: int = 1000
    min_words: int = 8
    max_tokens: int = 16
    top_logprobs: int = 20

    def __post_init__(self) -> None:
        """Refuse values that make no audit."""
        if self.template not in range(len(TEMPLATES)):
            raise InputError(
                f"template must be 0 to {len(TEMPLATES) - 1}, not {self.template!r}.",
                "The five prompts are listed in ragwitness.membership.rag_mia.TEMPLATES.",
            )
        if self.access not in ("text", "gray"):
            raise InputError(f"access must be 'text' or 'gray', not {self.access!r}.")
        for field in ("max_chars", "min_words", "max_tokens", "top_logprobs"):
            if getattr(self, field) < 1:
                raise InputError(f"{field} must be at least 1, not {getattr(self, field)}.")
