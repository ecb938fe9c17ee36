"""What a reader must be told beside the verdicts: what was in use, and what to beware of."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ragwitness.runs.budget import OPTIONS, Budget, Use
from ragwitness.runs.calibration import Reference
from ragwitness.runs.plan import AuditPlan
from ragwitness.runs.result import Spending
from ragwitness.runs.statistic import Statistic
from ragwitness.runs.worker import Outcome
from ragwitness.stats import documents_needed
from ragwitness.types import Audit, Verdict

__all__ = [
    "answers_kept",
    "cautions",
    "described",
    "in_use",
    "spending",
    "unasked",
    "unvaried",
    "words_read",
]

_SHORT = 60  # characters; longer settings are prompts


def in_use(plan: AuditPlan, audit: Audit, statistic: Statistic) -> dict[str, str]:
    """Return everything in use, as label and value."""
    found = {"method": audit.name, **described(audit)}
    if proxy := getattr(audit, "proxy", None):
        found["difficulty"] = f"{proxy.name}, no context"
    if statistic.classifier and statistic.shadow:
        inside = {
            key: str(value) for key, value in statistic.shadow.target.system.describe().items()
        }
        found["audit classifier"] = statistic.classifier.name
        found["auxiliary documents"] = (
            "given" if plan.auxiliary else "generated corpus of the package"
        )
        found |= {f"shadow {key}": value for key, value in inside.items()}
    return found | {"correction": "Benjamini-Hochberg over all scored documents"}


def described(audit: Audit) -> dict[str, str]:
    """The audit's own words about its parameters, else every field that is short enough."""
    own = getattr(audit, "describe", None)
    if own is not None:
        return dict(own())
    config = getattr(audit, "config", None)
    if config is None:
        return {}
    fields = {field.name: str(getattr(config, field.name)) for field in dataclasses.fields(config)}
    return {name.replace("_", " "): text for name, text in fields.items() if len(text) <= _SHORT}


def words_read(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Say how many probe words could be read, and how many only up to a bound."""
    total = {
        key: int(sum(o.score.details.get(key, 0.0) for o in outcomes))
        for key in ("probes", "unread", "censored")
    }
    if not total["probes"]:
        return {}
    read = {
        "probe words read": f"{total['probes'] - total['unread']} of {total['probes']},"
        f" {total['censored']} of them only as a bound"
    }
    sampled = [o.score.details["alike"] for o in outcomes if o.score.details.get("samples")]
    if any(sampled):
        read["samples that never differed"] = (
            f"of {int(sum(sampled))} of {len(sampled)} documents, counted as one each"
        )
    return read


def unvaried(outcomes: Sequence[Outcome]) -> list[str]:
    """Say so where answers were sampled, and none of any document's ever differed."""
    sampled = [o for o in outcomes if o.score.details.get("samples")]
    if not sampled or not all(o.score.details["alike"] for o in sampled):
        return []
    return [
        "The target does not seem to sample: every answer was like the first one to the same"
        " question. They count as one each, so probabilities are known only within wide intervals."
    ]


def answers_kept(outcomes: Sequence[Outcome]) -> list[str]:
    """Say so where answers were not asked for now."""
    queries = sum(outcome.queries for outcome in outcomes)
    kept = queries - sum(outcome.sent for outcome in outcomes)
    if not kept:
        return []
    return [
        f"{kept:,} of {queries:,} answers were kept from an earlier start of this run, not asked"
        " now; if the system has changed since, choose another folder with --run."
    ]


def spending(
    spent: Use, budget: Budget, stopped_by: str | None, outcomes: Sequence[Outcome]
) -> Spending:
    """Return what a run folder has spent, and what its caps left unasked.

    Args:
        spent: By all starts together.
        budget: Caps and prices.
        stopped_by: Name of the cap that refused a query.
        outcomes: Of all documents.
    """
    return Spending(
        queries=spent.queries,
        prompt_tokens=spent.prompt,
        completion_tokens=spent.completion,
        cost=budget.price(spent),
        max_queries=budget.queries,
        max_tokens=budget.tokens,
        max_cost=budget.cost,
        unasked=sum(outcome.capped for outcome in outcomes),
        stopped_by=stopped_by,
        price_in=budget.price_in,
        price_out=budget.price_out,
    )


def unasked(spent: Spending, documents: int) -> list[str]:
    """Say so where a cap left documents without a score, and how to go on."""
    if spent.stopped_by is None:
        return []
    return [
        f"{spent.unasked} of {documents} documents, calibration included, were not or not wholly"
        f" asked about: {spent.stopped_by} cap reached. The same command with a higher"
        f" {OPTIONS[spent.stopped_by]} resumes; nothing is asked twice."
    ]


def cautions(
    plan: AuditPlan,
    reference: Reference,
    scores: Sequence[float],
    verdicts: Sequence[Verdict],
) -> list[str]:
    """Say what to beware of before relying on a verdict."""
    found = []
    if reference.warning:
        found.append(reference.warning)
    needed = documents_needed(plan.alpha)
    if len(scores) < needed:
        found.append(
            f"Only {len(scores)} known-outside documents could be scored; no p-value can reach"
            f" {plan.alpha:g} with fewer than {needed}. Give more with --known-out."
        )
    lost = sum(verdict.score is None for verdict in verdicts)
    if lost * 5 > len(verdicts):
        found.append(f"{lost} of {len(verdicts)} documents could not be scored; see the reasons.")
    return found
