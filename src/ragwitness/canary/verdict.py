"""The verdict on one model, or on one model's releases.

``trained`` and ``trained-or-remembered`` say: if the model were independent of the choice of the
planted trigger, such evidence would come with probability at most alpha. ``trained`` also says that
early slots stand out *more* than late ones, which no training can have seen but a memory has. If
the service remembered early and late traces alike, that too would come with probability at most
alpha. Neither verdict concerns a single document. ``inconclusive`` says that this
evidence shows neither. It never says that there was no training: the signal is weak, filters may
have removed it, or the training may have used too few traces.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ragwitness.canary.draw import Design
from ragwitness.canary.rank_test import (
    DRAWS,
    TIE,
    Seen,
    SlotScores,
    call_outcomes,
    draws_together,
    early_above_late,
    looks_p_value,
    outcomes_of,
    rank_of,
    release_weight,
)

CALLS = "outcomes called over all looks"
"""Name of the test that lets several looks share one level."""


REMEMBERED = (
    "the late triggers, which no training can have seen, stand out as well (p = {p:.3g}): the"
    " service remembers what it was sent, or finds it in an index"
)
"""Reason where late slots show a memory."""

AS_HIGH = (
    "the early triggers do not stand out more than the late ones (p = {p:.3g}), which no training"
    " can have seen: a memory or an index of the traces may know both"
)
"""Reason where late slots do not rule a memory out."""

NOT_LATE = (
    "no slot was planted late (--late of ragwitness canary draw), so a memory or an index of the"
    " traces is not ruled out"
)
"""Reason where no slot can rule a memory out."""

_SPENT = "none, the one look was taken"


class ModelVerdict(enum.StrEnum):
    """The verdict on a model."""

    TRAINED = "trained"
    """On documents, at the level named; early triggers stand out more than late ones."""
    KNOWN = "trained-or-remembered"
    """It knows which trigger was planted, and a memory of the traces is not ruled out."""
    INCONCLUSIVE = "inconclusive"
    """Not shown. Never: not trained."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The decision on a probe.

    Attributes:
        verdict: The model's.
        test: The one test that decides; settled by the design before the draw.
        p_value: p-value of that test.
        alpha: Level, as committed to.
        ranks: Ranks of t* in each planted slot, 1 being the highest.
        candidates: M.
        statistic: W over the planted slots.
        reason: Why it is inconclusive, or why a memory is not ruled out; empty where it is trained.
        seen: Ranks, p-value and calls of this look, for the next looks; None in older results.
    """

    verdict: ModelVerdict
    test: str
    p_value: float
    alpha: float
    ranks: tuple[int, ...]
    candidates: int
    statistic: float
    reason: str = ""
    seen: Seen | None = None


_SHARPEST = 1e-4  # nats below 0; journals keep six digits, and a logit must not hang on the last


def logits(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log p - log (1 - p) of log-probabilities, as journals keep them (LiRA's scaling).

    Where p is near 1, log p hardly moves, however much more the model leans towards the canary.
    It is taken to be 1 - 1e-4 at most. Any such map leaves the test exact: it is the same for all
    candidates.
    """
    bounded = np.minimum(np.round(scores, 6), -_SHARPEST)
    return np.asarray(bounded - np.log(-np.expm1(bounded)), dtype=np.float64)


