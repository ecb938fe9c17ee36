"""What a probe of canaries found, and what was seen of the same plan before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.canary.decide.verdict import Finding
from ragwitness.canary.score.probe import Way
from ragwitness.runs.result import Spending
from ragwitness.stats.evaluation import Rate

__all__ = ["CanaryResult", "History", "Look", "SlotResult"]


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the draw: a probe that was asked to its end.

    Attributes:
        digest: Of release and scores; the same answers are the same look.
        ranks: Per planted slot: rank and number of candidates.
    """

    digest: str
    ranks: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class History:
    """What was seen before, of the same plan.

    Attributes:
        looks: In their order, twins left out.
        twins: Statistic W of compliant twins.
        quoted: Answers to planted traces that quoted a trigger.
        answered: Answers to planted traces, as far as they were given.
        opened: Whether the draw is no secret any more.
    """

    looks: tuple[Look, ...] = ()
    twins: tuple[float, ...] = ()
    quoted: int = 0
    answered: int = 0
    opened: bool = False


@dataclass(frozen=True, slots=True)
class SlotResult:
    """One slot at one model.

    Attributes:
        number: Of the slot.
        planted: Whether its traces were sent.
        examples: Ids of the examples that could be scored.
        scores: Per example the clean view, then each candidate, shape (n, 1 + M): nats, or
            shares of sampled answers.
        amplification: Eq. 1 over these examples; for samples, a difference of shares.
        censored: Share of the readings that are only upper bounds.
    """

    number: int
    planted: bool
    examples: tuple[str, ...]
    scores: NDArray[np.float64]
    amplification: Rate
    censored: float


@dataclass(frozen=True, slots=True)
class CanaryResult:
    """A probe of one release of a model.

    Attributes:
        target: Name of the system, with the way in which it was asked.
        way: How.
        finding: What it shows; None where a cap left examples unasked.
        slots: One per slot; none without a finding, so that nobody goes on, or not, by them.
        digest: Of release and scores.
        look: Number of this look at the draw, from 1.
        settings: Everything in use, as label and value.
        warnings: What a reader must know before relying on it.
        queries: Queries it took, kept answers included.
        seconds: Wall time.
        spent: What the run folder has spent at the target.
    """

    target: str
    way: Way
    finding: Finding | None
    slots: tuple[SlotResult, ...]
    digest: str
    look: int
    settings: dict[str, str]
    warnings: tuple[str, ...]
    queries: int
    seconds: float
    spent: Spending
