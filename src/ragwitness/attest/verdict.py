"""What a verification ends with: every check by name, the numbers side by side, one outcome."""

from __future__ import annotations

import hmac
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, TypeAlias, TypeVar

from ragwitness.core.errors import InputError, MissingExtraError, VerificationError
from ragwitness.core.types import Shown
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.notes import Checkpoint

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


# How a sealed file is checked, whatever it is: a verdict is a list of named checks.
#
# Each check is a function that says what holds, or raises what does not. All cheap checks are made
# first; slow ones follow once nothing is wrong, so that no stranger can ask for them.


class NotCheckedError(Exception):
    """A check that could not be made for want of something.

    Args:
        why: What was missing.
        needed: Whether no bundle can pass without this check.
    """

    def __init__(self, why: str, *, needed: bool = False) -> None:
        super().__init__(why)
        self.why, self.needed = why, needed


CaseT = TypeVar("CaseT")


@dataclass(frozen=True, slots=True)
class VerifierStep(Generic[CaseT]):
    """One check.

    Attributes:
        name: Shown in the verdict.
        run: Returns what holds, in words.
    """

    name: str
    run: Callable[[CaseT], str]


def all_steps(
    first: Sequence[Check],
    cheap: Iterable[VerifierStep[CaseT]],
    late: Iterable[VerifierStep[CaseT]],
    case: CaseT,
) -> tuple[list[Check], list[str]]:
    """Make the cheap checks, and the late ones once nothing is wrong.

    Args:
        first: Checks that were made before there was a case.
        cheap: Made in any case.
        late: Made if no check failed.
        case: What is checked.

    Returns:
        The checks, and why a pass is out of reach.
    """
    made, lacking = run_steps(cheap, case)
    made = [*first, *made]
    if any(check.status == "fail" for check in made):
        waiting = (Check(step.name, "not checked", "a cheaper check failed") for step in late)
        return [*made, *waiting], lacking
    more, without = run_steps(late, case)
    return made + more, lacking + without


def verdict_on(
    made: Sequence[Check], lacking: Sequence[str], whole: str, window: str = ""
) -> BundleVerdict:
    """Return outcome and reason by the checks alone.

    The first failure names the verdict. What a pass lacks is never taken to be there.

    Args:
        made: All checks.
        lacking: Why a pass is out of reach.
        whole: The reason of a pass.
        window: Which window it is about; empty for a pack.
    """
    checks = tuple(made)
    wrong = next((check for check in checks if check.status == "fail"), None)
    if wrong is not None:
        return BundleVerdict("fail", f"{wrong.failure}: {wrong.detail}", checks, window)
    if lacking:
        why = f"consistent in itself, but {'; '.join(dict.fromkeys(lacking))}"
        return BundleVerdict("inconclusive", why, checks, window)
    return BundleVerdict("pass", whole, checks, window)


def unread(name: str, error: VerificationError | InputError) -> BundleVerdict:
    """Return the verdict on a file that is not in its one form."""
    check = getattr(error, "check", f"{name}.form")
    said = " ".join(filter(None, (error.message, error.hint)))
    return verdict_on([Check(name, "fail", said, check)], (), "")


def extends(log: MerkleLog, seen: Checkpoint, family: str) -> None:
    """Check that a signed checkpoint is one of a log.

    Raises:
        VerificationError: ``<family>.rolled_back`` or ``<family>.split_view``.
    """
    if seen.size > log.size:
        raise refuse(
            f"{family}.rolled_back",
            f"The log had signed for {seen.size:,} entries; here it has {log.size:,}.",
        )
    if not hmac.compare_digest(log.root(seen.size), seen.root):
        raise refuse(
            f"{family}.split_view",
            f"The log signed two different histories of its first {seen.size:,} entries.",
        )


def run_steps(steps: Iterable[VerifierStep[CaseT]], case: CaseT) -> tuple[list[Check], list[str]]:
    """Make checks one after the other, all of them whatever fails.

    Returns:
        The checks, and why a pass is out of reach.

    Raises:
        MissingExtraError: A check needs a package that is not installed.
    """
    made: list[Check] = []
    lacking: list[str] = []
    for step in steps:
        try:
            made.append(Check(step.name, "pass", step.run(case)))
        except NotCheckedError as error:
            made.append(Check(step.name, "not checked", error.why))
            if error.needed:
                lacking.append(error.why)
        except VerificationError as error:
            made.append(Check(step.name, "fail", error.message, error.check))
        except MissingExtraError:
            raise
        except InputError as error:  # a value that passed every reader and that no one may have
            made.append(Check(step.name, "fail", error.message, step.name))
    return made, lacking


def refuse(check: str, message: str) -> VerificationError:
    """Return the error of a check that does not hold."""
    return VerificationError(check, message)
