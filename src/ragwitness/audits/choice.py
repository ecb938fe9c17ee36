"""``--method auto``: the first audit that the target, the documents and the caps admit.

A pilot must have shown that it can read this target (:mod:`ragwitness.audits.pilot`).

The order of the candidates is that of what they find on chat models that nobody here trained
(``docs/design/methods.md``); the first needs a system that shows what it retrieved.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ragwitness.asking.budget import OPTIONS, Budget, Use
from ragwitness.audits.forecast import refuse_all_unscorable, rehearse
from ragwitness.audits.order import fitted_config
from ragwitness.audits.pilot import Pilot, needs_pilot
from ragwitness.audits.plan import AuditPlan, among, choose_reference, distinct
from ragwitness.errors import CapabilityError
from ragwitness.membership.registry import build_audit, configure
from ragwitness.models.base import LanguageModel
from ragwitness.types import Audit, Capability, Document

AUTO = "auto"
CANDIDATES: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("passages", {}),
    ("runon", {}),
    ("s-rag:few", {}),
    ("mba", {}),
    ("rag-mia", {}),
)
"""Methods with their options, the best first."""

USUAL = CANDIDATES[1]
"""What is foreseen before the target was asked: few systems show what they retrieved."""

Piloting: TypeAlias = Callable[[Audit, Sequence[Document]], Awaitable[Pilot]]
"""Tries an audit on documents known to be outside, as :func:`~ragwitness.audits.pilot.run_pilot`
does once it has the target."""

_SAMPLE = 5  # documents of each kind that are rehearsed
_READABLE = 0.5  # share of them that a method must have a question for


@dataclass(frozen=True, slots=True)
class Choice:
    """A method that was chosen.

    Attributes:
        method: Registered name.
        config: Its configuration.
        why: One line: what it is, what it costs, and why none before it.
        piloted: Queries of all pilots.
    """

    method: str
    config: Any
    why: str
    piloted: int = 0


@dataclass(frozen=True, slots=True)
class _Fit:
    """How a candidate fits; in words, why it cannot be used, or which cap it would pass."""

    audit: Audit
    method: str
    config: Any
    queries: float = 0.0
    unusable: str = ""
    over: str = ""
    pilot: Pilot | None = None


async def choose(
    plan: AuditPlan,
    seen: frozenset[Capability],
    proxy: LanguageModel,
    budget: Budget,
    piloting: Piloting | None = None,
    alternatives: int = 20,
) -> Choice:
    """Return the first candidate that the target, the documents and the caps admit.

    Where none stays within the caps, it is the one that asks least; a run that a cap ends can be
    resumed.

    Args:
        plan: Documents in question and known to be outside.
        seen: What the target was seen to give.
        proxy: The auditor's own model.
        budget: Caps and prices.
        piloting: Tries at the target whether its answers can be read, candidate by candidate until
            one can; None believes every one.
        alternatives: How many the target gives per token.

    Raises:
        CapabilityError: No candidate can be used at all.
        InputError: A cap ended a pilot.
    """
    known = choose_reference(distinct(plan.known_out), False, ()).documents
    passed: list[str] = []
    dear: list[_Fit] = []
    spent = 0
    for method, options in CANDIDATES:
        fit = await _fit(plan, method, options, known, seen, proxy, budget, alternatives)
        if not (fit.unusable or fit.over):
            fit = await _piloted(fit, known, piloting)
            spent += fit.pilot.queries if fit.pilot else 0
            if not fit.unusable:
                return Choice(method, fit.config, _why(fit, passed), spent)
        passed.append(f"not {fit.audit.name}: {fit.unusable or fit.over}")
        dear += [fit] if not fit.unusable else []
    for fit in sorted(dear, key=lambda one: one.queries):
        least = await _piloted(fit, known, piloting)
        spent += least.pilot.queries if least.pilot else 0
        if not least.unusable:
            return Choice(least.method, least.config, _why(least, passed), spent)
        passed.append(f"nor {least.audit.name}: {least.unusable}")
    raise CapabilityError(
        f"No method can be chosen ({'; '.join(passed)}).",
        "Look at answers of the target: ragwitness doctor TARGET. A method that is named with"
        " --method is not piloted.",
    )


async def refuse_unscorable_by_all(plan: AuditPlan, proxy: LanguageModel) -> None:
    """Refuse documents that no candidate has a question for, before anything is sent.

    Raises:
        InputError: There is nothing that could be scored.
    """
    parts = {"documents": plan.documents, "known-out documents": plan.known_out}
    audits = {m: build_audit(m, proxy, configure(m, options)) for m, options in CANDIDATES}
    await refuse_all_unscorable(audits, parts)


async def _fit(
    plan: AuditPlan,
    method: str,
    options: Mapping[str, object],
    known: Sequence[Document],
    seen: frozenset[Capability],
    proxy: LanguageModel,
    budget: Budget,
    alternatives: int,
) -> _Fit:
    config = fitted_config(configure(method, options), alternatives)
    audit = among(build_audit(method, proxy, config), plan.every_document)
    fit = _Fit(audit, method, config)
    # 1. What it needs, the target must give.
    if missing := sorted(audit.requires - seen):
        return replace(fit, unusable=f"the target does not give {', '.join(missing)}")
    # 2. It must have questions for most documents, tried on the first few of each kind.
    use = Use()
    for part in filter(None, (plan.documents, known)):
        tried, n = part[:_SAMPLE], len(part)
        outcomes, spent = await rehearse(audit, tried, proxy)
        read = sum(bool(one.queries) for one in outcomes)
        if read < _READABLE * len(tried):
            return replace(fit, unusable=f"it can ask about {read} of {len(tried)} documents tried")
        use += Use(*(round(n * each) for each in (spent.queries, spent.sent, spent.answer)))
    each = use.queries / (len(plan.documents) + len(known))
    fit = replace(fit, queries=each)
    # 3. The whole run must stay within the caps, as far as they are given.
    for cap, wanted, most in (
        ("query", use.queries, budget.queries),
        ("token", use.tokens, budget.tokens),
        ("cost", budget.price(use), budget.cost),
    ):
        if wanted is not None and most is not None and wanted > most:
            over = f"the whole would take {wanted:,.4g}, and {OPTIONS[cap]} is {most:,}"
            return replace(fit, over=over)
    return fit


async def _piloted(fit: _Fit, known: Sequence[Document], piloting: Piloting | None) -> _Fit:
    """The target's answers must be readable; that is tried where nothing else speaks against it."""
    if piloting is None or not needs_pilot(fit.audit):
        return fit
    found = await piloting(fit.audit, known)
    return replace(fit, pilot=found, unusable="" if found.possible else found.told)


def _why(fit: _Fit, passed: Sequence[str]) -> str:
    beyond = "; no method stays within the caps, this one asks least" if fit.over else ""
    told = f"auto chose {fit.audit.name}: {fit.queries:.3g} queries a document{beyond}"
    return "; ".join((told, *([fit.pilot.told] if fit.pilot else []), *passed)) + "."
