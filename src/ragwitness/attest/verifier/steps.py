"""How checks are made: each is a function that says what holds, or raises what does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragwitness.attest.trust import Trust
from ragwitness.attest.verdict import Check, Empirical
from ragwitness.attest.verifier.evidence import BundleEvidence
from ragwitness.crypto.log.tree import MerkleLog
from ragwitness.errors import InputError, MissingExtraError, VerificationError

Embed: TypeAlias = Callable[[Sequence[str]], NDArray[np.floating]]
"""Texts to vectors, shape (texts, dimension)."""


@dataclass(frozen=True)
class VerifierCase:
    """A bundle's evidence and what the verifier has beside it.

    Attributes:
        evidence: Evidence of the bundle.
        trust: The verifier's own knowledge; None for none.
        receipts: Files that accounts handed in.
        seen: Signed checkpoints of this log that others were shown.
        embed: The committed embedder, where the verifier has it.
        empirical: A lower bound that an attack has shown.
        progress: Called with (what, done, all) before and after the slow checks.
    """

    evidence: BundleEvidence
    trust: Trust | None = None
    receipts: Sequence[bytes] = ()
    seen: Sequence[bytes] = ()
    embed: Embed | None = None
    empirical: Empirical | None = None
    progress: Callable[[str, int, int], None] = field(default=lambda *_: None)

    @cached_property
    def log(self) -> MerkleLog:
        """The log, rebuilt from its entries."""
        log = MerkleLog()
        log.extend(self.evidence.entries)
        return log

    def trusted(self, why: str) -> Trust:
        """Return what the verifier trusts.

        Raises:
            NotCheckedError: Nothing.
        """
        if self.trust is None:
            raise NotCheckedError(f"no trust file was given: {why}", needed=True)
        return self.trust


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
