"""Result types: how a result is stored, read, judged and reported.

A task's result is one value. Its :class:`ResultType` is all that ``report``, ``view``, the gates
and the writers of files know of it. A new one is a module with a ``RESULT_TYPE`` and a
line in :mod:`ragwitness.report.result_registry`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from ragwitness.core.errors import ExitCode, InputError

if TYPE_CHECKING:
    from ragwitness.report.document import (
        ReportDocument,  # its figures bring numpy, and help shall not
    )

R = TypeVar("R")
C = TypeVar("C")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ruling:
    """How a finished task ends.

    Attributes:
        code: ``PASS``, ``FAILED`` or ``INCONCLUSIVE``.
        why: In one line; empty where nothing was asked for.
    """

    code: ExitCode
    why: str = ""


@dataclass(frozen=True, slots=True)
class TestCase:
    """One line of a JUnit report.

    Attributes:
        name: Its subject.
        state: How it ended.
        message: In one line.
        text: In more.
        type: Of a failure.
    """

    __test__ = False  # not a test of pytest's

    name: str
    state: Literal["passed", "failed", "skipped"] = "passed"
    message: str = ""
    text: str = ""
    type: str = ""


@dataclass(frozen=True, slots=True)
class ResultType(Generic[R, C]):
    """One kind of result.

    Attributes:
        name: In the file, under ``kind``.
        words: For people.
        verb: Of the command that makes it.
        load: The result that ``dump`` was given; raises ``InputError`` naming the field.
        report: Makes the report.
        rows: The result as flat rows: documents, measures, records, slots, or the cells of tables.
        columns: Names and types of the rows' fields, the first naming the row.
        recognises: Whether an earlier file without ``kind`` is one of these; by default none is.
        conditions: Reads ``--fail-on``; by default there is none.
        rule: Says how a result ends under conditions.
        stored_rows: Field of the stored form that holds the rows, where the rest is ``head`` under
            ``summary``; empty for other forms.
        dump: The result as strict JSON, without ``kind`` and ``version``.
        cases: The rows as JUnit has them; None for one case per row and one for the gate.
        head: The summary beside a table of the rows; None for the whole result.
        properties: Notes of a JUnit report besides the settings.
        version: Of the form that is stored; raised when an older reader would misread it.
    """

    name: str
    words: str
    verb: str
    load: Callable[[Mapping[str, Any]], R]
    report: Callable[[R], ReportDocument]
    rows: Callable[[R], Sequence[Row]]
    columns: Mapping[str, Any] = field(
        default_factory=lambda: {"row": str, "column": str, "value": str}
    )
    recognises: Callable[[Mapping[str, Any]], bool] = lambda _data: False
    conditions: Callable[[Sequence[str]], tuple[C, ...]] = lambda texts: no_conditions(texts)
    rule: Callable[[R, Sequence[C]], Ruling] = lambda _result, conditions: passed(conditions)
    dump: Callable[[R], Row] = lambda result: dict(plain(asdict(cast("Any", result))))
    cases: Callable[[R, Sequence[C]], Sequence[TestCase]] | None = None
    head: Callable[[R], Row] | None = None
    properties: Callable[[R], Mapping[str, str]] | None = None
    version: int = 1
    stored_rows: str = ""

    def stored(self, result: R) -> Row:
        """Return a result as it is stored."""
        return {"kind": self.name, "version": self.version, **self.dump(result)}

    def opened(self, data: Mapping[str, Any]) -> R:
        """Return a result that was stored.

        Raises:
            InputError: It is of a version to come, or a field is missing or malformed.
        """
        # Step 1: the version. Files without one are of the first version.
        version = data.get("version", 1)
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise malformed(self, "version", f"{version!r} is not a version")
        # A newer form is refused, never half understood.
        if version > self.version:
            raise InputError(
                f"This result has the form {version}, and this version of Ragwitness knows"
                f" {self.version}: it was written by a newer one.",
                "Update: pip install --upgrade ragwitness",
            )
        # Step 2: the kind's own fields; the two names of the envelope are not among them.
        fields = {key: value for key, value in data.items() if key not in ("kind", "version")}
        try:
            return self.load(fields)
        # Every failure on a hand-edited file becomes one sentence and a next command.
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise malformed(self, "some field", f"{type(error).__name__}: {error}") from error

    def tested(self, result: R, conditions: Sequence[C]) -> list[TestCase]:
        """Return a result as test cases."""
        if self.cases is not None:
            return list(self.cases(result, conditions))
        # By default: a case for each row, none of which fails, and one for the condition.
        first = next(iter(self.columns))
        cases = [
            TestCase(str(row[first]), message=", ".join(f"{k} {v}" for k, v in row.items() if v))
            for row in self.rows(result)
        ]
        if conditions:
            ruling = self.rule(result, conditions)
            states: dict[ExitCode, Literal["failed", "skipped"]] = {
                ExitCode.FAILED: "failed",
                ExitCode.INCONCLUSIVE: "skipped",
            }
            state: Literal["passed", "failed", "skipped"] = states.get(ruling.code, "passed")
            cases.append(TestCase("--fail-on", state, ruling.why, type="fail-on"))
        return cases


def malformed(kind: ResultType[Any, Any], where: str, why: str) -> InputError:
    """Return the error for a stored result that is not what its kind writes."""
    return InputError(
        f"The stored {kind.words} is malformed at {where}: {why}.",
        f"Give a result.json as written by `ragwitness {kind.verb}`, or run that again.",
    )


def restored(
    type_: type[R],
    data: Mapping[str, Any],
    kind: ResultType[Any, Any],
    names: Mapping[str, str] | None = None,
) -> R:
    """Return a dataclass from its fields as JSON has them.

    Args:
        type_: The dataclass.
        data: Its fields.
        kind: The kind of result that it is, or is part of.
        names: Names of fields in the file, where they are others.

    Raises:
        InputError: A field is missing or malformed; the message names it.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        # Strict, and out of JSON text: "1" is not a number, and a list becomes the tuple that it
        # was.
        return TypeAdapter(type_).validate_json(json.dumps(data, allow_nan=True), strict=True)
    except ValidationError as error:
        # The first mistake with its path is enough to find the place; pydantic's whole list is not
        # for people.
        first = error.errors()[0]
        path = ((names or {}).get(str(step), str(step)) for step in first["loc"])
        raise malformed(kind, ".".join(path) or "its form", first["msg"]) from error


