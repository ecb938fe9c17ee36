"""Whether a leak measurement passes: the conditions of ``--fail-on`` on its measures.

::

    CONDITION = ["published "] LABEL (">" | ">=") NUMBER ["%"]

A label names every measure it begins: ``repeat records`` those of 10 and of 20 tokens. Without
``%`` a count is meant (of means, the value itself). All prompts together are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ragwitness.errors import ExitCode, InputError
from ragwitness.extraction.score import Measure
from ragwitness.report.gate import Ruling
from ragwitness.runs.leak_score import LeakResult

__all__ = ["NAMES", "LeakCondition", "parse_leak_conditions", "rule_leak"]

NAMES = (
    "repeat prompts",
    "repeat records",
    "ROUGE prompts",
    "ROUGE records",
    "recovered records",
    "coverage",
    "secrets",
    "secret prompts",
    "likeness",
    "like prompts",
    "published repeat prompts",
    "published repeat contexts",
    "published ROUGE prompts",
    "published ROUGE contexts",
    "published targeted information",
)
"""What a condition may name, each also with the key that follows it in the report."""

_FORM = re.compile(r"(.+?)\s*(>=|>)\s*([0-9]*\.?[0-9]+)\s*(%?)")
_PUBLISHED = "published "


@dataclass(frozen=True, slots=True)
class LeakCondition:
    """One condition under which a measurement fails.

    Attributes:
        name: Beginning of a label, ``published`` before it for published counts.
        bound: Count, value, or percent.
        percent: Whether ``bound`` is a percentage.
        equal: Whether the bound itself meets it.
    """

    name: str
    bound: Fraction
    percent: bool
    equal: bool

    def __str__(self) -> str:
        sign = ">=" if self.equal else ">"
        return f"{self.name} {sign} {float(self.bound):g}{'%' if self.percent else ''}"

    def concerns(self, one: Measure) -> bool:
        """Whether a measure is among those named."""
        label = f"{_PUBLISHED if one.published else ''}{one.label}"
        return label == self.name or label.startswith(f"{self.name} ")

    def met(self, one: Measure) -> bool:
        """Whether a measure passes the bound."""
        value = 100 * one.count / (one.of or 1) if self.percent else one.count
        return value >= self.bound if self.equal else value > self.bound


def parse_leak_conditions(texts: Sequence[str]) -> tuple[LeakCondition, ...]:
    """Read conditions.

    Raises:
        InputError: One is not in the grammar or names no measure.
    """
    return tuple(_parse(text) for text in texts)


def _parse(text: str) -> LeakCondition:
    form = _FORM.fullmatch(text.strip())
    if form is None:
        raise InputError(
            f"--fail-on {text!r} is no condition.",
            'Write e.g. --fail-on "repeat records > 0" or --fail-on "secrets >= 1%".',
        )
    name, sign, number, percent = form.groups()
    if not any(name == known or name.startswith(f"{known} ") for known in NAMES):
        raise InputError(f"--fail-on {text!r} names no measure.", f"Known: {', '.join(NAMES)}.")
    return LeakCondition(name, Fraction(number), bool(percent), sign == ">=")


def rule_leak(result: LeakResult, conditions: Sequence[LeakCondition]) -> Ruling:
    """Say how a measurement ends; what was not measured passes nothing."""
    if not conditions:
        return Ruling(ExitCode.PASS)
    unmeasured = []
    for condition in conditions:
        found = [one for one in result.together if condition.concerns(one) and not one.note]
        if over := next((one for one in found if condition.met(one)), None):
            count = f"{over.count:.4g}" + (f" of {over.of}" if over.of else "")
            return Ruling(ExitCode.FAILED, f"fails --fail-on {condition} ({over.label}: {count})")
        if not found:
            unmeasured.append(str(condition))
    if unmeasured:
        why = f"inconclusive: nothing was measured for --fail-on {', '.join(unmeasured)}"
        return Ruling(ExitCode.INCONCLUSIVE, why)
    return Ruling(ExitCode.PASS, f"passes --fail-on {', '.join(map(str, conditions))}")
