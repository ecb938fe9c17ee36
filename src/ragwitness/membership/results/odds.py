"""The absolute scale of an audit, as results store and word it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ragwitness.report import formatting as fmt

FEWEST_KNOWN = 10
"""Known-outside documents from which on the mean pay is tested."""


@dataclass(frozen=True, slots=True)
class OddsScale:
    """Bets on words that were never sent, at the guesses of reference models.

    Attributes:
        models: Names of the reference models; the largest guess counts.
        alpha: Level of the verdicts by e-values.
        guesses: Nats of each word of each won bet, in the order of the documents: known outside,
            then in question.
        known: Known-outside documents whose bets test the assumption.
        mean_pay: Their mean pay for a stake of 1; None without any.
        against: Evidence that their mean pay is above 1, itself an e-value.
        needs_test: Whether the method needs this test.
    """

    models: tuple[str, ...]
    alpha: float
    guesses: tuple[tuple[float, ...], ...]
    known: int = 0
    mean_pay: float | None = None
    against: float = 1.0
    needs_test: bool = False

    @property
    def refused(self) -> bool:
        """Whether nothing rests on e-values."""
        return self.against >= 1 / self.alpha or (self.needs_test and self.known < FEWEST_KNOWN)

    @property
    def refusal(self) -> str:
        """Why nothing rests on e-values, in one sentence."""
        if self.against >= 1 / self.alpha:
            return (
                f"E-values decide nothing: this target says such words without the document, too"
                f" (bets on {fmt.documents(self.known)} known to be outside paid"
                f" {self.mean_pay or 0.0:.2f} for a stake of 1)."
            )
        return (
            "E-values decide nothing: this method shows the text around each word, which a strong"
            f" target may guess. Give {FEWEST_KNOWN} documents known to be outside, of any kind"
            " (--known-out); or use --method runon."
        )

    @property
    def basis(self) -> str:
        """The basis of e-values in a few words."""
        tested = (
            f"tested on {fmt.documents(self.known)}" if self.known >= FEWEST_KNOWN else "untested"
        )
        return f"e-values by the guesses of {' and '.join(self.models)}, {tested}"

    @property
    def summary(self) -> str:
        """The assumption and how it was tested, in one sentence or two."""
        start = (
            "E-values hold if a system without a document says its next words no more often than"
            f" {' and '.join(self.models)} guess."
        )
        if self.known < FEWEST_KNOWN:
            tested = (
                f"Not tested: {fmt.documents(self.known)} known to be outside, and"
                f" {FEWEST_KNOWN} of any kind are needed."
            )
        else:
            tested = (
                f"Tested on {fmt.documents(self.known)} known to be outside: bets paid"
                f" {self.mean_pay or 0.0:.2f} for a stake of 1."
            )
        return f"{start} {tested}"


_BILLION = 1e9  # rarer words are as good as never guessed


def rarity(nats: float) -> str:
    """Return in words how rarely words of this many nats are guessed."""
    times = math.exp(min(nats, 60.0))
    if times > _BILLION:
        return "less than once in a billion times"
    if times >= 1e6:
        return f"once in {fmt.count(round(times / 1e6))} million times"
    return f"once in {fmt.count(round(times))} times"
