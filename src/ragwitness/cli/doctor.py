"""``ragwitness doctor``: measured capabilities of a target, and the audits that it admits."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ragwitness.cli.common import leave
from ragwitness.cli.options import JsonPath
from ragwitness.core.errors import CapabilityError, InputError
from ragwitness.core.quotes import quote
from ragwitness.core.types import ANSWER_SECONDS, Answer, Capability
from ragwitness.runner.task_options import Address, Headers, KeyEnv, Timeout

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ragwitness.core.types import Query
    from ragwitness.membership.auto_select import Pilot
    from ragwitness.runner.capabilities import CapabilityReport
    from ragwitness.runner.worker import Spender
    from ragwitness.targets.transport import Setback, TransportOptions

Result = TypeVar("Result")

_EVERY = 5.0  # seconds between two answers that are shown
AT_ONCE = 4
"""Questions that are under way at a time where a target is only looked at."""


def doctor(
    target: Address,
    pilot: bool = True,
    json_out: JsonPath = None,
    timeout: Timeout = ANSWER_SECONDS,
    key_env: KeyEnv = None,
    header: Headers = None,
) -> None:
    """Find out what a target can do and which audits it admits.

    It sends a few harmless queries, then those of a pilot, some hundred at most (--no-pilot leaves
    them out). Costs of an audit are estimated by ragwitness plan, without asking the target.

    Args:
        pilot: Whether to try the methods that auto chooses from on a few texts that the target does
            not hold, shown in the question and not shown.
    """
    from ragwitness.cli.steps import wait
    from ragwitness.membership.results.examination import Examination, PilotOutcome
    from ragwitness.runner.task_options import Reached

    display = _Shown()
    reached = Reached(timeout=timeout, retries=1, key_env=key_env, header=header)
    options = reached.transport(AT_ONCE, display.setback)
    # Capabilities are measured, not believed: an endpoint's name says little about its answers.
    report = wait(examine(target, options, display))
    # An audit is possible if everything it requires was seen, and no pilot failed to read it.
    possible, broken = admitted(report.capabilities)
    pilots = wait(_pilots(target, options, report, display)) if pilot else {}
    possible = [name for name in possible if name not in pilots or pilots[name].possible]
    outcomes = {n: PilotOutcome(p.possible, p.told, p.queries) for n, p in pilots.items()}
    report_seen = replace(report, notes=(*report.notes, *broken))
    # The file is written before the refusal: it is wanted then, too.
    leave(Examination(report_seen, tuple(possible), outcomes), json_out)
    if not possible:
        raise CapabilityError(
            "No audit can be run: the target answers with nothing that can be read"
            f"{report.silence and ': '}{report.silence}.",
            "Look at one answer of it by hand.",
        )


class _Shown:
    """Shows on standard error that answers come: the first, then one every few seconds."""

    def __init__(self) -> None:
        self._answers, self._shown_at = 0, -math.inf

    async def spend(self, query: Query, send: Callable[[Query], Awaitable[Result]]) -> Result:
        started = time.monotonic()
        answer = await send(query)
        self._answers += 1
        text = quote(answer.text, longest=48) if isinstance(answer, Answer) else "scores"
        if (now := time.monotonic()) >= self._shown_at + _EVERY:
            self._shown_at = now
            sys.stderr.write(f"answer {self._answers} after {now - started:.1f} s: {text}\n")
        return answer

    def setback(self, setback: Setback) -> None:
        cause = "not answered in time" if setback.late else "turned away, or not answered"
        if setback.again:
            hint = " (--timeout gives it more time)" * setback.late
            sys.stderr.write(f"a question was {cause}; it is asked again{hint}\n")


async def examine(
    target: str, options: TransportOptions, limiter: Spender | None = None
) -> CapabilityReport:
    """Measure what the target can do."""
    from ragwitness.runner.capabilities import measured
    from ragwitness.targets.resolve import open_target

    opened = await open_target(target, options)
    try:
        return await measured(opened, limiter)
    finally:
        await opened.close()


async def _pilots(
    target: str, options: TransportOptions, report: CapabilityReport, limiter: Spender
) -> dict[str, Pilot]:
    """Pilot the methods that auto chooses from, as far as the target gives what they need.

    A recording answers no questions but its own, so none is tried there.
    """
    from ragwitness.membership.auto_select import KINDS, run_pilot
    from ragwitness.membership.method_registry import configure
    from ragwitness.membership.plan import AuditPlan
    from ragwitness.membership.prepared import PreparedAudit
    from ragwitness.runner.capabilities import Recorded
    from ragwitness.targets.resolve import open_target
    from ragwitness.text.sample import load_sample

    sample = tuple(load_sample())
    opened = await open_target(target, options)
    pilots = {}
    try:
        for method, settings in () if isinstance(opened, Recorded) else KINDS:
            prepared = PreparedAudit("", AuditPlan(sample), method, configure(method, settings))
            audit, _ = prepared.fitted(report.alternatives)
            if audit.requires <= report.capabilities:
                pilots[method] = await run_pilot(opened, limiter, None, audit)
    finally:
        await opened.close()
    return pilots


def admitted(capabilities: frozenset[Capability]) -> tuple[list[str], list[str]]:
    """Return the names of the audits whose needs are met, and why others cannot be loaded."""
    from ragwitness.membership.method_registry import AUDITS, build_audit
    from ragwitness.models.model_registry import load_language_model

    # A method of another package may fail to load: that is a note, and no end.
    proxy = load_language_model("reader")
    names, broken = [], []
    for name in AUDITS.names():
        try:
            if build_audit(name, proxy).requires <= capabilities:
                names.append(name)
        except InputError as error:
            broken.append(error.message)
    return names, broken
