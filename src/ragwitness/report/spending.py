"""The spending of a run at its target, as results keep it, and sentences about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragwitness.runner.budget import Budget, Use


@dataclass(frozen=True, slots=True)
class Spending:
    """The spending of a run folder at its target, all starts together.

    Attributes:
        queries: Queries that the target answered, or may have worked on.
        prompt_tokens: Tokens it read; an upper bound where it does not count.
        completion_tokens: Tokens it wrote; likewise.
        cost: Money, in the currency of the prices; None without prices.
        max_queries: Cap on queries; None without one.
        max_tokens: Cap on tokens.
        max_cost: Cap on money.
        unasked: Documents without a score because a cap refused a query.
        stopped_by: Name of that cap; None where none did.
        price_in: Of a million tokens read; None without prices.
        price_out: Of a million tokens written.
    """

    queries: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None = None
    max_queries: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    unasked: int = 0
    stopped_by: str | None = None
    price_in: float | None = None
    price_out: float | None = None


def spending(
    spent: Use, budget: Budget, stopped_by: str | None, outcomes: Iterable[Any]
) -> Spending:
    """Return the spending of a run folder, and the work that its caps prevented.

    Args:
        spent: By all starts together.
        budget: Caps and prices.
        stopped_by: Name of the cap that refused a query.
        outcomes: Of all documents, attacks or slots.
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


def answers_kept(outcomes: Sequence[Any]) -> list[str]:
    """Say so where answers were kept from an earlier start of the run."""
    queries = sum(outcome.queries for outcome in outcomes)
    reused = queries - sum(outcome.sent for outcome in outcomes)
    if not reused:
        return []
    return [
        f"{reused:,} of {queries:,} answers were kept from an earlier start of this run, not asked"
        " now; if the system has changed since, choose another folder with --run."
    ]


def unasked(spent: Spending, documents: int) -> list[str]:
    """Say so where a cap left documents without a score, and how to go on."""
    from ragwitness.runner.budget import OPTIONS

    if spent.stopped_by is None:
        return []
    return [
        f"{spent.unasked} of {documents} documents, calibration included, were not or not wholly"
        f" asked about: {spent.stopped_by} cap reached. The same command with a higher"
        f" {OPTIONS[spent.stopped_by]} resumes; nothing is asked twice."
    ]
