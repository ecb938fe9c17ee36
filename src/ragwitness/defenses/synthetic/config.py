"""Parameters of every method that asks a model."""

from __future__ import annotations

from dataclasses import dataclass, field

from ragwitness.defenses.synthetic.asking import Asking
from ragwitness.defenses.synthetic.domains import DOMAINS, Domain
from ragwitness.errors import InputError

__all__ = ["MakingConfig"]


@dataclass(frozen=True, slots=True)
class MakingConfig:
    """How a text is made.

    Attributes:
        domain: What the records are.
        asking: How the model is asked.
        rounds: Most versions of a text. SAGE has each judged and all but the last rewritten; 0
            is its stage 1 alone, where our conditions decide. Other methods make a new version
            where one breaks a condition.
        shots: Records that the attributes are identified from, as published 5.
        longest: Most characters of a record.

    Raises:
        InputError: A number is out of range.
    """

    domain: Domain = DOMAINS["auto"]
    asking: Asking = field(default_factory=Asking)
    rounds: int = 3
    shots: int = 5
    longest: int = 20_000

    def __post_init__(self) -> None:
        """Refuse numbers with which nothing can be made."""
        if self.rounds < 0 or self.shots < 1 or self.longest < 1:
            raise InputError(
                f"rounds must be at least 0, shots and longest at least 1, not {self.rounds},"
                f" {self.shots} and {self.longest}.",
                "The default is --rounds 3.",
            )

    def describe(self) -> dict[str, str]:
        """Return every setting as label and value."""
        how = self.asking
        return {
            "domain": self.domain.name,
            "rounds": str(self.rounds),
            "answers": f"{how.max_tokens} tokens, temperature {how.temperature:g},"
            f" {how.attempts} attempts, seed {how.seed}",
            "longest record": f"{self.longest:,} characters",
        }
