"""How a sealed file is checked, whatever it is: a verdict is a list of named checks.

Each check is a function that says what holds, or raises what does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ragwitness.attest.verdict import Check
from ragwitness.errors import InputError, MissingExtraError, VerificationError


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
