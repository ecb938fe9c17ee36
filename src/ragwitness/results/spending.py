"""What a run has spent at its target, as results keep it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spending:
    """What a run folder has spent at its target, all starts together.

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
