"""How many violating providers a plan would find, where that was measured on a real model.

The power depends on how a provider trains, and on the auditor's share of its votes. So a forecast
is by training, and follows from measured rows: more votes, or a larger share of all votes, find no
fewer providers. So a row bounds every plan with fewer votes or a smaller share from above.
A plan that no row bounds is "not measured". No verdict hangs on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from ragwitness.canary.draw import Design
from ragwitness.canary.rank_test import divisions
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
        intervals of rows with no more votes and no larger share, else 0. Its upper end is the
        lowest upper end of rows with no fewer votes and no smaller share, else 1.

    Raises:
        InputError: A value is outside its range.
    """
    if votes < 0 or not 0 < share <= 1:
        raise InputError("Power needs votes, and a share above 0 and at most 1.", "Give --share.")
    rows = [measured for measured in MEASURED if measured.training == training]
    lower = [measured for measured in rows if measured.votes <= votes and measured.share <= share]
    upper = [measured for measured in rows if measured.votes >= votes and measured.share >= share]
    if not lower and not upper:
        return None

    def ends(side: Sequence[MeasuredRow], end: int) -> Iterator[float]:
        # The best of several ends errs more often than each: they share the level (Bonferroni).
        level = 1 - 0.05 / max(1, len(side))
        return (proportion_interval(row.found, row.policies, level)[end] for row in side)

    return max(ends(lower, 0), default=0.0), min(ends(upper, 1), default=1.0)


LEAD = 1.5
"""Standard deviations by which a trigger stands out that training has made known, in a forecast."""
NEEDED = 0.7
"""Least share of providers that train which a plan with late slots must call ``trained``."""
_MOST_LATE, _ROUNDS, _SIMULATED = 16, 1000, 128


def late_power(early: int, late: int, candidates: int, level: float) -> float:
    """Return the probability of ``trained`` where every early trigger stands out by :data:`LEAD`.

    By simulation: candidates are normal, and late triggers are like any other. The joint tests of
    early and of late slots are taken at their normal limits; the test between them is as it is.

    Args:
        early: Number of early slots.
        late: Number of late slots.
        candidates: M.
        level: Alpha.
    """
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(_ROUNDS, early + late, min(candidates, _SIMULATED)))
    scores[:, :early, 0] += LEAD
    standings = (scores[:, :, 0] - scores.mean(2)) / scores.std(2)
    sums = standings @ divisions(early, late, draws=999).T
    above = (sums >= sums[:, :1] - 1e-9).mean(1) <= level
    limit = norm.isf(level)
    early_found = standings[:, :early].sum(1) >= limit * early**0.5
    late_found = standings[:, early:].sum(1) >= limit * late**0.5
    return float((early_found & above & ~late_found).mean())


def refuse_weak_late(design: Design) -> None:
    """Refuse late slots too few to show that a service does not merely remember.

    Raises:
        InputError: ``trained`` would be found in too few of the providers that train.
    """
    early, late, m, level = design.slots - design.late, design.late, design.candidates, design.level
    if not late or (power := late_power(early, late, m, level)) >= NEEDED:
        return
    enough = [n for n in range(1, _MOST_LATE) if late_power(early, n, m, level) >= NEEDED]
    both = [n for n in range(early, _MOST_LATE) if late_power(n, n, m, level) >= NEEDED]
    more = f"--slots {early} --late {enough[0]}" if enough else ""
    if not more and both:
        more = f"--slots {both[0]} --late {both[0]}"
    raise InputError(
        f"{late} late beside {early} early slots would call {power:.0%} of the providers `trained`"
        f" that train, where triggers stand out by {LEAD} standard deviations; {NEEDED:.0%} is the"
        " least.",
        f"Plan {more}, or leave --late out: the verdict is then trained-or-remembered at most."
        if more
        else "No number of late slots is enough at this level: leave --late out.",
    )


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
    if best > design.level:
        yield f"power: 0; the p-value is {best:.3g} at best, and the level {design.alpha}"
        return
    if design.late:
        early = design.slots - design.late
        called = late_power(early, design.late, design.candidates, design.level)
        yield (
            f"late slots: `trained` for {called:.0%} of the providers that train, where early"
            f" triggers stand out by {LEAD} standard deviations; probe {design.refresh} hours after"
            " the last late slot is planted, or later"
        )
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
    yield f"power: {per_slot:,} canary votes a slot, {share_text(share)} of all votes ({MODEL})"
    for training, words in TRAININGS.items():
        limits = found_share(training, per_slot, share)
        yield f"  trained {words}: " + (
            f"{limits[0]:.0%} to {limits[1]:.0%} of violating providers are found"
            if limits and limits != (0, 1)
            else f"not measured; measured: {_rows(training)}"
        )


def share_text(share: float) -> str:
    """Return a share as it is read: a small one as one in so many."""
    return f"{share:.0%}" if share >= 0.01 else f"1 in {1 / share:,.0f}"


def _rows(training: str) -> str:
    return ", ".join(
        f"{row.found} of {row.policies} at {row.votes:,} votes, {share_text(row.share)} of all"
        for row in MEASURED
        if row.training == training
    )
