"""What a defense costs benign questions, as every report shows it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ragwitness.defenses import DefenseCost
from ragwitness.report import wording
from ragwitness.stats.evaluation import Rate

__all__ = ["BenignRow", "benign_json", "benign_rows", "unanswered"]


@dataclass(frozen=True, slots=True)
class BenignRow:
    """One measure without and with the defense.

    Attributes:
        name: What is measured.
        before: Undefended; None for what compares the two systems.
        after: Defended.
        lost: Undefended minus defended over the same questions; None where it is not a loss.
    """

    name: str
    before: Rate | None
    after: Rate
    lost: Rate | None = None

    @property
    def difference(self) -> str:
        """The loss with a sign, or a dash."""
        return wording.MISSING if self.lost is None else wording.signed(self.lost)


def benign_rows(cost: DefenseCost) -> list[BenignRow]:
    """Return every measure there is: retrieval first, then answers."""
    found, answers = cost.retrieval, cost.answers
    rows = [
        BenignRow(f"recall@{cost.k}", found.recall_before, found.recall, found.recall_lost),
        BenignRow("other passages", None, found.changed),
    ]
    if answers is None:
        return rows
    if answers.quality_before is not None and answers.quality is not None:
        quality = BenignRow(
            "answer quality", answers.quality_before, answers.quality, answers.quality_lost
        )
        rows.append(quality)
    return [
        *rows,
        BenignRow("same answer", None, answers.agreement),
        BenignRow("refused", answers.refused_before, answers.refused),
    ]


def unanswered(cost: DefenseCost) -> str:
    """Return how many questions got no answer, or nothing where all did."""
    if not cost.failed_before + cost.failed:
        return ""
    return f"Questions without an answer: {cost.failed_before} undefended, {cost.failed} defended"


def benign_json(cost: DefenseCost | None) -> dict[str, Any] | None:
    """Return ``{"recall": {"undefended": {...}, "defended": {...}, ...}, ...}``, or None."""
    if cost is None:
        return None
    found, answers = cost.retrieval, cost.answers
    data: dict[str, Any] = {
        "defense": cost.defense,
        "k": cost.k,
        "questions": found.recall.n,
        "recall": _beside(found.recall_before, found.recall, found.recall_lost),
        "other_passages": asdict(found.changed),
        "answer_quality": None,
        "agreement": None,
        "refused": None,
        "unanswered": {"undefended": cost.failed_before, "defended": cost.failed},
    }
    if answers is not None:
        data["agreement"] = asdict(answers.agreement)
        data["refused"] = _beside(answers.refused_before, answers.refused)
        if answers.quality_before is not None and answers.quality is not None:
            data["answer_quality"] = _beside(
                answers.quality_before, answers.quality, answers.quality_lost
            )
    return data


def _beside(before: Rate, after: Rate, lost: Rate | None = None) -> dict[str, Any]:
    both = {"undefended": asdict(before), "defended": asdict(after)}
    return both if lost is None else both | {"lost": asdict(lost)}