def plain(value: Any) -> Any:
    """Return a value as strict JSON can hold it: null for NaN and infinity, all the way down."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return finite(value) if isinstance(value, float) else value


def finite(value: float | None) -> float | None:
    """Return a number, or None where it is NaN or infinite."""
    return value if value is not None and math.isfinite(value) else None


# The grammar of ``--fail-on`` where rows are counted by a subject:
#
#     CONDITION = SUBJECT [":" NUMBER ["%"]]
#
# A condition is met where at least that many rows, or that share of them, have the subject;
# without a number, one is enough.

_FORM = re.compile(r"([a-z-]+)(?::([0-9]+(?:\.[0-9]+)?)(%?))?")


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition under which a run fails.

    Attributes:
        subject: The counted verdict or measure.
        least: Rows, or percent of them, at which it is met.
        percent: Whether ``least`` is a percentage of all rows.
    """

    subject: str
    least: Fraction = field(default=Fraction(1))
    percent: bool = False

    def __str__(self) -> str:
        if not self.percent and self.least == 1:
            return self.subject
        return f"{self.subject}:{float(self.least):g}{'%' if self.percent else ''}"

    def met(self, count: int, total: int) -> bool:
        """Whether ``count`` of ``total`` rows are enough; 0 never are."""
        least = self.least * total / 100 if self.percent else self.least
        return count > 0 and count >= least


