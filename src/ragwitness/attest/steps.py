"""How a sealed file is checked, whatever it is: a verdict is a list of named checks.

Each check is a function that says what holds, or raises what does not. Cheap checks are made first,
all of them; those that take long once nothing is wrong, so that no stranger can ask for them.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ragwitness.attest.verdict import BundleVerdict, Check
from ragwitness.core.errors import InputError, MissingExtraError, VerificationError
from ragwitness.crypto.log.tree import MerkleLog
from ragwitness.crypto.notes.note import Checkpoint


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
