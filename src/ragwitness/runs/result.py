"""What an audit leaves behind: one value that every report is rendered from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ragwitness.stats.evaluation import Evaluation
from ragwitness.types import Decision, Verdict

__all__ = ["AuditResult", "Calibration", "Spending"]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Documents outside the target that the p-values are ranked against.

    Attributes:
        source: ``"known-out"`` (given by the user as outside), ``"auxiliary"`` or
            ``"generated"`` (the corpus that ships with the package).
        n: How many of them could be scored.
        exact: Whether the guarantee rests only on the calibration documents being
            exchangeable with the audited non-members by the user's own statement.
        note: The assumption in one sentence, printed with the verdicts.
        scores: Their scores, for the distribution plot, shape (n,).
    """

    source: str
    n: int
    exact: bool
    note: str
    scores: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Spending:
    """What a run folder has spent at its target, all starts together.

    Attributes:
        queries: Queries that the target answered, or may have worked on.
        prompt_tokens: Tokens it read; an upper bound where it does not count.
        completion_tokens: Tokens it wrote; likewise.
        cost: Money, in the currency of the prices; None without prices.
        max_queries: Cap on queries; None without one.
        max_tokens: Cap on tokens.
        max_cost: Cap on money.
        unasked: Documents without a score because a cap refused a query.
        stopped_by: Name of that cap; None where none did.
        price_in: Of a million tokens read; None without prices.
        price_out: Of a million tokens written.
    """

    queries: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None = None
    max_queries: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    unasked: int = 0
    stopped_by: str | None = None
    price_in: float | None = None
    price_out: float | None = None


@dataclass(frozen=True, slots=True)
class AuditResult:
    """A finished audit.

    Attributes:
        method: Registered name of the audit with its mode, e.g. ``"s-rag (single)"``.
        target: Name of the system under audit.
        alpha: Level of the verdicts.
        started: When it began, ISO 8601 in UTC.
        seconds: Wall time.
        queries: Queries sent to the target by this audit, calibration included.
        verdicts: One per document, in the order given.
        calibration: What the p-values rest on.
        evaluation: Present where every document's membership is known.
        settings: Everything in use, as label and value, in the order to print.
        warnings: What a reader must know before relying on a verdict.
        ragwitness: Version of this package.
        spent: What it has spent at the target.
    """

    method: str
    target: str
    alpha: float
    started: str
    seconds: float
    queries: int
    verdicts: tuple[Verdict, ...]
    calibration: Calibration
    evaluation: Evaluation | None
    settings: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    ragwitness: str = ""
    spent: Spending | None = None

    def count(self, decision: Decision) -> int:
        """Number of documents with this verdict."""
        return sum(verdict.decision is decision for verdict in self.verdicts)

    @property
    def unscorable(self) -> int:
        """Number of documents without a score."""
        return sum(verdict.score is None for verdict in self.verdicts)
