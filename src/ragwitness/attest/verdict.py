"""The result of a verification: every check by name, the numbers side by side, one outcome."""

from __future__ import annotations

import hmac
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import ClassVar, Generic, Literal, TypeAlias, TypeVar

from ragwitness.core.errors import InputError, MissingExtraError, VerificationError, require
from ragwitness.core.types import Shown
from ragwitness.crypto.merkle import MerkleLog
from ragwitness.crypto.notes import Checkpoint

Status: TypeAlias = Literal["pass", "fail", "not checked"]
Outcome: TypeAlias = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a bundle.

    Attributes:
        name: Name of the check, e.g. ``"log.root"``.
        status: Result of the check.
        detail: The facts that hold, the fault, or the reason why it was not checked.
        failure: Name of the fault within it, for programs; empty where there is none.
    """

    name: str
    status: Status
    detail: str
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Privacy loss of one tenant's index, all at the same joint delta.

    Attributes:
        tenant: Tenant of the index.
        delta: delta* of the policy.
        paper: (5.2), from the epsilon on the accounts' label; None where it does not reach.
        why: Reason where ``paper`` is None.
        exact: Of the committed noise, for k_max accounts with all their queries; None where no
            epsilon holds at ``delta``.
        odometer: Epsilon of all answered queries, of all accounts; None as for ``exact``.
        answers: Query records of this tenant.
        cap: Answers that k_max accounts may get; ``exact`` covers these.
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
    """Number of records that were proved, and the chance that they include a bad one.

    Attributes:
        population: Query records of the window.
        challenged: Records that were opened and proved.
        detection: (number of bad records, probability that one of them was proved).
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
        outcome: ``"pass"``, ``"fail"``, or ``"inconclusive"``: no check fails, and a check that a
            pass needs could not be made.
        why: Reason for the outcome, in one line.
        checks: Checks in the order in which they were made.
        window: Which audit window; empty where the bundle could not be read.
        numbers: Per tenant; empty where a check failed.
        sampling: None where the bundle could not be read.
        listed: The provider's log of its windows, with its size and root; empty without one.
        covers: Subject of the outcome: the system or the window, the texts, the key.
        notes: Remarks that no check decides.
        learned: Contents of the bundle that its holder learns; no epsilon covers them.
        rests: The outcome's assumptions, and the parties that vouch for them.
        uncovered: Limits of the outcome.
        lead: The first lines: what follows from what, and whose word the rest is.
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
    lead: tuple[str, ...] = ()

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


# A verdict is a list of named checks, whatever the sealed file is.
#
# Each check is a function that returns the facts that hold, or raises the fault. All cheap checks
# come first. Slow ones follow if none failed, so that a stranger's file cannot ask for them.


class NotCheckedError(Exception):
    """A check that could not be made because an input is missing.

    Args:
        why: The missing input.
        needed: Whether no bundle can pass without this check.
    """

    def __init__(self, why: str, *, needed: bool = False) -> None:
        super().__init__(why)
        self.why, self.needed = why, needed


STRANGER = {"bytes": 16 << 20, "rows": 20_000, "points": 10_000, "seconds": 60}
"""The most work on a file that no key known beforehand has signed: rows of logs, texts, answers and
findings; points of the curve; seconds until the last check begins."""

_UNSIGNED = "no key that you know signed it, and it has more than {:,} {}, the most that is read of"
_UNSIGNED += " a stranger's file"


def admit(remedy: str, **counts: int) -> None:
    """Refuse a file of an unknown signer that is too large to be read.

    Raises:
        NotCheckedError: It is.
    """
    for unit, count in counts.items():
        if count > STRANGER[unit]:
            text = f"{_UNSIGNED.format(STRANGER[unit], unit)}. {remedy}"
            raise NotCheckedError(text, needed=True)


def deadline_of(*, known: bool) -> Callable[..., None]:
    """Return what raises :class:`NotCheckedError` once a stranger's time is over."""
    end = math.inf if known else monotonic() + STRANGER["seconds"]

    def in_time(*_: object) -> None:
        if monotonic() > end:
            raise NotCheckedError(_UNSIGNED.format(STRANGER["seconds"], "seconds"), needed=True)

    return in_time


CaseT = TypeVar("CaseT")


