"""The four questions, each in a few lines of Python; reached as ``ragwitness.NAME``.

::

    import ragwitness as rw

    result = rw.audit("http://127.0.0.1:8000/v1", "mine.jsonl", known_out="outside.jsonl")
    leaks = rw.leak("http://127.0.0.1:8000/v1", "corpus.jsonl", prompts=50)
    bounds = rw.bounds(epsilon=1.0, delta=1e-6, queries=1000, accounts=16)
    scope = rw.audit_as({"bob": "BOB_KEY"}, "hers", "outside.jsonl", target="http://h/v1")
    verdict = rw.verify("bundle.zip", "trust.json")
    plan = rw.plan_canaries("examples.jsonl", "canaries")
    safe = rw.synthesize("corpus.jsonl", method="redact", out="safe.jsonl")

The functions block until they are done, also inside a notebook. Asynchronous programs use what
:func:`audit` is made of: ``open_target``, ``build_audit`` and ``run_audit``. A function
with a verb of its name shares the options of that verb's task (:mod:`ragwitness.tasks`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, get_type_hints

from ragwitness.canary.task import DrawTask, ProbeTask
from ragwitness.comparison.task import CompareTask
from ragwitness.core.errors import InputError
from ragwitness.evidence.task import VerifyTask
from ragwitness.leakage.task import LeakTask
from ragwitness.membership.evaluation_task import EvaluateTask
from ragwitness.membership.marks.task import MarksTask, MarkTask
from ragwitness.membership.task import AuditTask, as_accounts
from ragwitness.runner.task_options import Texts
from ragwitness.runner.task_runtime import own_folder
from ragwitness.synthesis.task import SynthesizeTask

if TYPE_CHECKING:
    from ragwitness.canary.traces import Trace
    from ragwitness.membership.results.scope import ScopeResult
    from ragwitness.privacy.bounds import Bounds

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Done = TypeVar("_Done", covariant=True)


class _Task(Protocol[_Done]):
    """A task that can be carried out."""

    def carry_out(self) -> _Done:
        """Do it, and return its result."""
        ...


def _carried(task: Callable[_P, _Task[_R]]) -> Callable[_P, _R]:
    """Return a function of the arguments of a task that carries it out."""

    @functools.wraps(task)
    def carried(*given: _P.args, **named: _P.kwargs) -> _R:
        return task(*given, **named).carry_out()

    hints, shape = get_type_hints(task), inspect.signature(task)
    text = [
        parameter.replace(annotation=hints[name]) for name, parameter in shape.parameters.items()
    ]
    carried.__signature__ = shape.replace(parameters=text)  # type: ignore[attr-defined]
    return carried


audit = _carried(AuditTask)
audit_marks = _carried(MarksTask)
mark = _carried(MarkTask)
leak = _carried(LeakTask)
plan_canaries = _carried(DrawTask)
probe_canaries = _carried(ProbeTask)
synthesize = _carried(SynthesizeTask)
compare = _carried(CompareTask)
evaluate = _carried(EvaluateTask)
verify = _carried(VerifyTask)


def audit_as(
    accounts: Mapping[str, object],
    documents: Texts,
    known_out: Texts,
    target: object = None,
    **options: Any,
) -> ScopeResult:
    """Find out which accounts reach documents that they must not, as ``audit --as`` does.

    Args:
        accounts: For each, by its name: the variable of the environment with its key, or the
            system as this account reaches it, given as :func:`audit` takes a target.
        documents: The documents in question.
        known_out: Documents like them that no account reaches.
        target: The system, where accounts differ by their keys alone.
        options: Further options of :func:`audit`. ``alpha`` holds for all accounts together, and
            each has a folder of its name in ``run``.

    Raises:
        InputError: There is no account, or an option cannot be used.
        CapabilityError: The target lacks what the method requires.
        TargetError: The target cannot be reached or does not speak the protocol.
    """
    from ragwitness.membership.results.scope import scope_of

    if not accounts:
        raise InputError("No account is named.", 'An example: {"bob": "BOB_KEY"}')
    task = AuditTask(target, documents, known_out=known_out, **options)
    folder = own_folder(task.run, documents, known_out)
    audits = {
        name: replace(own_task, run=folder and folder / name).carry_out(order)
        for name, (own_task, order) in as_accounts(task, accounts).items()
    }
    return scope_of(audits, task.alpha)


def bounds(
    *,
    delta: float,
    queries: int,
    accounts: int,
    epsilon: float | None = None,
    sigma: float | None = None,
    sensitivity: float = 1.0,
) -> Bounds:
    """Say what accounts that pool their answers learn: by the paper's theorem, and exactly.

    Args:
        delta: Delta that each account is promised.
        queries: Queries of one account in a window.
        accounts: Accounts that pool their answers, k.
        epsilon: Epsilon that each account is promised; the noise follows by (3.4) of the paper.
        sigma: The committed standard deviation of the noise instead, in units of one score.
        sensitivity: L2 change of one score when one document changes.

    Raises:
        InputError: A value is outside its range, or there is neither ``epsilon`` nor ``sigma``.
    """
    from ragwitness.privacy.bounds import ServiceTerms, joint_bounds

    return joint_bounds(ServiceTerms(delta, queries, accounts, epsilon, sigma, sensitivity))


def plant_canaries(folder: Path | str) -> tuple[Trace, ...]:
    """Write what is to be sent, and return it: document, query and vote of each trace, in order.

    Args:
        folder: From :func:`plan_canaries`.

    Raises:
        InputError: The folder holds no plan, or its draw waits for a beacon.
        VerificationError: The plan is not the one committed to.
    """
    from ragwitness.canary.folder import read_plan, write_traces

    plan = read_plan(Path(folder))
    plan.draw()
    plan.check()
    traces = tuple(plan.traces())
    write_traces(Path(folder), plan, traces)
    return traces


def notebook_html(value: object) -> str:
    """Return a value as HTML for a notebook.

    Args:
        value: A result of any kind, or what ``bounds`` or ``verify`` returned.
    """
    from ragwitness.collusion.result import JointBounds
    from ragwitness.privacy.bounds import Bounds
    from ragwitness.report.html import fragment
    from ragwitness.report.result_registry import result_type_for

    if isinstance(value, Bounds):
        value = JointBounds(value)
    return fragment(result_type_for(value).report(value))
