"""The four questions, each in a few lines of Python; reached as ``ragwitness.NAME``.

::

    import ragwitness as rw

    result = rw.audit("http://127.0.0.1:8000/v1", "mine.jsonl", known_out="outside.jsonl")
    leaks = rw.leak("http://127.0.0.1:8000/v1", "corpus.jsonl", prompts=50)
    bounds = rw.bounds(epsilon=1.0, delta=1e-6, queries=1000, accounts=16)
    verdict = rw.verify("bundle.zip", "trust.json")
    plan = rw.plan_canaries("examples.jsonl", "canaries")
    safe = rw.synthesize("corpus.jsonl", method="redact", out="safe.jsonl")

The functions block until they are done, also inside a notebook. Asynchronous programs use what
:func:`audit` is made of: ``open_target``, ``build_audit`` and ``run_audit``. What a function takes
that has a verb of its name is declared by their errand (:mod:`ragwitness.errands`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar, get_type_hints

from ragwitness.errands.audit import AuditErrand
from ragwitness.errands.canary import DrawErrand, ProbeErrand
from ragwitness.errands.compare import CompareErrand
from ragwitness.errands.evaluate import EvaluateErrand
from ragwitness.errands.leak import LeakErrand
from ragwitness.errands.synthesize import SynthesizeErrand

if TYPE_CHECKING:
    from ragwitness.attest.verdict import BundleVerdict
    from ragwitness.canary.traces import Trace
    from ragwitness.privacy.accounting.bounds import Bounds

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Done = TypeVar("_Done", covariant=True)


class _Errand(Protocol[_Done]):
    """An errand that can be carried out."""

    def carry_out(self) -> _Done:
        """Do it, and return its result."""
        ...


def _carried(errand: Callable[_P, _Errand[_R]]) -> Callable[_P, _R]:
    """Return a function of the arguments of an errand that carries it out."""

    @functools.wraps(errand)
    def carried(*given: _P.args, **named: _P.kwargs) -> _R:
        return errand(*given, **named).carry_out()

    hints, shape = get_type_hints(errand), inspect.signature(errand)
    told = [one.replace(annotation=hints[name]) for name, one in shape.parameters.items()]
    carried.__signature__ = shape.replace(parameters=told)  # type: ignore[attr-defined]
    return carried


audit = _carried(AuditErrand)
leak = _carried(LeakErrand)
plan_canaries = _carried(DrawErrand)
probe_canaries = _carried(ProbeErrand)
synthesize = _carried(SynthesizeErrand)
compare = _carried(CompareErrand)
evaluate = _carried(EvaluateErrand)


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
    from ragwitness.privacy.accounting.bounds import ServiceTerms, joint_bounds

    return joint_bounds(ServiceTerms(delta, queries, accounts, epsilon, sigma, sensitivity))


def verify(bundle: Path | str, trust: Path | str | None = None) -> BundleVerdict:
    """Check a sealed file by itself: no network, no index.

    Args:
        bundle: File that ``ragwitness seal`` (an evidence pack) or ``ragwitness attest prove`` (the
            bundle of an audit window) wrote.
        trust: For a bundle: file with what the verifier knows and accepts by itself (whose log,
            whose setup, which policy, which randomness); without it a bundle cannot pass.

    Raises:
        InputError: A file cannot be read.
        MissingExtraError: The extra ``verify`` is not installed.
    """
    from ragwitness.attest.bundle import MAX_ARCHIVE
    from ragwitness.attest.trust import parse_trust
    from ragwitness.evidence.kinds import SEALED, sealed_kind
    from ragwitness.kit.files import map_file, read_file

    known = None if trust is None else parse_trust(read_file(Path(trust)))
    data = map_file(Path(bundle), MAX_ARCHIVE)
    kind = sealed_kind(data)
    found: BundleVerdict = SEALED.load(kind)(data, *([known] if kind == "bundle.json" else []))
    return found


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
