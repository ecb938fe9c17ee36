"""``ragwitness doctor``: what a target can do, measured, and what auditing it would cost."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from ragwitness.cli.common import leave, say_error
from ragwitness.cli.options import JsonPath, KnownOutIfAny, Sample
from ragwitness.core.errors import CapabilityError, InputError
from ragwitness.core.options import PathRole
from ragwitness.core.quotes import quote
from ragwitness.core.types import ANSWER_SECONDS, Answer, Capability
from ragwitness.runner.task_options import (
    Address,
    Headers,
    HowRead,
    KeyEnv,
    Paragraphs,
    PriceIn,
    PriceOut,
    Timeout,
)
from ragwitness.runner.task_runtime import as_documents

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ragwitness.core.types import Query
    from ragwitness.membership.pilot import Pilot
    from ragwitness.membership.plan import AuditPlan
    from ragwitness.runner.capabilities import CapabilityReport
    from ragwitness.runner.worker import Spender
    from ragwitness.targets.transport import Setback, TransportOptions

Result = TypeVar("Result")

_EVERY = 5.0  # seconds between two answers that are shown
AT_ONCE = 4
"""Questions that are under way at a time where a target is only looked at."""


def doctor(
    target: Address,
    documents: Annotated[str | None, PathRole.DOCUMENTS] = None,
    known_out: KnownOutIfAny = None,
    method: str = "all",
    sample: Sample = None,
    pilot: bool = True,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    json_out: JsonPath = None,
    timeout: Timeout = ANSWER_SECONDS,
    key_env: KeyEnv = None,
    header: Headers = None,
    *,
    how: HowRead,
    paragraphs: Paragraphs = False,
) -> None:
    """Find out what a target can do and which audits it admits.

    It sends a few harmless queries, then those of a pilot, some hundred at most (--no-pilot leaves
    them out). With --documents it also says what each audit would cost (in money too, where prices
    are given), how long it would take and what share of the members it could find; ragwitness plan
    says so without asking the target.

    Args:
        documents: The documents in question: also say what audits of them would cost.
        method: The audits to be counted: all, or names with commas between them.
        pilot: Whether to try the methods that auto chooses from on a few texts that the target does
            not hold, shown in the question and not shown.
    """
    from ragwitness.cli.plan import assumed, configs_of, counted, foresee, names_of
    from ragwitness.cli.steps import wait
    from ragwitness.membership.results.examination import Examination, PilotOutcome
    from ragwitness.runner.budget import Budget
    from ragwitness.runner.task_options import Reach

    # What can be refused without asking is refused first.
    plan = _plan(documents, known_out, how, paragraphs=paragraphs)
    wanted = None if method == "all" else configs_of(names_of(method), {})
    if plan is not None:
        wait(_refuse_unscorable(plan, wanted or configs_of(names_of(method), {})))
    budget = Budget(price_in=price_in, price_out=price_out)
    shown = _Shown()
    reach = Reach(timeout, 1, key_env, tuple(header or ()))
    options = reach.transport(AT_ONCE, shown.setback)
    # Capabilities are measured, not believed: an endpoint's name says little about what it returns.
    found = wait(examine(target, options, shown))
    # An audit is possible where everything it requires was seen, and no pilot failed to read it.
    possible, broken = admitted(found.capabilities)
    pilots = wait(_pilots(target, options, found, plan, shown)) if pilot else {}
    possible = [one for one in possible if one not in pilots or pilots[one].possible]
    configs: dict[str, Any] = {name: None for name in possible if wanted is None or name in wanted}
    outlook = None
    if plan is not None and configs:
        from ragwitness.membership.forecast import OutlookPlan

        counts = counted(sample, len(configs))
        asked = OutlookPlan(plan, assumed(configs), budget=budget, **counts)
        outlook = foresee(asked, configs, "reader", found.latency)
    told = {n: PilotOutcome(one.possible, one.told, one.queries) for n, one in pilots.items()}
    seen = replace(found, notes=(*found.notes, *broken))
    # The file is written before the last refusal: whoever asked for it gets it in that case, too.
    leave(Examination(seen, tuple(possible), told, outlook), json_out)
    if plan is not None and possible and not configs:
        raise CapabilityError(f"The target does not admit {method}.", "Leave --method out.")
    if not possible:
        raise CapabilityError(
            "No audit can be run: the target answers with nothing that can be read"
            f"{found.silence and ': '}{found.silence}.",
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
        why = "not answered in time" if setback.late else "turned away, or not answered"
        if setback.again:
            hint = " (--timeout gives it more time)" * setback.late
            sys.stderr.write(f"a question was {why}; it is asked again{hint}\n")


async def examine(
    target: str, options: TransportOptions, limiter: Spender | None = None
) -> CapabilityReport:
    """Ask the target what it can do."""
    from ragwitness.runner.capabilities import measured
    from ragwitness.targets.resolve import open_target

    opened = await open_target(target, options)
    try:
        return await measured(opened, limiter)
    finally:
        await opened.close()


async def _pilots(
    target: str,
    options: TransportOptions,
    found: CapabilityReport,
    plan: AuditPlan | None,
    limiter: Spender | None = None,
) -> dict[str, Pilot]:
    """Pilot the methods that auto chooses from, as far as the target gives what they need.

    A recording answers no questions but its own, so none is tried there.
    """
    from ragwitness.membership.auto_select import CANDIDATES
    from ragwitness.membership.methods.method_registry import configure
    from ragwitness.membership.pilot import needs_pilot, run_pilot
    from ragwitness.membership.plan import AuditPlan
    from ragwitness.membership.prepared import fitted
    from ragwitness.runner.capabilities import Recorded
    from ragwitness.targets.resolve import open_target
    from ragwitness.text.sample import load_sample

    known = plan.known_out if plan is not None and plan.known_out else tuple(load_sample())
    every = plan or AuditPlan(known)
    opened = await open_target(target, options)
    pilots = {}
    try:
        for method, settings in () if isinstance(opened, Recorded) else CANDIDATES:
            config = configure(method, settings)
            audit, _ = fitted(method, config, "reader", found.alternatives, every)
            if audit.requires <= found.capabilities and needs_pilot(audit):
                pilots[method] = await run_pilot(opened, limiter, None, audit, known)
    finally:
        await opened.close()
    return pilots


def _plan(
    documents: str | None, known_out: str | None, how: HowRead, *, paragraphs: bool
) -> AuditPlan | None:
    """Read the documents before anything is sent; None without any.

    Raises:
        InputError: They cannot be used, or there are only known ones.
    """
    from ragwitness.membership.plan import AuditPlan

    if documents is None and known_out is not None:
        raise InputError("--known-out serves --documents, which is missing.", "Give both.")
    if documents is None:
        return None
    read = partial(as_documents, how=how, note=say_error, paragraphs=paragraphs)
    return AuditPlan(read(documents), read(known_out))


async def _refuse_unscorable(plan: AuditPlan, configs: Mapping[str, Any]) -> None:
    """Refuse, before anything is sent, documents that no method that is asked for can score."""
    from ragwitness.membership.forecast import refuse_all_unscorable
    from ragwitness.membership.methods.method_registry import build_audit
    from ragwitness.models.model_registry import load_language_model

    proxy = load_language_model("reader")
    await refuse_all_unscorable([build_audit(n, proxy, c) for n, c in configs.items()], plan)


def admitted(capabilities: frozenset[Capability]) -> tuple[list[str], list[str]]:
    """Return the names of the audits whose needs are met, and why others cannot be loaded."""
    from ragwitness.membership.methods.method_registry import AUDITS, build_audit
    from ragwitness.models.model_registry import load_language_model

    proxy = load_language_model("reader")
    names, broken = [], []
    for name in AUDITS.names():
        try:
            if build_audit(name, proxy).requires <= capabilities:
                names.append(name)
        except InputError as error:
            broken.append(error.message)
    return names, broken