def filled(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scores in which each missing cell is predicted from its example and its candidate.

    The fit is by least squares, cell = example + candidate, over the cells that are there. So a
    candidate's mean does not depend on which of its examples a service refused. The fit does not
    know which candidate was planted, and leaves the test exact. A candidate without any cell ranks
    below all others.

    Args:
        matrix: Scores by example and candidate, NaN where one is missing, shape (n, M).
    """
    present = ~np.isnan(matrix)
    if present.all():
        return matrix
    scores = np.where(present, matrix, 0.0)
    columns = np.zeros(matrix.shape[1])
    for _ in range(200):  # alternating least squares; it converges within a few rounds
        rows = ((scores - columns) * present).sum(1) / np.maximum(1, present.sum(1))
        columns = ((scores - rows[:, None]) * present).sum(0) / np.maximum(1, present.sum(0))
    columns[~present.any(0)] = columns[present.any(0)].min() - 1
    return np.asarray(np.where(present, matrix, rows[:, None] + columns), dtype=np.float64)


def decide(
    design: Design,
    matrices: Sequence[NDArray[np.float64]],
    chosen: Sequence[int],
    *,
    earlier: Sequence[Seen] = (),
    seed: int = 0,
    shares: bool = False,
) -> Finding:
    """Decide what the scores of one model show.

    Test and level follow from the design alone, so that neither can be picked by the outcome. With
    one announced look, the first one decides, by the joint redraw of all slots (of one slot: its
    rank). A second look at the same draw decides nothing there: either of two tests would err more
    often than alpha. With more announced looks, or an open number, all of them share the level by
    the calls of :mod:`ragwitness.canary.rank_test`.

    Args:
        design: Settings, as committed to.
        matrices: Per slot, scores by example and candidate, shape (n, M); NaN where one is missing.
        chosen: Per slot, place of t*.
        earlier: Earlier looks, in their order.
        seed: Seed of redrawing; independent of the scores, and the same at every look.
        shares: Whether the scores are shares of answers, not log-probabilities.

    Raises:
        InputError: Scores cannot be ranked.
    """
    # 0. Log-probabilities as logits; shares of answers stay as they are.
    if not shares:
        matrices = [logits(matrix) for matrix in matrices]
    matrices = [filled(matrix) for matrix in matrices]
    # 1. S_j of every slot: the mean over the same examples for each candidate (App. C.3).
    slots = [
        SlotScores(m.mean(axis=0), position) for m, position in zip(matrices, chosen, strict=True)
    ]
    early, late = slots[: design.slots - design.late], slots[design.slots - design.late :]
    # 2. W and its joint redraw.
    statistic, together = draws_together(early, seed=seed)
    ranks = tuple((rank_of(slot), slot.scores.size) for slot in early)
    this_look = Seen(ranks, together)
    # 3. The one test that the design announced; nothing else decides.
    if design.releases == 1 and earlier:
        test, p = _SPENT, 1.0
    elif design.releases == 1:
        test = "rank among candidates" if len(early) == 1 else "joint redraw of all slots"
        p = together
    else:
        test = CALLS
        this_look, p = _called(this_look, early, earlier, design, seed)
    # 4. `trained` needs a memory ruled out: early slots above late ones, which do not stand out.
    doubt = NOT_LATE
    if late:
        late_p = draws_together(late, seed=seed)[1]
        above_p = early_above_late(early, late, seed=seed)
        test += f"; early above late slots: p = {above_p:.4g}; late slots alone: p = {late_p:.4g}"
        doubt = AS_HIGH.format(p=above_p) if above_p > design.level else ""
        doubt = REMEMBERED.format(p=late_p) if late_p <= design.level else doubt
    verdict, reason = ModelVerdict.INCONCLUSIVE, doubt
    if p <= design.level and not doubt:
        verdict = ModelVerdict.TRAINED
    elif p <= design.level:
        verdict = ModelVerdict.KNOWN
    else:
        reason = _shortfall(test, design, len(earlier))
    return Finding(
        verdict=verdict,
        test=test,
        p_value=p,
        alpha=design.level,
        ranks=tuple(rank for rank, _ in ranks),
        candidates=design.candidates,
        statistic=statistic,
        reason=reason,
        seen=this_look,
    )


def _called(
    seen: Seen, slots: Sequence[SlotScores], earlier: Sequence[Seen], design: Design, seed: int
) -> tuple[Seen, float]:
    """Add to a look what it calls, and return it with the p-value over all looks so far."""
    look, alpha, releases = len(earlier) + 1, design.level, design.releases
    before = {outcome for past in earlier for outcome in past.called}
    totals, true = outcomes_of(slots, seed=seed)
    fresh = call_outcomes(totals, before, alpha, look, releases, tie=TIE * len(slots))
    called = true in before or true in fresh
    p_values = [*(past.own for past in earlier), seen.own]
    return replace(seen, called=fresh), looks_p_value(p_values, called, alpha, releases)


def best_p_value(design: Design) -> float:
    """Return the least p-value that a design can give at its first look."""
    slots, m = design.slots - design.late, design.candidates
    single = max(1 / m**slots, 1 / (DRAWS + 1)) if slots > 1 else 1 / m
    if design.releases == 1:
        return single
    least = single / release_weight(1, design.releases)
    return looks_p_value([single], least <= design.level, design.level, design.releases)


def _shortfall(test: str, design: Design, looks: int) -> str:
    """Say why nothing was decided: it could not be whatever the scores, or too little was seen."""
    if test.startswith(_SPENT):
        return (
            "this plan announced one look at its draw, and another was taken before; plan anew,"
            " with --releases for more than one"
        )
    if design.releases and looks >= design.releases > 1:
        return f"{design.releases} looks were announced, and one more adds no evidence"
    best = best_p_value(design)
    if design.releases == 1 and best > design.level:
        return (
            f"a p-value of {best:.2g} is the best that {design.slots} slots of"
            f" {design.candidates} candidates can give; plan with more"
        )
    planted = "triggers do" if design.slots - design.late > 1 else "trigger does"
    return f"the planted {planted} not stand out enough among the candidates"
