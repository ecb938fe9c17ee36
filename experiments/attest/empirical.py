"""What an attack on the window's own mechanism shows: a lower bound on its epsilon.

A coalition of k_max accounts asks for one document with every query it has, and counts the
answers that name its slot. Windows with the document and windows with the slot empty are replayed
by the code that serves, with fresh keys.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.privacy.mechanism import Mechanism
from ragwitness.privacy.release import SlotIndex, release
from research.lower_bounds import epsilon_clopper_pearson
from research.top_hits import hit_probability

__all__ = ["attack"]

_SLOT = 0  # any would do: every slot has noise of its own


def attack(
    rows: NDArray[np.int16],
    mechanism: Mechanism,
    coalition: tuple[int, int],
    delta: float,
    trials: int,
    confidence: float,
) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """Return the bound, and what it rests on.

    Args:
        rows: The index, shape (capacity, dimension).
        mechanism: The window's.
        coalition: Accounts, and queries of each.
        delta: At which the bound holds.
        trials: Windows in either world.
        confidence: Of the bound.

    Returns:
        The file's content; and for either world the share of answers that name the slot, beside
        the one that theory expects.
    """
    accounts, queries = coalition
    answers, probe, worlds = accounts * queries, rows[_SLOT], (rows, _without(rows))
    inside, outside = (_hits(world, probe, mechanism, answers, trials) for world in worlds)
    floor = epsilon_clopper_pearson(inside, outside, delta, confidence=confidence)
    told = {
        "version": "ragwitness/empirical/v1",
        "attack": "hits of one slot under the same query",
        "mechanism": mechanism.digest,
        "epsilon": floor.value,
        "delta": delta,
        "confidence": confidence,
        "trials": 2 * trials,
        "accounts": accounts,
        "queries": queries,
    }
    shares = [float(hits.mean()) / answers for hits in (inside, outside)]
    expected = [_expected(world, probe, mechanism) for world in worlds]
    names = ("hits with the document", "hits without it")
    return told, {n: [s, e] for n, s, e in zip(names, shares, expected, strict=True)}


def _without(rows: NDArray[np.int16]) -> NDArray[np.int16]:
    """The neighbouring index: the slot is empty."""
    changed = rows.copy()
    changed[_SLOT] = 0
    return changed


def _hits(
    rows: NDArray[np.int16],
    probe: NDArray[np.int16],
    mechanism: Mechanism,
    answers: int,
    trials: int,
) -> NDArray[np.float64]:
    """Answers of each window that name the slot, shape (trials,)."""
    index = SlotIndex(rows, mechanism)
    found = np.zeros(trials)
    for trial in range(trials):
        keys = (secrets.token_bytes(32) for _ in range(answers))
        given = (release(probe, index, key, mechanism) for key in keys)
        found[trial] = sum(_SLOT in one.ids for one in given)
    return found


def _expected(rows: NDArray[np.int16], probe: NDArray[np.int16], mechanism: Mechanism) -> float:
    scores = rows.astype(np.float64) @ probe
    others = np.delete(scores, _SLOT)
    sigma = float(mechanism.variance) ** 0.5
    return float(hit_probability(scores[_SLOT], others, sigma, mechanism.top))
