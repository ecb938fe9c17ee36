"""Assumptions behind a verdict, as results keep and word them."""

from __future__ import annotations

from dataclasses import dataclass

from ragwitness.report import formatting as fmt
from ragwitness.stats.p_values import documents_needed
from ragwitness.stats.power import needed_together

FEW = 5
"""Documents in question; with fewer a difference in kind is rarely noticed."""
LEVEL = 0.01
"""Share of alike sets that are called unlike; measured in experiments/false-positives."""
ODD = 0.02
"""Share of documents like the known ones that are called unlike them, each by itself."""


@dataclass(frozen=True, slots=True)
class SetLikeness:
    """Comparison of two sets of texts; it asks no target.

    Attributes:
        documents: Documents in question that were compared.
        known: Calibration documents that were compared.
        p_value: That the sets are draws of one source (classifier and named features).
        least: The least p-value that is possible with these numbers of documents.
        auc: Of a classifier that reads texts alone, out of fold; None with too few documents.
        differences: The largest differences, in words, the largest first.
    """

    documents: int
    known: int
    p_value: float
    least: float
    auc: float | None = None
    differences: tuple[str, ...] = ()

    @property
    def unlike(self) -> bool:
        """Whether the sets differ."""
        return self.p_value <= LEVEL

    @property
    def tested(self) -> bool:
        """Whether there are enough documents for a difference in kind to be noticed."""
        return self.least <= LEVEL and self.documents >= FEW

    @property
    def told(self) -> str:
        """The comparison in one sentence."""
        # Every sentence names the numbers.
        sets = f"{self.known} calibration documents and {self.documents} in question"
        by = "" if self.auc is None else f", AUC {self.auc:.2f} of a classifier that reads texts"
        test = f"(p = {self.p_value:.2g}{by}; {sets})"
        if self.unlike:
            how = "; ".join(self.differences) or "in their words taken together"
            return f"the calibration documents differ from yours: {how} {test}."
        if self.least > LEVEL:
            return f"not tested: so few documents cannot be tested for likeness ({sets})."
        if self.documents < FEW:
            return f"hardly tested: texts are not told apart, but so few can hardly show it {test}."
        return f"texts and lengths do not tell them apart at {LEVEL:.0%} {test}."


@dataclass(frozen=True, slots=True)
class VerdictReach:
    """The decisions that the number of calibration documents allows.

    Attributes:
        alpha: Level after correction.
        documents: Asked about.
        known: Calibration documents.
        inside_share: Probability that a document asked about is inside.
    """

    alpha: float
    documents: int
    known: int
    inside_share: float = 0.5

    @property
    def together(self) -> int | None:
        """Fewest documents that must be called in together; None where none can be."""
        return needed_together(self.alpha, self.documents, self.known)

    @property
    def hardly(self) -> bool:
        """Whether more documents would have to be called in together than are expected inside."""
        few = max(1.0, self.documents * self.inside_share)
        return self.together is None or self.together > few

    @property
    def told(self) -> str:
        """The same in one sentence or two."""
        # Conformal p-values stop at 1 / (n + 1), and Benjamini-Hochberg then calls nothing in
        # unless enough documents are at that end together.
        calibrating, documents, level = (
            fmt.count(self.known),
            fmt.count(self.documents),
            f"{self.alpha:g}",
        )
        least, needed = f"{1 / (self.known + 1):.3g}", f"{self.alpha / self.documents:.3g}"
        alone = fmt.count(documents_needed(self.alpha, self.documents))
        more = f" It takes {alone} known-out documents to call in one by itself."
        many = "documents" if self.documents > 1 else "document"
        start = f"With {calibrating} known-out documents and {documents} {many} asked about,"
        how = f"can be called in at alpha {level} (smallest p-value {least}, needed"
        # Too few known documents: not even all together could be called in.
        if self.together is None:
            fewest = fmt.count(documents_needed(self.alpha))
            also = more * (self.documents > 1)
            return (
                f"{start} no document {how} {level}): it takes at least {fewest} known-out"
                f" documents.{also}"
            )
        # One document can be called in by itself.
        if self.together == 1:
            return f"{start} a single document {how} {needed})."
        # Several must be called in together.
        inside = self.documents * self.inside_share
        few = f"; some {inside:.3g} are expected inside" if self.together > inside else ""
        only = f"only {fmt.count(self.together)} or more together{few}."
        return f"{start} no single document {how} {needed}): {only}{more}"


@dataclass(frozen=True, slots=True)
class VerdictPower:
    """The least p-values of a finished audit, equal scores and all.

    Attributes:
        documents: Scored documents in question.
        known: Scored calibration documents.
        smallest: Smallest p-value that any document could have had; 0 by lot.
        tied: Calibration documents that share the highest of their scores.
        withheld: No document could be called in, as the calibration documents are of another kind.
        ranked_out: Scored documents inside that ``out`` is ranked among.
        alpha: Level after correction.
    """

    documents: int
    known: int
    smallest: float
    tied: int
    withheld: bool = False
    ranked_out: int = 0
    alpha: float = 0.05

    @property
    def told(self) -> str:
        """The same in words, for the owner of the documents."""
        # Without scores on both sides nothing is ranked.
        if not self.documents or not self.known:
            unscored = "no document in question" if self.known else "no calibration document"
            return f"This audit could call nothing in: {unscored} could be scored."
        if self.withheld:
            return (
                "This audit could call nothing in, whatever a document scored: the calibration"
                " documents, or when they were asked, differ from those in question."
            )
        least, calibrating = fmt.p_text(1 / (self.known + 1)), fmt.count(self.known)
        how = "no p-value is below" if self.smallest else "a p-value is drawn by lot, at best below"
        equal = fmt.p_text((self.tied + 1) / (self.known + 1))
        ties = (
            f", or {equal} for a score that only equals the highest of theirs, which"
            f" {fmt.count(self.tied)} share"
        )
        return f"With {calibrating} calibration documents {how} {least}{ties * (self.tied > 1)}."

    @property
    def told_out(self) -> str:
        """When a document can be called out, and what is missing if none can."""
        if not self.documents:
            return ""
        none = "No document can be said to show no sign of being inside"
        if not self.ranked_out:
            return (
                f"{none}: that takes scores of documents that are inside this very system. Give"
                " some (--known-in)."
            )
        # Ranked among documents inside, as "in" is among those outside.
        inside = fmt.documents(self.ranked_out)
        together = needed_together(self.alpha, self.documents, self.ranked_out)
        if together is None:
            needed = fmt.count(documents_needed(self.alpha))
            return (
                f"{none}, ranked among {inside} inside: that takes at least {needed}. Give more"
                " (--known-in)."
            )
        many = "a single document" if together == 1 else f"{fmt.count(together)} or more together"
        return (
            f"Ranked among {inside} inside, {many} can be said to show no sign of being inside,"
            " where the answers are unlike theirs."
        )
