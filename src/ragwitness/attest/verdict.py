"""What a verification ends with: every check by name, the numbers side by side, one outcome."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from ragwitness.core.shown import Shown

Status: TypeAlias = Literal["pass", "fail", "not checked"]
Outcome: TypeAlias = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a bundle.

    Attributes:
        name: What was checked, e.g. ``"log.root"``.
        status: How it ended.
        detail: What holds, what does not and why, or why it was not looked at.
        failure: Name of what failed within it, for programs; empty where nothing did.
    """

    name: str
    status: Status
    detail: str
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Numbers:
    """What one tenant's index can have given away, all at the same joint delta.

    Attributes:
        tenant: Whose index.
        delta: delta* of the policy.
        paper: (5.2), from the epsilon on the accounts' label; None where it does not reach.
        why: Why ``paper`` is None.
        exact: Of the committed noise, for k_max accounts with all their queries; None where no
            epsilon holds at ``delta``.
        odometer: Epsilon of all queries that were answered, whoever asked; None as for ``exact``.
        answers: Query records of this tenant.
        cap: Answers that k_max accounts may get: what ``exact`` covers.
        windows: Windows over this index on the provider's log; None where no log was checked.
        together: Exact epsilon of all of them, for k_max accounts of each; None as for ``exact``.
    """

    tenant: str
    delta: float
    paper: float | None
    why: str
    exact: float | None
    odometer: float | None
    answers: int
    cap: int
    windows: int | None = None
    together: float | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many records were looked at in full, and what that finds.

    Attributes:
        population: Query records of the window.
        challenged: Records that were opened and proved.
        detection: (number of bad records, probability that one of them was looked at).
    """

    population: int
    challenged: int
    detection: tuple[tuple[int, float], ...]

    @property
    def mode(self) -> Literal["A", "B"]:
        """A: every record; B: a sample (paper, §5.6)."""
        return "A" if self.challenged == self.population else "B"


@dataclass(frozen=True, slots=True)
class BundleVerdict(Shown):
    """The end of a verification.

    Attributes:
        outcome: ``"pass"``, ``"fail"``, or ``"inconclusive"``: nothing is wrong, and something
            that a pass needs was not there to be checked.
        why: Reason for the outcome, in one line.
        checks: Checks in the order in which they were made.
        window: Which audit window; empty where the bundle could not be read.
        numbers: Per tenant; empty where a check failed.
        sampling: None where the bundle could not be read.
        listed: The provider's log of its windows, and how far it was read; empty where none was.
        covers: What the outcome is about: the system or the window, the texts, whose key.
        notes: What a reader should know and no check decides.
        learned: What whoever holds the bundle learns besides; the numbers do not speak of it.
        rests: Whose word the outcome rests on, and for what.
        uncovered: What the outcome does not say.
    """

    result_kind: ClassVar[str] = "verification"

    outcome: Outcome
    why: str
    checks: tuple[Check, ...]
    window: str = ""
    numbers: tuple[Numbers, ...] = ()
    sampling: Sampling | None = None
    listed: str = ""
    covers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    rests: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()

    @property
    def failures(self) -> tuple[Check, ...]:
        """Checks that failed, the first one first."""
        return tuple(check for check in self.checks if check.status == "fail")

    @property
    def worst(self) -> Numbers | None:
        """The numbers of the index with the largest exact epsilon; None without a pass."""
        if self.outcome != "pass" or not self.numbers:
            return None
        return max(self.numbers, key=lambda number: number.exact or math.inf)

    @property
    def epsilon(self) -> float | None:
        """The exact epsilon towards accounts, that of the worst tenant; None without a pass."""
        return None if self.worst is None else self.worst.exact
