"""Whether an audit passes: the conditions of ``--fail-on`` and what a finished run makes of them.

::

    CONDITION = SUBJECT [":" NUMBER ["%"]]
    SUBJECT   = "in" | "out" | "inconclusive" | "unscorable"

A condition is met where at least that many documents, or that share of them, have the subject;
without a number, one is enough.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ragwitness.errors import ExitCode, InputError
from ragwitness.report import wording
from ragwitness.runs.result import AuditResult
from ragwitness.types import Decision, Verdict

__all__ = [
    "SUBJECTS",
    "Condition",
    "Ruling",
    "met",
    "parse_collection_conditions",
    "parse_conditions",
    "rule",
    "rule_collection",
]

SUBJECTS = (*(decision.value for decision in Decision), "unscorable")
"""What documents can be counted by; an unscorable one is inconclusive too."""

_COLLECTION = (Decision.IN.value, Decision.INCONCLUSIVE.value)
_FORM = re.compile(r"([a-z]+)(?::([0-9]+(?:\.[0-9]+)?)(%?))?")


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition under which an audit fails.

    Attributes:
        subject: One of :data:`SUBJECTS`.
        least: Documents, or percent of them, at which it is met.
        percent: Whether ``least`` is a percentage of all documents asked about.
    """

    subject: str
    least: Fraction = Fraction(1)
    percent: bool = False

    def __str__(self) -> str:
        if not self.percent and self.least == 1:
            return self.subject
        return f"{self.subject}:{float(self.least):g}{'%' if self.percent else ''}"

    def concerns(self, verdict: Verdict) -> bool:
        """Whether a document is among those counted."""
        if self.subject == "unscorable":
            return verdict.score is None
        return verdict.decision.value == self.subject

    def count(self, result: AuditResult) -> int:
        """Number of documents that are counted."""
        return sum(self.concerns(verdict) for verdict in result.verdicts)

    def met(self, result: AuditResult) -> bool:
        """Whether enough documents are counted; never by none."""
        count = self.count(result)
        least = self.least * len(result.verdicts) / 100 if self.percent else self.least
        return count > 0 and count >= least


@dataclass(frozen=True, slots=True)
class Ruling:
    """How a finished audit ends.

    Attributes:
        code: ``PASS``, ``FAILED`` or ``INCONCLUSIVE``.
        why: In one line; empty where nothing was asked for.
    """

    code: ExitCode
    why: str = ""


def parse_conditions(texts: Sequence[str]) -> tuple[Condition, ...]:
    """Read the conditions of an audit.

    Raises:
        InputError: One is not in the grammar, or could be met by no document at all.
    """
    return tuple(_parse(text) for text in texts)


def _parse(text: str) -> Condition:
    form = _FORM.fullmatch(text.strip())
    if form is None or form[1] not in SUBJECTS:
        raise _unknown(text, f"{', '.join(SUBJECTS)}; each also as in:3 or in:5%, at least so many")
    subject, number, sign = form.groups()
    if number is None:
        return Condition(subject)
    least, percent = Fraction(number), sign == "%"
    if least == 0 or (percent and least > 100) or (not percent and least.denominator != 1):
        raise InputError(
            f"--fail-on {text!r} has no usable number.",
            "Give a whole number of documents from 1, or more than 0 and up to 100 percent.",
        )
    return Condition(subject, least, percent)


def parse_collection_conditions(texts: Sequence[str]) -> tuple[str, ...]:
    """Read the conditions of an audit of one whole collection: ``in`` and ``inconclusive``.

    Raises:
        InputError: Another one.
    """
    for text in texts:
        if text not in _COLLECTION:
            raise _unknown(text, f"{', '.join(_COLLECTION)}, for the collection as a whole")
    return tuple(texts)


def _unknown(text: str, known: str) -> InputError:
    return InputError(f"Unknown condition --fail-on {text!r}.", f"Known: {known}.")


def met(result: AuditResult, conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Return the conditions that are met."""
    return tuple(condition for condition in conditions if condition.met(result))


def rule(result: AuditResult, conditions: Sequence[Condition]) -> Ruling:
    """Say how an audit ends; one without conditions passes once it is finished.

    That no condition is met says something only of an audit that decided something.
    """
    if not conditions:
        return Ruling(ExitCode.PASS)
    if failed := met(result, conditions):
        total = wording.documents(len(result.verdicts))
        found = (f"{c} ({wording.count(c.count(result))} of {total})" for c in failed)
        return Ruling(ExitCode.FAILED, f"fails --fail-on {', '.join(found)}")
    if result.count(Decision.INCONCLUSIVE) == len(result.verdicts):
        why = "inconclusive: nothing --fail-on asks for, but no document is said to be in or out"
        return Ruling(ExitCode.INCONCLUSIVE, why)
    return Ruling(ExitCode.PASS, f"passes --fail-on {', '.join(map(str, conditions))}")


def rule_collection(decided: bool, conditions: Sequence[str]) -> Ruling:
    """Say how an audit of a whole collection ends.

    Args:
        decided: Whether "it is like documents outside" was refused.
        conditions: As read by :func:`parse_collection_conditions`.
    """
    if not conditions:
        return Ruling(ExitCode.PASS)
    found = Decision.IN.value if decided else Decision.INCONCLUSIVE.value
    if found in conditions:
        return Ruling(ExitCode.FAILED, f"fails --fail-on {found}")
    if not decided:
        return Ruling(ExitCode.INCONCLUSIVE, "inconclusive: the evidence does not decide")
    return Ruling(ExitCode.PASS, f"passes --fail-on {', '.join(conditions)}")
