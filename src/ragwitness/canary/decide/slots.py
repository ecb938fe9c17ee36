"""Several slots at one model: their draws together, planted against unplanted, and a privacy floor.

All three are exact at any number of slots, because the draws are the auditor's own.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from ragwitness.canary.decide.ranks import TIE, SlotScores, rank_of, standing
from ragwitness.errors import InputError
from ragwitness.stats.epsilon import Floor, epsilon_one_run
from ragwitness.stats.sequential import Permutation, permutation_test

__all__ = ["DRAWS", "Together", "draws_together", "epsilon_floor", "half_planted"]

DRAWS = 9999
"""Joint redraws; with the true one, p is at least 1 in 10,000."""


@dataclass(frozen=True, slots=True)
class Together:
    """The test of all slots' draws at once.

    Attributes:
        statistic: W, the sum over slots of (S_* - mean) / sd.
        p_value: Share of joint draws with a W at least as large.
        draws: Counted, the true one among them.
        exact: Whether these are all there are.
    """

    statistic: float
    p_value: float
    draws: int
    exact: bool


def draws_together(slots: Sequence[SlotScores], *, seed: int = 0, draws: int = DRAWS) -> Together:
    """Test W = sum_k (S_k* - mean_j S_kj) / sd_k against drawing every slot's t* anew.

    Under H0 the true draw is one more like the redrawn ones, so (1 + #{W_b >= W}) / (draws + 1)
    is super-uniform whatever the scores. Where no more joint draws exist than would be drawn, all
    are counted; of one slot the p-value is then its rank's.

    Args:
        slots: At least one; planted ones alone.
        seed: Of the redrawing; fixed before the scores are seen.
        draws: How often.

    Raises:
        InputError: There is no slot, or ``draws`` is below 1.
    """
    if not slots or draws < 1:
        raise InputError("A test of slots needs a slot and a draw.")
    places = [standing(one.scores) for one in slots]
    w = sum(float(z[one.chosen]) for z, one in zip(places, slots, strict=True))
    least = w - TIE * len(slots)
    count = math.prod(z.size for z in places)
    if len(slots) == 1 or count <= draws:
        sums = reduce(np.add.outer, places)
        return Together(w, float((sums >= least).mean()), count, exact=True)
    rng = np.random.default_rng(seed)
    total = np.zeros(draws)
    for z in places:
        total += z[rng.integers(z.size, size=draws)]
    return Together(w, (1 + int((total >= least).sum())) / (draws + 1), draws + 1, exact=False)


def half_planted(
    slots: Sequence[SlotScores], planted: Sequence[bool], *, seed: int = 0
) -> Permutation:
    """Test how much higher t* ranks in planted slots than in unplanted ones.

    Ranks, not scores: a model trained on queries alone has seen the canaries of planted slots, so
    its scores may look otherwise there in many ways. The rank of t* is uniform in every slot under
    H0, so that planted and unplanted ones can be exchanged. Ties count against the accusation: as
    higher ranks in planted slots, as lower ones in the others. 16 slots have C(16, 8) = 12,870
    halves, all counted.

    Args:
        slots: One per slot of the design.
        planted: Whether it was; drawn with equal chances for every such half.
        seed: Of the drawing, where there are too many to count.

    Raises:
        InputError: Not one flag per slot, or a half is empty.
    """
    sides: dict[bool, list[float]] = {True: [], False: []}
    for one, there in zip(slots, planted, strict=True):
        sides[there].append(-rank_of(one, ties_against=there) / one.scores.size)
    return permutation_test(sides[True], sides[False], rng=random.Random(seed))


def epsilon_floor(slots: Sequence[SlotScores], *, confidence: float = 0.95) -> Floor:
    """Return a lower bound on pure epsilon from one model (Steinke et al. 2023, delta = 0).

    The guess in each slot is that t* is among the upper half of the candidates, ties against it.
    Where training is epsilon-private in *which trigger a slot's traces carry*, all traces of the
    slot together, no two candidates' odds differ by more than e^epsilon once the model is seen.
    So a half of them holds t* with probability at most e^epsilon / (1 + e^epsilon), whatever was
    drawn in the other slots, as for the fair coins of Thm. 5.2.

    Args:
        slots: Planted ones.
        confidence: Of the bound.

    Raises:
        InputError: There is no slot.
    """
    right = sum(rank_of(one) <= one.scores.size // 2 for one in slots)
    return epsilon_one_run(right, len(slots), len(slots), 0.0, confidence=confidence)
