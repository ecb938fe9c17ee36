"""Evidence that may be looked at after every slot and every release of the model.

A rank R of a uniform draw is bet on with e(R) = M w(R), sum w = 1, w proportional to 1 / r: its
mean under H0 is 1, and rank 1 of 128 gives 23.6. Ties count against the accusation, which only
lowers it.

*Across slots* the draws are independent, so the product is a martingale, and by Ville's inequality
it ever reaches 1 / alpha with probability at most alpha.

*Across releases* the same draw is looked at again. Given all models, which under H0 do not depend
on it, a slot's ranks at two releases hang together, so a product would count one lucky draw twice.
With weights v_1, v_2, ... that sum to at most 1, fixed beforehand,

    E(L, k) = sum over releases l <= L of v_l · product over slots i <= k of e(R_il)

is for L without end a non-negative martingale in k that starts at most at 1, and every E(L, k) is
below it. So P(E(L, k) >= 1 / alpha for any L, k) <= alpha: one may stop at any slot of any release.
A plain running average over releases has no such guarantee. Where L releases were announced, v_l =
1 / L; else v_l = 1 / (l (l + 1)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ragwitness.errors import InputError

__all__ = ["log_evidence", "rank_evidence", "release_weight"]


def rank_evidence(rank: int, candidates: int) -> float:
    """Return e(R) = M w(R) with w(r) = (1 / r) / (1 + 1/2 + ... + 1/M).

    Args:
        rank: R, from 1.
        candidates: M.

    Raises:
        InputError: The rank is none of 1..M.
    """
    if not 1 <= rank <= candidates:
        raise InputError(f"There is no rank {rank} among {candidates} candidates.")
    harmonic = math.fsum(1 / r for r in range(1, candidates + 1))
    return candidates / (rank * harmonic)


def release_weight(number: int, releases: int) -> float:
    """Return v_l of the ``number``-th release probed, from 1; 0 beyond those announced.

    Args:
        number: l, in the order of probing.
        releases: L as announced; 0 where it was not.
    """
    if releases:
        return 1 / releases if number <= releases else 0.0
    return 1 / (number * (number + 1))


def log_evidence(ranks: Sequence[Sequence[tuple[int, int]]], releases: int) -> float:
    """Return ln E after the last slot of the last release.

    Args:
        ranks: Per release in the order of probing, per slot in the order of the design: rank and
            number of candidates.
        releases: L as announced with the draw; 0 where it was not.

    Returns:
        -inf where nothing was probed.

    Raises:
        InputError: A rank is impossible.
    """
    logs = [
        math.log(weight) + math.fsum(math.log(rank_evidence(r, m)) for r, m in slots)
        for number, slots in enumerate(ranks, 1)
        if (weight := release_weight(number, releases))
    ]
    top = max(logs, default=-math.inf)
    if math.isinf(top):
        return top
    return top + math.log(math.fsum(math.exp(one - top) for one in logs))
