"""What sampled answers could show, before one is asked for."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom

from ragwitness.errors import InputError

__all__ = ["rank_power", "share_found"]

_POWER = 0.8
_STEPS = 100


def rank_power(answers: int, candidates: int, alpha: float, own: float, others: float) -> float:
    """Return the probability that the rank test of one slot rejects at ``alpha``.

    Each candidate has as many answers, each of which holds the canary with the same chance. Where
    the chance differs between examples counts spread less, so the true power is higher.

    Args:
        answers: Of each candidate, over all examples.
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
        answers: Of each candidate, over all examples.
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
