"""The rank test: one model, no twin, no assumption about scores.

H0: the model does not depend on which of the M candidates was planted, given all else it may have
seen. Then t* is a uniform draw from the candidates, whatever their scores, and
p = (1 + #{j != *: S_j >= S_*}) / M is at most a with probability at most a. Ties count against the
accusation. Two conditions: the candidates were fixed before the model answered, and t* is in
documents alone. A p-value cannot be below 1 / M.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from ragwitness.core.errors import InputError

Values = NDArray[np.float64]

TIE = 1e-9
"""Scores closer than this are equal: journals keep six digits, and a tie must stay one."""


@dataclass(frozen=True, slots=True)
class SlotScores:
    """Scores of one slot's candidates at one model.

    Attributes:
        scores: S_j, mean log-probability or hit rate over the same examples, shape (M,).
        chosen: Place of the planted candidate.

    Raises:
        InputError: Fewer than two scores, one not finite, or no such place.
    """

    scores: Values
    chosen: int

    def __post_init__(self) -> None:
        """Refuse what no rank can be taken in."""
        scores = np.asarray(self.scores, dtype=np.float64)
        object.__setattr__(self, "scores", scores)
        if scores.ndim != 1 or scores.size < 2:
            raise InputError("A rank needs the scores of at least two candidates.")
        if not np.isfinite(scores).all():
            raise InputError("Scores must be finite; leave unscorable examples out.")
        if not 0 <= self.chosen < scores.size:
            raise InputError(f"There is no candidate {self.chosen} among {scores.size}.")


def rank_of(slot: SlotScores) -> int:
    """Return the drawn candidate's rank, 1 being the highest; equal scores count as higher ones."""
    planted = slot.scores[slot.chosen]
    return int((slot.scores >= planted - TIE).sum())  # itself included


def standing(scores: ArrayLike) -> Values:
    """Return each candidate's (S_j - mean) / sd within its slot, shape (M,); 0 where all tie.

    Every candidate counts in mean and sd, the planted one too, so that no place is special.
    """
    values = np.asarray(scores, dtype=np.float64)
    spread = float(values.std())
    if spread <= TIE:
        return np.zeros_like(values)
    return np.asarray((values - values.mean()) / spread, dtype=np.float64)


# Several slots at one model: their draws together, planted against unplanted, and a privacy floor.
#
# All three are exact at any number of slots, because the draws are the auditor's own.

DRAWS = 9999
"""Joint redraws; with the true one, p is at least 1 in 10,000."""


def draws_together(
    slots: Sequence[SlotScores], *, seed: int = 0, draws: int = DRAWS
) -> tuple[float, float]:
    """Test W = sum_k (S_k* - mean_j S_kj) / sd_k against drawing every slot's t* anew.

    Under H0 the true draw is one more like the redrawn ones, so (1 + #{W_b >= W}) / (draws + 1)
    is super-uniform whatever the scores. Where no more joint draws exist than would be drawn, all
    are counted; of one slot the p-value is then its rank's.

    Args:
        slots: Planted slots alone, at least one.
        seed: Seed of the redrawing; fixed before the scores are seen.
        draws: How often.

    Returns:
        W, and its p-value: the share of joint draws with a W at least as large.

    Raises:
        InputError: There is no slot, or ``draws`` is below 1.
    """
    totals, true = outcomes_of(slots, seed=seed, draws=draws)
    w = float(totals[true])
    as_high = int((totals >= w - TIE * len(slots)).sum())  # the true one included
    return w, as_high / totals.size


def outcomes_of(
    slots: Sequence[SlotScores], *, seed: int = 0, draws: int = DRAWS
) -> tuple[Values, int]:
    """Return W of every joint draw that is counted, and the place of the true one.

    The same seed gives the same joint draws at every look at the same slots.

    Args:
        slots: Planted slots alone, at least one.
        seed: Seed of the redrawing; fixed before the scores are seen.
        draws: How many, where more exist.

    Raises:
        InputError: There is no slot, or ``draws`` is below 1.
    """
    if not slots or draws < 1:
        raise InputError("A test of slots needs a slot and a draw.")
    standings = [standing(slot.scores) for slot in slots]
    sizes = tuple(z.size for z in standings)
    if len(slots) == 1 or math.prod(sizes) <= draws:
        sums = np.asarray(reduce(np.add.outer, standings))
        return sums.ravel(), int(np.ravel_multi_index([s.chosen for s in slots], sizes))
    w = sum(float(z[slot.chosen]) for z, slot in zip(standings, slots, strict=True))
    rng = np.random.default_rng(seed)
    total = np.zeros(draws)
    for z in standings:
        total += z[rng.integers(z.size, size=draws)]
    return np.concatenate(([w], total)), 0