@dataclass(frozen=True, slots=True)
class VerifierStep(Generic[CaseT]):
    """One check.

    Attributes:
        name: Shown in the verdict.
        run: Returns the facts that hold, in words.
    """

    name: str
    run: Callable[[CaseT], str]


def all_steps(
    first: Sequence[Check],
    cheap: Iterable[VerifierStep[CaseT]],
    late: Iterable[VerifierStep[CaseT]],
    case: CaseT,
    in_time: Callable[[], None] = lambda: None,
) -> tuple[list[Check], list[str]]:
    """Make the cheap checks, and the late ones if none failed.

    Args:
        first: Checks that were made before there was a case.
        cheap: Made in any case.
        late: Made if no check failed.
        case: The evidence under verification.
        in_time: Called before each check; raises :class:`NotCheckedError` once time is over.

    Returns:
        The checks, and the reasons against a pass.
    """
    early, lacking = run_steps(cheap, case, in_time)
    checks = [*first, *early]
    if any(check.status == "fail" for check in checks):
        skipped = (Check(step.name, "not checked", "a cheaper check failed") for step in late)
        return [*checks, *skipped], lacking
    slow, reasons = run_steps(late, case, in_time)
    return checks + slow, lacking + reasons


def verdict_on(
    made: Sequence[Check], lacking: Sequence[str], reason: str, window: str = ""
) -> BundleVerdict:
    """Return outcome and reason by the checks alone.

    The first failure names the verdict. A missing input is never assumed.

    Args:
        made: All checks.
        lacking: The reasons against a pass.
        reason: The reason of a pass.
        window: Name of the window; empty for a pack.
    """
    # A failure decides, then a missing input, then a pass.
    checks = tuple(made)
    wrong = next((check for check in checks if check.status == "fail"), None)
    if wrong is not None:
        return BundleVerdict("fail", f"{wrong.failure}: {wrong.detail}", checks, window=window)
    if lacking:
        text = f"consistent in itself, but {'; '.join(dict.fromkeys(lacking))}"
        return BundleVerdict("inconclusive", text, checks, window=window)
    return BundleVerdict("pass", reason, checks, window=window)


def unread(name: str, error: VerificationError | InputError) -> BundleVerdict:
    """Return the verdict on a file that is not in its one form."""
    check = getattr(error, "check", f"{name}.form")
    return verdict_on([Check(name, "fail", str(error), check)], (), "")


def unsigned(name: str, error: NotCheckedError) -> BundleVerdict:
    """Return the verdict on a stranger's file that is too large to be read."""
    return BundleVerdict("inconclusive", error.why, (Check(name, "not checked", error.why),))


def extends(log: MerkleLog, earlier: Checkpoint, family: str) -> None:
    """Check that a signed checkpoint is one of a log.

    Raises:
        VerificationError: ``<family>.rolled_back`` or ``<family>.split_view``.
    """
    shrunk = f"The log had signed for {earlier.size:,} entries; here it has {log.size:,}."
    require(earlier.size <= log.size, f"{family}.rolled_back", shrunk)
    two = f"The log signed two different histories of its first {earlier.size:,} entries."
    same = hmac.compare_digest(log.root(earlier.size), earlier.root)
    require(same, f"{family}.split_view", two)


def run_steps(
    steps: Iterable[VerifierStep[CaseT]], case: CaseT, in_time: Callable[[], None] = lambda: None
) -> tuple[list[Check], list[str]]:
    """Make checks one after the other, all of them whatever fails.

    Returns:
        The checks, and the reasons against a pass.

    Raises:
        MissingExtraError: A check needs a package that is not installed.
    """
    results: list[Check] = []
    lacking: list[str] = []
    for step in steps:
        try:
            # Every step gives one check, whatever the others gave.
            in_time()
            results.append(Check(step.name, "pass", step.run(case)))
        except NotCheckedError as error:
            results.append(Check(step.name, "not checked", error.why))
            if error.needed:
                lacking.append(error.why)
        except VerificationError as error:
            results.append(Check(step.name, "fail", error.message, error.check))
        except MissingExtraError:
            raise
        except InputError as error:  # a value that every reader accepts and no check may have
            results.append(Check(step.name, "fail", error.message, step.name))
    return results, lacking


def refuse(check: str, message: str) -> VerificationError:
    """Return the error of a check that does not hold."""
    return VerificationError(check, message)
