"""Parameters of private evolution, and what its epsilon means in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ragwitness.defenses.synthetic.private.accounting import (
    epsilon_of,
    group_epsilon,
    variance_for,
)
from ragwitness.errors import InputError

__all__ = ["MOST_ROUNDS", "PrivateConfig"]

MOST_ROUNDS = 50
_MOST_TEXTS = 10_000
_LARGEST_EPSILON = 100.0
_LEAST_DELTA = 1e-20  # sums of doubles say nothing of less
_GROUPS = (2, 5)


@dataclass(frozen=True)
class PrivateConfig:
    """A privacy budget and what is made with it.

    Attributes:
        epsilon: Of the whole output, when one record is added or removed.
        delta: Likewise; a constant, because one that follows from the number of records tells it.
        texts: Texts to make at most.
        rounds: Rounds of votes.
        spread: Candidates per text to make.
        floor: Standard deviations of the noise below which a count says nothing.

    Raises:
        InputError: A value is out of range.
    """

    epsilon: float
    delta: float = 1e-6
    texts: int = 50
    rounds: int = 3
    spread: int = 4
    floor: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a budget that is none, and numbers with which nothing can be made."""
        if not 0 < self.epsilon <= _LARGEST_EPSILON:  # also what is no number
            raise InputError(
                f"epsilon must be above 0 and at most {_LARGEST_EPSILON:g}, not {self.epsilon:g}.",
                "Take --epsilon 1 to begin with; above 10 it promises little.",
            )
        if not _LEAST_DELTA <= self.delta < 1:
            raise InputError(
                f"delta must be at least {_LEAST_DELTA:g} and below 1, not {self.delta:g}.",
                "Take one far below 1 / number of records, e.g. --delta 1e-6.",
            )
        if not 1 <= self.texts <= _MOST_TEXTS or not 1 <= self.rounds <= MOST_ROUNDS:
            raise InputError(
                f"texts must be 1 to {_MOST_TEXTS:,} and rounds 1 to {MOST_ROUNDS}, not"
                f" {self.texts} and {self.rounds}.",
                "Leave out --texts and --rounds for the default.",
            )
        if self.spread < 1 or not 0 <= self.floor < math.inf:
            raise InputError(
                "spread must be at least 1 and floor at least 0, not"
                f" {self.spread} and {self.floor:g}.",
            )

    @property
    def candidates(self) -> int:
        """Candidates in every round."""
        return self.texts * self.spread

    @cached_property
    def variance(self) -> Fraction:
        """Parameter of the noise on every count of every round.

        Raises:
            InputError: The budget is too small for any choice.
        """
        return variance_for(self.epsilon, self.delta, self.rounds)

    @property
    def least(self) -> float:
        """Count up to which a candidate may have no vote at all."""
        return self.floor * math.sqrt(self.variance)

    def describe(self) -> dict[str, str]:
        """Return what the epsilon covers, and all that it rests on, as label and value."""
        budget = f"epsilon {self.epsilon:g}, delta {self.delta:g}"
        replaced = epsilon_of(self.delta, self.variance, 2 * self.rounds)
        groups = ", ".join(
            f"{group_epsilon(self.delta, self.variance, self.rounds, n):.3g} for {n}"
            for n in _GROUPS
        )
        return {
            "privacy": f"{budget}, for one record added or removed",
            "noise": f"discrete Gaussian, sd {math.sqrt(self.variance):.4g}, on each of"
            f" {self.candidates} counts in {self.rounds} rounds; from the operating system,"
            " not from --seed",
            "a record replaced": f"epsilon {replaced:.3g}",
            "records of one person": f"epsilon at most {groups}",
            "covers": "the texts of --out: their words, number, order and ids",
            "does not cover": "the run folder, the report and this screen, which are for the"
            " corpus's owner; another run over the same records: its epsilon adds up",
            "assumes": "that nobody chose or trained the public texts, the model, the embedder or"
            " these settings by the records",
            "conditions": "on form alone: whether a text shares words or secrets with a record is"
            " not looked at, because withholding it would tell of the record",
            "texts": f"at most {self.texts}, with more than {self.least:.4g} noisy votes",
        }