# Early slots against late ones: what a memory knows of both, a training knows of the early alone.


def divisions(early: int, late: int, *, seed: int = 0, draws: int = DRAWS) -> NDArray[np.bool_]:
    """Return ways to call slots early, the true one first: all where there are at most ``draws``.

    Args:
        early: Number of early slots.
        late: Number of late slots.
        seed: Seed of the drawing, where there are too many to count.
        draws: How many, where more exist.

    Returns:
        Which slots are called early, shape (divisions, early + late).
    """
    slots = early + late
    if math.comb(slots, early) <= draws:
        masks = np.zeros((math.comb(slots, early), slots), dtype=np.bool_)
        for row, chosen in zip(masks, combinations(range(slots), early), strict=True):
            row[list(chosen)] = True
        return masks
    order = np.random.default_rng(seed).permuted(np.tile(np.arange(slots), (draws, 1)), axis=1)
    return np.concatenate([np.arange(slots)[None] < early, order < early])


def early_above_late(
    early: Sequence[SlotScores], late: Sequence[SlotScores], *, seed: int = 0
) -> float:
    """Return the p-value of whether planted triggers stand higher in early slots than in late ones.

    H0: the model knows early and late triggers alike, as a memory of the traces does. Then the
    division of the slots is like any other. So the share of divisions with early standings at least
    as high in sum is super-uniform, whatever the scores.

    Args:
        early: Slots that a training may have seen.
        late: Slots that no training can have seen.
        seed: Seed of the drawing, where there are too many divisions to count.
    """
    standings = np.array([standing(slot.scores)[slot.chosen] for slot in (*early, *late)])
    sums = divisions(len(early), len(late), seed=seed) @ standings
    return float((sums >= sums[0] - TIE * len(standings)).mean())


# Several looks share one level: look l gets the share v_l of it, with sum at most 1. Where L looks
# were announced, v_l = 1 / L; else v_l = 1 / (l (l + 1)).


def release_weight(number: int, releases: int) -> float:
    """Return v_l of the ``number``-th release probed, from 1; 0 beyond those announced.

    Args:
        number: l, in the order of probing.
        releases: L as announced; 0 where it was not.
    """
    if releases:
        return 1 / releases if number <= releases else 0.0
    return 1 / (number * (number + 1))


# The power of sampled answers, before one is asked for.

_POWER = 0.8
_STEPS = 100


def rank_power(answers: int, candidates: int, alpha: float, own: float, others: float) -> float:
    """Return the probability that the rank test of one slot rejects at ``alpha``.

    Each candidate has as many answers, each of which holds the canary with the same chance. Where
    the chance differs between examples counts spread less, so the true power is higher.

    Args:
        answers: Number of answers of each candidate, over all examples.
        candidates: M.
        alpha: Level.
        own: Chance under the planted trigger.
        others: Chance under any other.

    Raises:
        InputError: There is no answer, fewer than two candidates, or a chance is none.
    """
    if answers < 1 or candidates < 2 or not (0 <= own <= 1 and 0 <= others <= 1):
        raise InputError("Power needs answers, candidates and two chances.")
    above = math.floor(alpha * candidates + 1e-9) - 1  # others that may rank as high
    if above < 0:
        return 0.0
    hits = np.arange(answers + 1)
    as_high = binom.sf(hits - 1, answers, others)
    decides = binom.cdf(above, candidates - 1, as_high)
    return float(binom.pmf(hits, answers, own) @ decides)


def share_found(answers: int, candidates: int, alpha: float, others: float) -> float | None:
    """Return the least chance under the planted trigger that 4 of 5 audits would find.

    Args:
        answers: Number of answers of each candidate, over all examples.
        candidates: M.
        alpha: Level.
        others: Chance under any other candidate.

    Returns:
        In hundredths; None where even 1 would not do.

    Raises:
        InputError: See :func:`rank_power`.
    """
    for step in range(math.ceil(others * _STEPS), _STEPS + 1):
        if rank_power(answers, candidates, alpha, step / _STEPS, others) >= _POWER:
            return step / _STEPS
    return None


