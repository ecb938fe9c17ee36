"""What an audit leaves behind: one value that every report is rendered from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ragwitness.stats.evaluation import Evaluation
from ragwitness.types import Decision, Verdict

__all__ = ["AuditResult", "Calibration"]


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

    def count(self, decision: Decision) -> int:
        """Number of documents with this verdict."""
        return sum(verdict.decision is decision for verdict in self.verdicts)

    @property
    def unscorable(self) -> int:
        """Number of documents without a score."""
        return sum(verdict.score is None for verdict in self.verdicts)
