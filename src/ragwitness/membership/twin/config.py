"""Parameters of the twin audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ragwitness.errors import InputError
from ragwitness.membership.srag.config import AUDIT_PROMPT

__all__ = ["CHOICE_PROMPT", "TwinConfig"]

CHOICE_PROMPT = """\
Complete the paragraph based on the [context]. Exactly one of these comes next:
{options}
Answer with that option alone.

{prefix}"""
"""What is asked of a target that shows no log-probabilities."""

_MOST_OPTIONS = 26
_FIELDS = (
    "places",
    "alternatives",
    "fewest_places",
    "fewest_alternatives",
    "pool",
    "max_prefix_words",
    "top_logprobs",
)


@dataclass(frozen=True, slots=True)
class TwinConfig:
    """How a document is compared with its twins.

    Attributes:
        places: Most places asked about, one query each.
        alternatives: m, most alternatives per place.
        access: ``"logprobs"`` ranks the true value by probability, ``"text"`` asks to choose.
        fewest_places: Documents with fewer readable places are unscorable.
        fewest_alternatives: Places with fewer are left out.
        band: Most nats by which an alternative may be more or less probable than the true
            value, in the same place, under the proxy.
        pool: Candidates that the alternatives of a place are chosen from.
        skip_words: Opening words that are never asked about.
        max_prefix_words: Words of the document sent before the value.
        top_logprobs: Alternatives asked for per token; OpenAI allows 20.
        prompt: Asks for the continuation; must hold ``{prefix}``. S-RAG's.
        choice_prompt: Asks to choose; must hold ``{prefix}`` and ``{options}``.
        seed: Of the choice of alternatives and of their order, with the document's id.
    """

    places: int = 8
    alternatives: int = 9
    access: Literal["logprobs", "text"] = "logprobs"
    fewest_places: int = 2
    fewest_alternatives: int = 3
    band: float = 3.0
    pool: int = 32
    skip_words: int = 5
    max_prefix_words: int = 120
    top_logprobs: int = 20
    prompt: str = AUDIT_PROMPT
    choice_prompt: str = CHOICE_PROMPT
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse values that make no audit."""
        for field in _FIELDS:
            if getattr(self, field) < 1:
                raise InputError(f"{field} must be at least 1, not {getattr(self, field)}.")
        if self.fewest_places > self.places:
            raise InputError(
                f"fewest_places must be at most places ({self.places}), not {self.fewest_places}."
            )
        if self.fewest_alternatives > self.alternatives:
            raise InputError(
                f"fewest_alternatives must be at most alternatives ({self.alternatives}),"
                f" not {self.fewest_alternatives}."
            )
        if self.access not in ("logprobs", "text"):
            raise InputError(f"access must be 'logprobs' or 'text', not {self.access!r}.")
        if self.access == "text" and self.alternatives > _MOST_OPTIONS - 1:
            raise InputError(
                f"alternatives must be at most {_MOST_OPTIONS - 1} where they are listed by letter,"
                f" not {self.alternatives}."
            )
        if self.skip_words < 0:
            raise InputError(f"skip_words must be at least 0, not {self.skip_words}.")
        if not self.band > 0:
            raise InputError(f"band must be above 0, not {self.band}.")
        if "{prefix}" not in self.prompt:
            raise InputError("prompt must hold {prefix}.")
        if "{prefix}" not in self.choice_prompt or "{options}" not in self.choice_prompt:
            raise InputError("choice_prompt must hold {prefix} and {options}.")
