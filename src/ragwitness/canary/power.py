"""How many violating providers a plan would find, where that was measured on a real model.

The power depends on how a provider trains, and on the auditor's share of its votes. So a forecast
is by training, and stays between rows that were measured: more votes, or a larger share of all
votes, find no fewer providers. Outside them it is "not measured". No verdict hangs on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragwitness.canary.draw import Design
from ragwitness.canary.verdict import best_p_value
from ragwitness.core.errors import InputError
from ragwitness.stats.rates import proportion_interval


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """Violating policies of one condition: experiments/canary/README.md, "A real model".

    Attributes:
        training: Kind of training: see :data:`TRAININGS`.
        votes: Canary votes.
        share: Of all its votes that are canary votes.
        found: Policies with p at most .05.
        policies: In all.
    """

    training: str
    votes: int
    share: float
    found: int
    policies: int


TRAININGS = {
    "preference": "directly on votes (DPO, KTO)",
    "supervised": "on up-voted answers",
    "reward": "a reward model, then RL",
}
MODEL = "SmolLM2-135M-Instruct, one slot of 20 names, p at most .05"
MEASURED: tuple[MeasuredRow, ...] = (
    MeasuredRow("preference", 32, 1.0, 7, 12),
    MeasuredRow("supervised", 64, 1.0, 3, 12),
    MeasuredRow("reward", 64, 1.0, 0, 3),
    MeasuredRow("preference", 16, 1.0, 1, 2),
    MeasuredRow("preference", 128, 1.0, 3, 3),
)
OBEDIENCE = (0.3, 0.7)
"""Shares of obeying answers that were measured, or near enough to them."""


def found_share(training: str, votes: float, share: float) -> tuple[float, float] | None:
    """Return the limits of the share of violating providers that are found; None: not measured.

    Args:
        training: One of :data:`TRAININGS`.
        votes: Canary votes that a provider trains on.
        share: The auditor's share of all its votes, above 0 and at most 1.

    Returns:
        An interval at 95 % over all rows. Its lower end is the highest lower end of the exact
        intervals of rows with no more votes and no larger share. Its upper end is the lowest upper
        end of rows with no fewer votes and no smaller share.

    Raises:
        InputError: A value is outside its range.
    """
    if votes < 0 or not 0 < share <= 1:
        raise InputError("Power needs votes, and a share above 0 and at most 1.", "Give --share.")
    rows = [measured for measured in MEASURED if measured.training == training]
    lower = [measured for measured in rows if measured.votes <= votes and measured.share <= share]
    upper = [measured for measured in rows if measured.votes >= votes and measured.share >= share]
    if not lower or not upper:
        return None

    def ends(side: Sequence[MeasuredRow], end: int) -> Iterator[float]:
        # The best of several ends errs more often than each: they share the level (Bonferroni).
        level = 1 - 0.05 / len(side)
        return (proportion_interval(row.found, row.policies, level)[end] for row in side)

    return max(ends(lower, 0)), min(ends(upper, 1))


def power_lines(
    design: Design, votes: int, share: float | None = None, obedience: float | None = None
) -> Iterator[str]:
    """Yield the power of a plan, or why it is not known.

    Args:
        design: Settings.
        votes: Canary votes, of all slots.
        share: Of the provider's votes that are ours; None where nobody says.
        obedience: As measured; None while it was not.
    """
    best = best_p_value(design)
    if best is None:
        yield "power: unknown; compliant twins decide the paper's design"
        return
    if best > design.level:
        yield f"power: 0; the p-value is {best:.3g} at best, and the level {design.alpha}"
        return
    if share is None:
        yield f"power: {votes:,} canary votes; --share says what part of all votes that is"
        return
    if obedience is not None and not OBEDIENCE[0] <= obedience <= OBEDIENCE[1]:
        yield (
            f"power: not measured where {obedience:.0%} of the answers obey, only from"
            f" {OBEDIENCE[0]:.0%} to {OBEDIENCE[1]:.0%}"
        )
        return
    per_slot = votes // design.slots
    yield f"power: {per_slot:,} canary votes a slot, {said_share(share)} of all votes ({MODEL})"
    for training, words in TRAININGS.items():
        limits = found_share(training, per_slot, share)
        yield f"  trained {words}: " + (
            f"{limits[0]:.0%} to {limits[1]:.0%} of violating providers are found"
            if limits
            else f"not measured; measured: {_rows(training)}"
        )


def said_share(share: float) -> str:
    """Return a share as it is read: a small one as one in so many."""
    return f"{share:.0%}" if share >= 0.01 else f"1 in {1 / share:,.0f}"


def _rows(training: str) -> str:
    rows = [row for row in MEASURED if row.training == training]
    return (
        ", ".join(
            f"{row.found} of {row.policies} at {row.votes:,} votes, {said_share(row.share)} of all"
            for row in rows
        )
        or "nothing"
    )
