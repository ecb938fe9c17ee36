"""Parameters of DCMI, the paper's beside ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ragwitness.errors import InputError

__all__ = ["PERTURB_PROMPT", "PROMPT", "DcmiConfig"]

PROMPT = 'Is this: "{doc}" right? Answer with Yes or No.'
"""The paper's question, asked of the document and of its copy."""

PERTURB_PROMPT = (
    "Replace {n} key adjectives or adverbs in noticeable positions with their antonyms. The text"
    " must still read well, and everything else must stay as it is. Return only the modified"
    " text.\n\n{doc}"
)
"""What a model is told to make the copy by; the paper's instruction as far as it is known."""


@dataclass(frozen=True, slots=True)
class DcmiConfig:
    """How the copy is made and both are asked about.

    Attributes:
        access: ``"text"`` reads yes or no; ``"gray"`` the log-odds of the two, which needs
            log-probabilities.
        share: Share of the words to be turned round. The paper is said to use 6 %, its code 3 %.
        most: Upper limit of words turned round; at least one always is.
        perturb: ``"table"`` looks antonyms up in a table of ours; ``"llm"`` asks the proxy
            model, as the paper does, and falls back on the table.
        prompt: Must hold ``{doc}``.
        max_words: Longer documents are cut after this many words.
        min_words: Shorter documents are unscorable.
        max_tokens: Room for each answer.
        top_logprobs: Alternatives asked for in gray access.
        seed: With the document's id, of the choice of words.
    """

    access: Literal["text", "gray"] = "text"
    share: float = 0.06
    most: int = 10
    perturb: Literal["table", "llm"] = "table"
    prompt: str = PROMPT
    max_words: int = 300
    min_words: int = 8
    max_tokens: int = 16
    top_logprobs: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse values that make no audit."""
        if self.access not in ("text", "gray"):
            raise InputError(f"access must be 'text' or 'gray', not {self.access!r}.")
        if self.perturb not in ("table", "llm"):
            raise InputError(f"perturb must be 'table' or 'llm', not {self.perturb!r}.")
        if not 0.0 < self.share <= 1.0:
            raise InputError(f"share must be above 0 and at most 1, not {self.share}.")
        for field in ("most", "min_words", "max_tokens", "top_logprobs"):
            if getattr(self, field) < 1:
                raise InputError(f"{field} must be at least 1, not {getattr(self, field)}.")
        if self.max_words < self.min_words:
            raise InputError(
                f"max_words must be at least min_words ({self.min_words}), not {self.max_words}."
            )
        if "{doc}" not in self.prompt:
            raise InputError("The prompt must hold {doc}.")
