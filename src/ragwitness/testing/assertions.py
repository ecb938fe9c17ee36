"""Assertions about a RAG system for test suites, with the error rates and caps of the verbs.

::

    import ragwitness as rw

    def test_contracts_stay_outside(rag_target):
        rw.assert_not_in(rag_target, "contracts.jsonl", "drafts.jsonl", known_in="handbook.jsonl")

An assertion passes, fails (``AssertionError``) or is inconclusive, exactly where the verb with
``--fail-on`` exits with 0, 3 or 4. A target that is down or a file that cannot be read is another
error, never a pass. pytest is not needed; its fixtures are in
:mod:`ragwitness.testing.pytest_plugin`.
"""

from __future__ import annotations

import functools
import os
import shlex
import unittest
import warnings
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeAlias, TypeVar, get_args

from ragwitness.core.errors import ExitCode, InputError, RagwitnessError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragwitness.core.types import Document
    from ragwitness.leakage.result import LeakResult
    from ragwitness.membership.results.audit import AuditResult
    from ragwitness.report.result_type import ResultType, Ruling
    from ragwitness.runner.task_options import Texts

Inconclusive: TypeAlias = Literal["fail", "warn", "skip"]
"""The outcome of a test that decides nothing."""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_SHOWN = 10  # of what failed, in a message
_GIVE = "Give a file, a folder or a list of texts."


class InconclusiveWarning(UserWarning):
    """Nothing could be decided, and the test asked to be warned of that."""


@dataclass(frozen=True, slots=True)
class AssertionOutcome:
    """How an assertion ended.

    Attributes:
        ruling: Its exit code, and why.
        text: The finding, in a few lines.
        folder: Its run; None where nothing was asked.
    """

    ruling: Ruling
    text: str
    folder: Path | None


def _without_frames(assertion: Callable[_P, _R]) -> Callable[_P, _R]:
    """Leave the inner frames out of an error, because they hold texts."""

    @functools.wraps(assertion)
    def asserted(*given: _P.args, **named: _P.kwargs) -> _R:
        __tracebackhide__ = True
        try:
            return assertion(*given, **named)
        except RagwitnessError as error:
            raise error.with_traceback(None) from None

    return asserted


@_without_frames
def assert_not_in(
    target: object,
    documents: Texts,
    known_out: Texts,
    *,
    fail_on: Sequence[str] = ("in",),
    inconclusive: Inconclusive = "fail",
    runs: Path | str = "ragwitness-runs",
    release: str | None = None,
    on_outcome: Callable[[AssertionOutcome], object] | None = None,
    **options: Any,
) -> AuditResult | None:
    """Assert that documents are not in a RAG system's database.

    Args:
        target: An address as on the command line, a target, or any RAG system in Python.
        documents: Those that must not be inside.
        known_out: Documents like them that are certainly outside; the p-values are ranks among
            them.
        fail_on: Conditions of ``ragwitness audit --fail-on``.
        inconclusive: The outcome of a test that decides nothing: ``fail``, ``warn`` or ``skip``.
        runs: Folder of the runs; the answers are kept there.
        release: Name of this version of the system. Answers of the same release are used again and
            nothing is asked; without it, a finished test asks anew.
        on_outcome: Called with the finding, before the test ends.
        options: Further options of :func:`ragwitness.audit`, such as ``known_in`` (without it no
            document is called ``out``) and ``alpha``. A system that holds none of the documents
            fails at most the share ``alpha`` of such tests.

    Returns:
        The audit, where the test passes or warns; None where nothing had to be asked for that.

    Raises:
        AssertionError: A condition is met, or nothing could be decided.
        InputError: Documents, a method or an option cannot be used.
        CapabilityError: The target lacks what the method requires.
        TargetError: The target cannot be reached or does not speak the protocol.
    """
    __tracebackhide__ = True
    from ragwitness.membership.task import AuditTask

    _check(inconclusive)
    kind = _kind("audit", fail_on)
    task = AuditTask(target, documents, known_out=known_out, **options)
    order = task.order()
    if not order.plan.known_out:
        raise InputError("There are no known-out documents.", _GIVE)
    # Step 1: the forecast. An audit that could decide nothing sends no query.
    lines, doubtful = order.beforehand()
    result = None
    if doubtful and not task.yes:
        finding = _undecided(" ".join(lines))
    else:
        # Step 2: the audit of the verb, in a folder that its inputs name.
        folder = _folder(runs, "assert_not_in", target, release, task.identity(order))
        with _locked(folder):
            result = replace(task, run=folder, yes=True).carry_out(order)
            # Step 3: the ruling of --fail-on.
            ruling = kind[0].rule(result, kind[1])
            chance = _chance_of_audit(result, ruling, kind[1])
            finding = _finding(kind, result, folder, chance)
    if on_outcome is not None:
        on_outcome(finding)
    _raise_or_warn(finding, inconclusive)
    return result