# Several looks at one draw: of N equally likely outcomes at most floor(alpha N) are ever called.
#
# H0: which outcome is true does not depend on any score. Then any set of outcomes that follows from
# the scores alone holds the true one with probability size / N. So a set is let grow from look to
# look, never beyond floor(alpha N), and the model is called trained once the true outcome is in it.
# An outcome is a candidate of one slot, or one of the joint redraws of several slots, which are the
# same at every look because the committed seed makes them.
#
# At look l the set may have floor(alpha N V_l) members, V_l = v_1 + ... + v_l, where v_l is
# :func:`ragwitness.canary.rank_test.release_weight`. The looks' outcomes are walked down from the
# highest score: one that was called before costs nothing, a fresh one is called while there is
# room. So whatever p_l / v_l <= alpha would call is called here as well, and more: what one look
# left over, and what two looks agree about, is there for the next. Where the number of looks was
# left open, an outcome that stands out by five deviations may be called at once, out of what later
# looks have: with 128 candidates there is room for six, and any look can decide.


_OUTSTANDING = 5.0  # deviations above the mean of all outcomes
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Seen:
    """The part of a look that enters the next ones.

    Attributes:
        ranks: Per planted slot the rank of t* and the number of candidates.
        own: p-value of the look by itself.
        called: Outcomes that it was the first to call.
    """

    ranks: tuple[tuple[int, int], ...]
    own: float = 1.0
    called: tuple[int, ...] = ()


def room(outcomes: int, alpha: float, look: int, releases: int) -> int:
    """Return how many outcomes may have been called by the end of a look.

    Args:
        outcomes: N.
        alpha: Level.
        look: l, from 1.
        releases: L as announced; 0 where it was not.
    """
    share = 1 - 1 / (look + 1) if not releases else min(1.0, look / releases)
    return math.floor(alpha * outcomes * share + _SLACK)


def call_outcomes(
    scores: ArrayLike,
    before: Collection[int],
    alpha: float,
    look: int,
    releases: int,
    *,
    tie: float = TIE,
) -> tuple[int, ...]:
    """Return the outcomes that a look is the first to call.

    Args:
        scores: Scores of every outcome at this look, shape (N,); higher is more evidence.
        before: Called at earlier looks.
        alpha: Level.
        look: l, from 1.
        releases: L as announced; 0 where it was not.
        tie: Scores closer than this are equal.

    Returns:
        Their places, highest first; none at a look that was not announced. Scores that tie are
        called together or not at all.
    """
    if releases and look > releases:
        return ()
    values = np.asarray(scores, dtype=np.float64)
    taken, fresh = set(before), []
    regular = room(values.size, alpha, look, releases)
    final = math.floor(alpha * values.size + _SLACK) if not releases else regular
    far = standing(values) >= _OUTSTANDING
    order = np.argsort(-values, kind="stable")
    start = 0
    while start < order.size:
        # 1. The next outcomes down, all that tie; those called before cost nothing.
        end = start + 1
        while end < order.size and values[order[start]] - values[order[end]] <= tie:
            end += 1
        group = [int(at) for at in order[start:end] if int(at) not in taken]
        # 2. Within the room of this look, or of all looks where they stand out.
        limit = final if far[order[start]] else regular
        if len(taken) + len(group) > limit:
            break
        taken |= set(group)
        fresh += group
        start = end
    return tuple(fresh)


def looks_p_value(own: Sequence[float], called: bool, alpha: float, releases: int) -> float:
    """Return a p-value that holds over all looks so far and those to come.

    If the true outcome was called, it is min over looks of p_l / v_l, and at most alpha. Otherwise
    alpha is added, which the calls have spent. So the value is at most a with probability at most
    a, for every a. Below alpha this follows from the union bound over looks, at alpha from the
    size of the called set, above alpha from both.

    Args:
        own: p_l of every look so far, in their order.
        called: Whether the true outcome was called at any of them.
        alpha: Level.
        releases: L as announced; 0 where it was not.
    """
    weighted = [p / weight for n, p in enumerate(own, 1) if (weight := release_weight(n, releases))]
    least = min(weighted, default=1.0)
    return min(least, alpha) if called else min(1.0, least + alpha)
