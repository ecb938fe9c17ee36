"""Several looks at one draw: of N equally likely outcomes at most floor(alpha N) are ever called.

H0: which outcome is true does not depend on any score. Then any set of outcomes that follows from
the scores alone holds the true one with probability size / N. So a set is let grow from look to
look, never beyond floor(alpha N), and the model is called trained once the true outcome is in it.
An outcome is a candidate of one slot, or one of the joint redraws of several slots, which are the
same at every look because the committed seed makes them.

At look l the set may have floor(alpha N V_l) members, V_l = v_1 + ... + v_l, where v_l is
:func:`ragwitness.canary.rank_test.release_weight`. The looks' outcomes are walked down from the
highest score: one that was called before costs nothing, a fresh one is called while there is room.
So whatever p_l / v_l <= alpha would call is called here as well, and more: what one look left over,
and what two looks agree about, is there for the next. Where the number of looks was left open, an
outcome that stands out by five deviations may be called at once, out of what later looks have: with
128 candidates there is room for six, and any look can decide.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ragwitness.canary.rank_test import TIE, release_weight, standing

_OUTSTANDING = 5.0  # deviations above the mean of all outcomes
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look showed, as the next looks need it.

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
    most = math.floor(alpha * values.size + _SLACK) if not releases else regular
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
        limit = most if far[order[start]] else regular
        if len(taken) + len(group) > limit:
            break
        taken |= set(group)
        fresh += group
        start = end
    return tuple(fresh)


def looks_p_value(own: Sequence[float], called: bool, alpha: float, releases: int) -> float:
    """Return a p-value that holds over all looks so far and those to come.

    Where the true outcome was called it is min over looks of p_l / v_l, and at most alpha. Where
    it was not, alpha is added, since so much was spent on calling. So the value is at most a with
    probability at most a, for every a: below alpha by the union bound over looks, at alpha by the
    size of what may be called, above it by both.

    Args:
        own: p_l of every look so far, in their order.
        called: Whether the true outcome was called at any of them.
        alpha: Level.
        releases: L as announced; 0 where it was not.
    """
    weighted = [p / weight for n, p in enumerate(own, 1) if (weight := release_weight(n, releases))]
    least = min(weighted, default=1.0)
    return min(least, alpha) if called else min(1.0, least + alpha)
