"""``ragwitness plan``: costs and expected verdicts of audits before the first query."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ragwitness.cli.common import (
    console,
    leave,
    one_thread_per_answer,
    progress_bars,
    say_error,
)
from ragwitness.cli.options import JsonPath, KnownOutIfAny
from ragwitness.core.errors import InputError
from ragwitness.runner.task_options import (
    AuditSettings,
    Documents,
    HowRead,
    Paragraphs,
    PriceIn,
    PriceOut,
    Proxy,
)
from ragwitness.runner.task_runtime import as_documents, per_method

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ragwitness.membership.plan import AuditPlan
    from ragwitness.membership.results.forecast import Outlook
    from ragwitness.runner.budget import Budget


_RANKS = (
    "Nothing was sent. These figures are of ranks. With a reference model (the extra chat brings"
    " one) an audit needs no other document: e-values decide about each by itself."
)


def plan(
    documents: Documents,
    known_out: KnownOutIfAny = None,
    method: str = "all",
    options: AuditSettings = None,
    alpha: float = 0.05,
    proxy: Proxy = "reader",
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    json_out: JsonPath = None,
    *,
    how: HowRead,
    paragraphs: Paragraphs = False,
) -> None:
    """Estimate what audits would cost and find; nothing is sent.

    It counts queries, tokens and, with prices, money on a sample of the documents. It also says
    whether the documents known to be outside suffice for a decision, and simulates the share of the
    documents inside that the audits would find.

    Args:
        method: The audits: all, or names with commas between them.
        alpha: The share of wrong accusations that is accepted.
    """
    from ragwitness.membership.auto_select import ALONE
    from ragwitness.membership.method_registry import BETTING, configure
    from ragwitness.membership.plan import AuditPlan
    from ragwitness.membership.results.assumptions import VerdictReach
    from ragwitness.models.smollm2 import NAME, can_be_had
    from ragwitness.runner.budget import Budget
    from ragwitness.text.overlap import without_copies

    # Options and documents are read; nothing here opens a target.
    configs = _configs_of(method, per_method(options))
    read = partial(as_documents, how=how, note=say_error, paragraphs=paragraphs)
    audit = AuditPlan(documents=read(documents), known_out=read(known_out), alpha=alpha)
    reach = VerdictReach(alpha / 2, len(without_copies(audit.documents)), len(audit.known_out))
    betting = [name for name in BETTING if name in configs and can_be_had()]
    if reach.hardly and betting:
        # E-values decide where ranks cannot, by those methods that bet on words.
        audit = replace(audit, references=(NAME,))
        by_method = per_method(options)
        configs = {
            name: configure(name, {**dict(ALONE).get(name, {}), **by_method.get(name, {})})
            for name in betting
        }
    leave(foresee(audit, configs, proxy, Budget(price_in=price_in, price_out=price_out)), json_out)
    console().print("Nothing was sent." if known_out or audit.references else _RANKS)


def foresee(
    plan: AuditPlan,
    configs: Mapping[str, Any],
    proxy: str,
    budget: Budget,
    latency: float | None = None,
) -> Outlook:
    """Count and simulate, with a progress bar.

    Args:
        plan: Documents and level.
        configs: By registered name: the audit's configuration, None for the defaults.
        proxy: The auditor's own model.
        budget: Prices, where they are known.
        latency: Measured seconds per short answer.
    """
    from ragwitness.membership.forecast import look_ahead
    from ragwitness.membership.method_registry import build_audit
    from ragwitness.membership.plan import among
    from ragwitness.models.model_registry import load_language_model

    # Audits may depend on all documents together.
    model, every = load_language_model(proxy), plan.every_document
    audits = {
        name: among(build_audit(name, model, config), every) for name, config in configs.items()
    }
    one_thread_per_answer()
    with progress_bars(console()) as progress:
        work = look_ahead(plan, audits, model, budget=budget, latency=latency, progress=progress)
        return asyncio.run(work)


def _configs_of(method: str, options: Mapping[str, Mapping[str, object]]) -> dict[str, Any]:
    """Configure every audit of ``all``, or of names with commas between them.

    Raises:
        InputError: There is no name, an unknown name, field or value, or options for an audit that
            is not named.
    """
    from ragwitness.membership.method_registry import AUDITS, configure

    # Names keep their order, each once.
    names = tuple(AUDITS)
    if method != "all":
        names = tuple(dict.fromkeys(filter(None, (name.strip() for name in method.split(",")))))
    if not names:
        raise InputError("There is no method to plan with.", f"Available: {', '.join(AUDITS)}.")
    if unplanned := sorted(set(options) - set(names)):
        raise InputError(
            f"There are options for {unplanned[0]!r}, which is not planned.",
            f"Planned: {', '.join(names)}.",
        )
    return {name: configure(name, options.get(name)) for name in names}
