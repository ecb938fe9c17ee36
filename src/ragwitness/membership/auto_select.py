"""``--method auto``: the first audit that the target, the documents and the caps admit.

A pilot must have shown that it can read this target (:mod:`ragwitness.membership.pilot`).

The order of the candidates is that of what they find on chat models that nobody here trained
(``docs/design/methods.md``); the first needs a system that shows what it retrieved.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ragwitness.core.errors import CapabilityError, InputError
from ragwitness.core.types import Audit, Capability, Document
from ragwitness.membership.forecast import refuse_all_unscorable, rehearse
from ragwitness.membership.methods.method_registry import build_audit, configure
from ragwitness.membership.pilot import Pilot, needs_pilot, pilot_use
from ragwitness.membership.plan import AuditPlan, Stages, among, stages_of
from ragwitness.membership.prepared import fitted_config
from ragwitness.models.base import LanguageModel
from ragwitness.runner.budget import OPTIONS, Budget, Use
from ragwitness.runner.capabilities import CapabilityReport

AUTO = "auto"
CANDIDATES: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("passages", {}),
    ("runon", {}),
    ("s-rag:few", {}),
    ("mba", {}),
    ("rag-mia", {}),
)
"""Methods with their options, the best first; the last asks least."""

USUAL = CANDIDATES[1]
"""What is foreseen before the target was asked: few systems show what they retrieved."""

Piloting: TypeAlias = Callable[[Audit, Sequence[Document]], Awaitable[Pilot]]
"""Tries an audit on documents known to be outside, as
:func:`~ragwitness.membership.pilot.run_pilot` does once it has the target."""

_SAMPLE = 5  # documents of each kind that are rehearsed
_READABLE = 0.5  # share of them that a method must have a question for


@dataclass(frozen=True, slots=True)
class Choice:
    """A method that was chosen.

    Attributes:
        method: Registered name.
        config: Its configuration.
        why: One line: what it is, what it costs, and why none before it.
        asked: Queries so far: those that say what the target gives, and of all pilots.
    """

    method: str
    config: Any
    why: str
    asked: int


@dataclass(frozen=True, slots=True)
class _Fit:
    """How a candidate fits, what it and its pilot take, and what speaks against it in words."""

    audit: Audit
    method: str
    config: Any
    queries: float = 0.0
    whole: Use = Use()  # noqa: RUF009  # frozen
    trial: Use = Use()  # noqa: RUF009
    unusable: str = ""
    over: str = ""


async def choose(
    plan: AuditPlan,
    seen: CapabilityReport,
    proxy: LanguageModel,
    budget: Budget,
    piloting: Piloting,
) -> Choice:
    """Return the first candidate that the target, the documents and the caps admit.

    Where none stays within the caps, it is the one that asks least; a run that a cap ends can be
    resumed.

    Args:
        plan: Documents in question and known to be outside.
        seen: What the target was seen to give, and what that took.
        proxy: The auditor's own model.
        budget: Caps and prices.
        piloting: Tries whether answers can be read, candidate by candidate until they can.

    Raises:
        CapabilityError: No candidate can be used at all.
        InputError: A cap ended a pilot.
    """
    stages, passed = stages_of(plan, shadow=False), list[str]()
    known, spent = stages.reference.documents, Use(seen.requests)

    async def in_turn() -> AsyncIterator[_Fit]:
        # In the order given; what would pass a cap comes last, and what asks least of it first.
        dear = []
        for method, options in CANDIDATES:
            config = fitted_config(configure(method, options), seen.alternatives)
            audit = among(build_audit(method, proxy, config), plan.every_document)
            fit = await _fit(_Fit(audit, method, config), stages, seen, proxy)
            used = spent + fit.trial
            why = fit.unusable or _over("its pilot, with what is asked before it,", used, budget)
            over = _over("the whole", used + fit.whole, budget)
            if why or over:
                passed.append(f"not {audit.name}: {why or over}")
                dear += [] if why else [replace(fit, over=over)]
            else:
                yield fit
        for fit in sorted(dear, key=lambda one: one.queries):
            yield fit

    async for fit in in_turn():
        # Its answers must be readable; that is tried where nothing else speaks against it.
        found = await piloting(fit.audit, known) if needs_pilot(fit.audit) else None
        if found:
            spent += replace(fit.trial, queries=found.queries)
        if found is None or found.possible:
            return Choice(fit.method, fit.config, _why(fit, found, passed), spent.queries)
        passed.append(f"not {fit.audit.name}: {found.told}")
    raise CapabilityError(
        f"No method can be chosen ({'; '.join(passed)}).",
        "Look at answers of the target: ragwitness doctor TARGET. A method that is named with"
        " --method is not piloted.",
    )


async def refuse_beforehand(plan: AuditPlan, proxy: LanguageModel, budget: Budget) -> None:
    """Refuse, before anything is sent, what no candidate can do.

    Raises:
        InputError: There is nothing that could be scored, or each pilot alone would pass a cap.
    """
    audits = [
        among(build_audit(m, proxy, configure(m, options)), plan.every_document)
        for m, options in CANDIDATES
    ]
    await refuse_all_unscorable(audits, plan)
    least = audits[-1]
    pilot = await pilot_use(least, plan.known_out, proxy)
    if over := _over(f"the pilot of {least.name}, which asks least,", pilot, budget):
        raise InputError(
            f"No pilot stays within the caps, so nothing was sent: {over}.",
            "Raise it; or name a --method, which is not piloted.",
        )


async def _fit(fit: _Fit, stages: Stages, seen: CapabilityReport, proxy: LanguageModel) -> _Fit:
    # 1. What it needs, the target must give.
    if missing := sorted(fit.audit.requires - seen.capabilities):
        silent = f": {seen.silence}" if seen.silence and Capability.TEXT in missing else ""
        return replace(fit, unusable=f"the target does not give {', '.join(missing)}{silent}")
    # 2. It must have questions for most documents, tried on the first few of each kind.
    use = Use()
    for part in filter(None, stages.documents.values()):
        tried = part[:_SAMPLE]
        outcomes, each = await rehearse(fit.audit, tried, proxy)
        read = sum(bool(one.queries) for one in outcomes)
        if read < _READABLE * len(tried):
            return replace(fit, unusable=f"it can ask about {read} of {len(tried)} documents tried")
        use += each.of(len(part))
    trial = await pilot_use(fit.audit, stages.reference.documents, proxy)
    return replace(fit, queries=use.queries / stages.count, whole=use, trial=trial)


def _over(what: str, use: Use, budget: Budget) -> str:
    """Say which cap would be passed, if one would."""
    if cap := budget.passed(use):
        took = f"{what} would take {use.queries:,} queries and {use.tokens:,} tokens"
        return f"{took}, more than {OPTIONS[cap]} allows"
    return ""


def _why(fit: _Fit, pilot: Pilot | None, passed: Sequence[str]) -> str:
    beyond = "; no method stays within the caps, this one asks least" if fit.over else ""
    queries = "1 query" if fit.queries == 1 else f"{fit.queries:.3g} queries"
    told = f"auto chose {fit.audit.name}: {queries} a document{beyond}"
    seen = pilot.told if pilot else "the target shows the passages that it retrieves"
    return "; ".join((told, seen, *passed)) + "."
