"""What a verification ends with: every check by name, the numbers side by side, one outcome."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

from ragwitness.errors import InputError
from ragwitness.kit.shown import Shown
from ragwitness.privacy.accounting.ranges import at_least_zero, probability, whole

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
class Empirical:
    """A lower bound that an attack has shown, handed in by whoever ran it.

    Attributes:
        attack: What was done.
        epsilon: Lower bound, by Clopper and Pearson.
        delta: Failure probability that it holds for.
        confidence: Confidence of the bound, e.g. 0.95.
        trials: It rests on.
        mechanism: Digest of what was attacked.
        accounts: Number of accounts that worked together.
        queries: Number of queries of each.
    """

    attack: str
    epsilon: float
    delta: float
    confidence: float
    trials: int
    mechanism: str
    accounts: int
    queries: int


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
        empirical: Shown by an attack; None where none was handed in.
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
    empirical: float | None
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


# The file by which a verifier hands in what an attack has shown; its own, and not in a bundle.

EMPIRICAL_VERSION = "ragwitness/empirical/v1"


def parse_empirical(data: bytes) -> Empirical:
    """Return the lower bound of a file.

    Raises:
        InputError: It is no such file, or a value is outside its range.
    """
    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _wrong("it is no JSON") from error
    if not isinstance(value, dict) or value.pop("version", None) != EMPIRICAL_VERSION:
        raise _wrong(f"its version is not {EMPIRICAL_VERSION!r}")
    names = {field.name for field in fields(Empirical)}
    if value.keys() != names:
        raise _wrong(f"it lacks a field or has another: {sorted(value.keys() ^ names)[0][:40]!r}")
    texts, reals = ("attack", "mechanism"), ("epsilon", "delta", "confidence")
    if not all(isinstance(value[name], str) for name in texts):
        raise _wrong("the attack or the mechanism is no text")
    if not all(type(value[name]) in (int, float) for name in reals):
        raise _wrong("a bound is no number")
    found = Empirical(**value)
    at_least_zero("epsilon", found.epsilon)
    probability("delta", found.delta)
    probability("confidence", found.confidence)
    for name in ("trials", "accounts", "queries"):
        whole(name, getattr(found, name))
    return found


def _wrong(why: str) -> InputError:
    return InputError(
        f"This is no file of an attack's lower bound: {why}.", "See docs/attest.md for its fields."
    )