def parse_conditions(
    texts: Sequence[str], subjects: Sequence[str], *, counted: bool = True
) -> tuple[Condition, ...]:
    """Read conditions.

    Args:
        texts: As given.
        subjects: The known subjects.
        counted: Whether a number may follow.

    Raises:
        InputError: One is not in the grammar, or could be met by no row at all.
    """
    return tuple(_parse(text, subjects, counted) for text in texts)


def _parse(text: str, subjects: Sequence[str], counted: bool) -> Condition:
    form = _FORM.fullmatch(text.strip())
    # A condition that cannot be read must stop the run before it starts: it would silently never be
    # met.
    if form is None or form[1] not in subjects or (form[2] is not None and not counted):
        first = subjects[0]
        also = f"; each also as {first}:3 or {first}:5%, at least so many" if counted else ""
        raise unknown_condition(text, f"{', '.join(subjects)}{also}")
    subject, number, sign = form.groups()
    if number is None:
        return Condition(subject)
    # Exact fractions: 5 % of 20 documents is 1, whatever floats make of it.
    least, percent = Fraction(number), sign == "%"
    if least == 0 or (percent and least > 100) or (not percent and least.denominator != 1):
        raise InputError(
            f"--fail-on {text!r} has no usable number.",
            "Give a whole number from 1, or more than 0 and up to 100 percent.",
        )
    return Condition(subject, least, percent)


def unknown_condition(text: str, known: str) -> InputError:
    """Return the error for a condition that is not known."""
    return InputError(f"Unknown condition --fail-on {text!r}.", f"Known: {known}.")


def no_conditions(texts: Sequence[str]) -> tuple[Any, ...]:
    """Refuse every condition, for kinds that are judged by none.

    Raises:
        InputError: There is one.
    """
    for text in texts:
        raise unknown_condition(text, "none for this kind of result")
    return ()


def passed(conditions: Sequence[object]) -> Ruling:
    """Return how a run ends that meets none of its conditions; silent where there are none."""
    if not conditions:
        return Ruling(ExitCode.PASS)
    return Ruling(ExitCode.PASS, f"passes --fail-on {', '.join(map(str, conditions))}")


def rule_counts(
    counts: Mapping[str, int], conditions: Sequence[Condition], rows: str, total: int
) -> Ruling:
    """Say how a run ends whose rows are counted by subject.

    Args:
        counts: Rows by subject.
        conditions: Those of ``--fail-on``.
        rows: How many rows there are, in words.
        total: In figures.
    """
    # Several conditions are alternatives; all that are met are named (docs/design/exit-codes.md).
    failed = [
        condition
        for condition in conditions
        if condition.met(counts.get(condition.subject, 0), total)
    ]
    if failed:
        reasons = (
            f"{condition} ({counts.get(condition.subject, 0):,} of {rows})" for condition in failed
        )
        return Ruling(ExitCode.FAILED, f"fails --fail-on {', '.join(reasons)}")
    return passed(conditions)


def rule_decided(
    counts: Mapping[str, int],
    conditions: Sequence[Condition],
    rows: str,
    total: int,
    missing: str,
    undecided: str,
) -> Ruling:
    """Say the same where that no condition is met says something only if something was decided.

    Args:
        counts: Rows by subject.
        conditions: Those of ``--fail-on``.
        rows: How many rows there are, in words.
        total: In figures.
        missing: The documents that were left out, in words; empty for none.
        undecided: The doubt where all rows are inconclusive.
    """
    # First the conditions; then whether a pass means anything.
    ruling = rule_counts(counts, conditions, rows, total)
    doubt = undecided if counts["inconclusive"] == total else missing
    if not conditions or ruling.code is not ExitCode.PASS or not doubt:
        return ruling
    return Ruling(ExitCode.INCONCLUSIVE, f"inconclusive: nothing --fail-on asks for, but {doubt}")