@_without_frames
def assert_no_leak(
    target: object,
    corpus: Texts,
    *,
    background: Texts | None = None,
    fail_on: Sequence[str] | None = None,
    inconclusive: Inconclusive = "fail",
    runs: Path | str = "ragwitness-runs",
    release: str | None = None,
    on_outcome: Callable[[AssertionOutcome], object] | None = None,
    **options: Any,
) -> LeakResult:
    """Assert that no record of a private corpus can be pulled out of a RAG system.

    The owner of the corpus aims at each record by its rarest words (``attacks="aimed"``, the
    default here). A test that cannot have reached the records is inconclusive. So is a leak that
    chance may explain, which is not known without ``background``.

    Args:
        target: As in :func:`assert_not_in`.
        corpus: The private records.
        background: Texts of the same source and kind that the system does not hold.
        fail_on: Conditions of ``ragwitness leak --fail-on``; by default any leaked record, and any
            of the secrets that ``secrets``, ``contacts`` or ``pii`` list.
        inconclusive: As in :func:`assert_not_in`.
        runs: As in :func:`assert_not_in`.
        release: As in :func:`assert_not_in`.
        on_outcome: As in :func:`assert_not_in`.
        options: All that :func:`ragwitness.leak` takes besides, such as ``attacks`` and
            ``prompts``.

    Returns:
        The measurement, where the test passes or warns.

    Raises:
        AssertionError: A condition is met, or nothing could be decided.
        InputError: The corpus, an attack or a condition cannot be used.
        TargetError: The target cannot be reached or does not speak the protocol.
    """
    __tracebackhide__ = True
    from ragwitness.leakage.attack_registry import OWNERS
    from ragwitness.leakage.task import LeakTask
    from ragwitness.runner.task_runtime import as_documents
    from ragwitness.text.overlap import without_copies

    _check(inconclusive)
    others = without_copies(as_documents(background))
    task = LeakTask(target, corpus, background=others, **({"attacks": OWNERS} | options))
    if fail_on is None:
        listed = task.secrets or task.finds_details
        fail_on = ("leaked records > 0", *(["secrets > 0"] if listed else []))
    kind = _kind("leak", fail_on)
    # Step 1: the leak measurement of the verb, in a folder that its inputs name. Another
    # background scores the same answers again.
    if not (records := as_documents(corpus)):
        raise InputError("There is no corpus to look for.", _GIVE)
    settings = (_digest(records), *task.order().identity[3:])
    folder = _folder(runs, "assert_no_leak", target, release, settings)
    with _locked(folder):
        result = replace(task, run=folder).carry_out()
        # Step 2: the ruling of --fail-on.
        finding = _finding(kind, result, folder, _LEAK_RATE if others else "")
    if on_outcome is not None:
        on_outcome(finding)
    _raise_or_warn(finding, inconclusive)
    return result


# How likely an innocent system fails.

_LEAK_RATE = (
    "Error rate: of systems that know corpus and background equally well some 2.5 % fail for each"
    " measure that a condition names (lower end of a 95 % interval)."
)


def _chance_of_audit(result: AuditResult, ruling: Ruling, conditions: Sequence[Any]) -> str:
    calibration = result.calibration
    if ruling.code is ExitCode.INCONCLUSIVE:
        # The forecast says how a reader can help it.
        could = calibration.power
        advice = (could.told, could.told_out) if could else ()
        return " ".join(filter(None, advice))
    if any(condition.subject != "in" for condition in conditions):
        return "An error rate is known for the verdict “in” alone."
    if not calibration.exact:
        return f"Error rate: not known. {calibration.note}"
    return (
        f"Error rate: a system that holds none of these {len(result.verdicts):,} documents fails"
        f" this test with a probability of at most {result.alpha:g} (Benjamini-Hochberg over ranks"
        f" among {calibration.n:,} documents known to be outside)."
    )


# How an assertion ends.


