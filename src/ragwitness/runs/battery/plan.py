"""What is evaluated and how, and what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ragwitness.defenses import DefenseCost
from ragwitness.errors import InputError
from ragwitness.membership.registry import AUDITS, configure
from ragwitness.rag import RagConfig
from ragwitness.runs.battery.measure import Measured
from ragwitness.stats.evaluation import Rate

__all__ = ["Battery", "BatteryPlan"]


@dataclass(frozen=True, slots=True)
class BatteryPlan:
    """What is evaluated and how.

    Attributes:
        audits: Registered names.
        members: Audited documents inside.
        non_members: Audited documents outside.
        calibration: Calibration documents, inside and outside each.
        seed: Of the split, and of every order.
        rag: The system under audit.
        shadow: The shadow system's settings; None takes the target's.
        options: Per audit: fields of its configuration.
        thresholds: Per audit: threshold of the decision, where it is given beforehand.
        control: Whether every audit also runs with retrieval switched off.
        benign: Benign questions that a defended system is asked; 0 asks none.
        in_flight: Documents probed at the same time.
    """

    audits: tuple[str, ...]
    members: int = 100
    non_members: int = 100
    calibration: int = 100
    seed: int = 0
    rag: RagConfig = field(default_factory=RagConfig)
    shadow: RagConfig | None = None
    options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    control: bool = True
    benign: int = 100
    in_flight: int = 4

    def __post_init__(self) -> None:
        """Refuse what cannot be evaluated."""
        if not self.audits:
            raise InputError("There is no audit to evaluate.", f"Known: {', '.join(AUDITS)}.")
        for name in self.audits:
            configure(name, self.options.get(name))
        if lost := sorted(set(self.options) - set(self.audits)):
            raise InputError(
                f"There are options for {lost[0]!r}, which is not evaluated.",
                f"Evaluated: {', '.join(self.audits)}.",
            )
        if min(self.members, self.non_members, self.calibration) < 2:
            raise InputError("Every part of the split needs at least two documents.")
        if self.benign < 0:
            raise InputError(f"There cannot be {self.benign} benign questions; 0 asks none.")


@dataclass(frozen=True, slots=True)
class Battery:
    """A finished evaluation.

    Attributes:
        audits: One entry per audit and variant of its score.
        controls: AUC of every control by name.
        skipped: Audits without a figure, with the reason.
        paired: AUC differences of audits by pair of names.
        sizes: Documents by part of the split.
        likeness: Median likeness of the near-duplicate non-members to the index.
        settings: Everything in use, as label and value.
        seconds: Wall time.
        benign: What the defense costs benign questions; None without a defense.
    """

    audits: tuple[Measured, ...]
    controls: dict[str, Rate]
    skipped: dict[str, str]
    paired: dict[tuple[str, str], Rate]
    sizes: dict[str, int]
    likeness: float
    settings: dict[str, str]
    seconds: float
    benign: DefenseCost | None = None
