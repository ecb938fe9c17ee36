"""What is foreseen about audits before their first query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ragwitness.errors import InputError
from ragwitness.runs.budget import Budget, Use
from ragwitness.runs.plan import AuditPlan
from ragwitness.stats.power import Power, Separation

__all__ = ["Asked", "Expected", "Outlook", "OutlookPlan", "Spent"]


@dataclass(frozen=True, slots=True)
class OutlookPlan:
    """What is foreseen and how.

    Attributes:
        audit: Documents in question, known-out documents, level.
        separations: By method: how well it may tell members apart, by label.
        inside_share: Probability that a document in question is inside.
        sample: Documents of each kind that are probed; the rest is taken to be like them.
        seed: Of the sample.
        budget: Prices of the target's tokens, where they are known.
    """

    audit: AuditPlan
    separations: Mapping[str, Mapping[str, Separation]] = field(default_factory=dict)
    inside_share: float = 0.5
    sample: int = 20
    seed: int = 0
    budget: Budget = field(default_factory=Budget)

    def __post_init__(self) -> None:
        """Refuse what cannot be foreseen."""
        if not 0 < self.inside_share <= 1:
            raise InputError(
                f"The share inside must be above 0 and at most 1, not {self.inside_share:g}."
            )
        if self.sample < 1:
            raise InputError(f"The sample must hold at least 1 document, not {self.sample}.")


@dataclass(frozen=True, slots=True)
class Spent:
    """What one document costs on average.

    Attributes:
        queries: Queries put to the target.
        sent: Tokens of their prompts, by the proxy's tokenizer.
        answer: Tokens that the target may answer with at most.
    """

    queries: float
    sent: float
    answer: float


@dataclass(frozen=True, slots=True)
class Asked:
    """Documents of one kind.

    Attributes:
        documents: All there are.
        sampled: Those that were probed at the stand-in.
        lost: Of them, those without a score before the first query, by reason.
        spent: At a target that answers each query once and for all.
        most: At a target that says again what it was asked.
    """

    documents: int
    sampled: int
    lost: Mapping[str, int]
    spent: Spent
    most: Spent

    @property
    def unscorable(self) -> int:
        """Documents without a score, the sample's share of all."""
        return round(self.documents * sum(self.lost.values()) / max(1, self.sampled))

    @property
    def scorable(self) -> int:
        """The others."""
        return self.documents - self.unscorable


@dataclass(frozen=True, slots=True)
class Expected:
    """What one method would cost and could show.

    Attributes:
        method: Registered name.
        documents: Those in question.
        known_out: Those that calibrate.
        learns: It trains on a shadow system of the auditor's own, unseen by the target.
        power: By label of the separation; empty where nothing is known or can be scored.
        auc: By the same label.
    """

    method: str
    documents: Asked
    known_out: Asked
    learns: bool
    power: Mapping[str, Power]
    auc: Mapping[str, float]

    @property
    def queries(self) -> int:
        """Queries to the target in all, known-out documents included."""
        return round(sum(a.documents * a.spent.queries for a in (self.documents, self.known_out)))

    @property
    def queries_most(self) -> int:
        """The same at a target that says again what it was asked."""
        return round(sum(a.documents * a.most.queries for a in (self.documents, self.known_out)))

    @property
    def dearest(self) -> Use:
        """The most that it asks: that many queries, and every answer as long as it may be.

        Tokens are the proxy's; passages that a RAG system adds to a prompt are not among them.
        """
        parts = (self.documents, self.known_out)
        sent = sum(part.documents * part.most.sent for part in parts)
        answer = sum(part.documents * part.most.answer for part in parts)
        return Use(self.queries_most, round(sent), round(answer))


@dataclass(frozen=True, slots=True)
class Outlook:
    """Everything foreseen about one plan.

    Attributes:
        methods: One entry per method.
        alpha: Level of the verdicts.
        inside_share: Probability that a document in question is inside.
        calibration: ``"known-out"`` or ``"generated"``.
        warning: What to beware of; None where the user vouches for the calibration.
        unit: Whose tokens are counted.
        seed: Of the sample.
        in_flight: Queries at the same time.
        latency: Measured seconds per short answer; None without a target.
        budget: Prices of the target's tokens, where they are known.
    """

    methods: tuple[Expected, ...]
    alpha: float
    inside_share: float
    calibration: str
    warning: str | None
    unit: str
    seed: int
    in_flight: int
    latency: float | None = None
    budget: Budget = field(default_factory=Budget)