def _finding(
    kind: tuple[ResultType[Any, Any], tuple[Any, ...]],
    result: object,
    folder: Path,
    error_rate: str,
) -> AssertionOutcome:
    """Store a result as the verb does, and return its finding."""
    from ragwitness.core.run_files import REPORT, RESULT
    from ragwitness.report.files import write
    from ragwitness.report.html import write_page
    from ragwitness.runner.response_store import pack_run

    result_type, conditions = kind
    report, ruling = result_type.report(result), result_type.rule(result, conditions)
    write("json", result_type, result, folder / RESULT)
    write_page(report, folder / REPORT)
    pack_run(folder)
    # The failed cases by name, the condition itself apart.
    cases = [case for case in result_type.tested(result, conditions) if case.state == "failed"]
    named = [case for case in cases if case.type != "fail-on"]
    failures = [f"  {_visible(case.name)}: {_visible(case.message)}" for case in named[:_SHOWN]]
    if more := len(named) - _SHOWN:
        failures += [f"  and {more:,} more"] if more > 0 else []
    lines = [
        f"{report.title}. {ruling.why}".rstrip(),
        *failures,
        report.sentence,
        error_rate,
        *(f"Before you rely on this: {_for_tests(_visible(case))}" for case in report.warnings),
        *(
            f"Left out: {_visible(case.name)}: {_visible(case.why)}"
            for case in report.left_out[:_SHOWN]
        ),
        f"Show more: ragwitness report {shlex.quote(str(_near(folder)))}",
        f"Page: {_near(folder / REPORT)}",
    ]
    return AssertionOutcome(ruling, "\n".join(filter(None, lines)), folder)


def _undecided(doubt: str) -> AssertionOutcome:
    from ragwitness.report.result_type import Ruling

    text = f"Nothing was sent: this test could decide nothing. {doubt}"
    return AssertionOutcome(Ruling(ExitCode.INCONCLUSIVE, "inconclusive"), text, None)


def _raise_or_warn(finding: AssertionOutcome, inconclusive: Inconclusive) -> None:
    """Raise, warn or skip as a finding asks for."""
    __tracebackhide__ = True
    # A failure is a failure; an undecided test ends as its author chose.
    if finding.ruling.code is ExitCode.FAILED:
        raise AssertionError(finding.text)
    if finding.ruling.code is not ExitCode.INCONCLUSIVE:
        return
    if inconclusive == "skip":
        raise unittest.SkipTest(finding.text)  # pytest knows it as well
    if inconclusive == "warn":
        warnings.warn(InconclusiveWarning(finding.text), stacklevel=4)
        return
    raise AssertionError(finding.text)


def _near(path: Path) -> Path:
    """Return a path as it is written from the current folder."""
    current = Path.cwd()
    return path.relative_to(current) if path.is_relative_to(current) else path


def _for_tests(warning: str) -> str:
    """Name a test's argument in place of the verb's option."""
    return warning.replace("choose another folder with --run", "name another release")


def _visible(text: str) -> str:
    from ragwitness.report import formatting as fmt

    return fmt.visible(text, 300)


# Conditions, folders and locks.


def _check(inconclusive: str) -> None:
    if inconclusive not in get_args(Inconclusive):
        raise InputError(
            f"An inconclusive test cannot {inconclusive!r}.", "Use: fail, warn or skip."
        )


def _kind(name: str, fail_on: Sequence[str]) -> tuple[ResultType[Any, Any], tuple[Any, ...]]:
    """Return the kind of result, and the conditions as it reads them."""
    from ragwitness.report.result_registry import result_type_named

    if isinstance(fail_on, str) or not fail_on:
        raise InputError(
            "fail_on needs one condition or more, as a list.", 'For example: fail_on=["in"]'
        )
    kind = result_type_named(name)
    return kind, kind.conditions(fail_on)


def _folder(
    runs: Path | str, what: str, target: object, release: str | None, settings: tuple[object, ...]
) -> Path:
    """Return the folder of a run; objects of one class in two tests are two systems."""
    from ragwitness.core.run_files import folder_of
    from ragwitness.targets.objects import wrap

    base = Path(runs)
    if isinstance(target, str):
        return folder_of(base, (what, target, release, settings), again=release is None)
    # No code says whether an object answers as it did: without a release nothing is resumed.
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    key = (what, wrap(target).name, test, release, settings)
    if release is not None:
        _refuse_twin(target, folder_of(base, key, again=False))
        return folder_of(base, key, again=False)
    attempt = 0
    while (folder := folder_of(base, (*key, attempt), again=False)).exists():
        attempt += 1
    return folder


_ASKED: dict[Path, object] = {}


def _refuse_twin(target: object, folder: Path) -> None:
    """Refuse a second object of this process that would be given the answers of the first."""
    if _ASKED.setdefault(folder, target) is not target:
        raise InputError(
            "Two systems in this test have the same type, and the same release.",
            "Give each its own release=, or wrap it with a name: rw.wrap(system, name=…)",
        )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait for another process at the same run (pytest-xdist), which then has the answers."""
    from filelock import FileLock

    from ragwitness.core.files import unwritable

    # The lock lies beside the folder, which does not exist yet.
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.with_name(f".{folder.name}.lock"))
        lock.acquire()
    except OSError as error:
        raise unwritable(folder, error, "Name another folder with runs=.") from error
    try:
        yield
    finally:
        lock.release()


def _digest(documents: Sequence[Document]) -> str:
    from ragwitness.crypto.hashing import text_digest

    return text_digest(text for document in documents for text in (document.id, document.text))
