"""Forecasts against new audits: of those told a number, about 4 of 5 decide with it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ragwitness.canary.rank_test import (
    SlotScores,
    draws_together,
    half_planted,
    rank_of,
)
from ragwitness.canary.verdict import (
    examples_needed,
    halves_needed,
    slots_needed,
)
from tests.support.ranks import rank_p_value

M = 40


def _matrix(rng: np.random.Generator, effect: float, n: int, own: float) -> np.ndarray:
    """Candidates differ by nature by ``own``, examples by 3, and each reading by 1."""
    scores = own * rng.normal(size=M) + 3 * rng.normal(size=(n, 1)) + rng.normal(size=(n, M))
    scores[:, 5] += effect
    return scores


def _slots(rng: np.random.Generator, effect: float, count: int) -> list[SlotScores]:
    found = []
    for _ in range(count):
        scores = rng.normal(size=M)
        scores[5] += effect
        found.append(SlotScores(scores, 5))
    return found


def _realised(
    told: Callable[[float], tuple[bool, int | None]],
    again: Callable[[float, int], bool],
    rng: np.random.Generator,
    wide: float,
) -> tuple[int, float]:
    """Over effects of any size: how many were told a number, and the share that then decides."""
    decided = []
    for effect in rng.uniform(-wide, wide, size=400):
        done, need = told(effect)
        if not done and need is not None:
            decided.append(again(effect, need))
    return len(decided), float(np.mean(decided))


@pytest.mark.slow
@pytest.mark.parametrize("own", [0.0, 0.1])
def test_the_examples_named_decide_in_about_four_of_five_audits(own: float) -> None:
    rng = np.random.default_rng(1)

    def told(effect: float) -> tuple[bool, int | None]:
        matrix = _matrix(rng, effect, 8, own)
        done = rank_p_value(SlotScores(matrix.mean(axis=0), 5)) <= 0.05
        return done, examples_needed(matrix, 5, 0.05)

    def again(effect: float, n: int) -> bool:
        return rank_p_value(SlotScores(_matrix(rng, effect, n, own).mean(axis=0), 5)) <= 0.05

    told_of, share = _realised(told, again, rng, 2.0)
    assert told_of >= 10
    assert share > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["joint", "half"])
def test_the_slots_named_decide_in_about_four_of_five_audits(kind: str) -> None:
    rng = np.random.default_rng(2)

    def decides(inside: list[SlotScores], outside: list[SlotScores]) -> bool:
        if kind == "joint":
            return draws_together(inside, draws=399)[1] <= 0.05
        if kind == "half":
            flags = [True] * len(inside) + [False] * len(outside)
            if len(flags) > 12:  # by chance, as there are too many halves
                return _by_chance(inside, outside, rng) <= 0.05
            return half_planted([*inside, *outside], flags) <= 0.05
        raise ValueError(kind)

    def told(effect: float) -> tuple[bool, int | None]:
        inside, outside = _slots(rng, effect, 4), _slots(rng, 0.0, 4)
        need = {
            "joint": lambda: slots_needed(inside, 0.05),
            "half": lambda: halves_needed(inside, outside, 0.05),
        }[kind]()
        return decides(inside, outside), need

    def again(effect: float, count: int) -> bool:
        count = count // 2 if kind == "half" else count
        return decides(_slots(rng, effect, count), _slots(rng, 0.0, count))

    told_of, share = _realised(told, again, rng, 2.0)
    assert told_of >= 10
    assert share > 0.6


def _by_chance(
    inside: list[SlotScores], outside: list[SlotScores], rng: np.random.Generator
) -> float:
    ranks = np.array([-rank_of(one) for one in (*inside, *outside)], float)
    first = ranks[: len(inside)].sum()
    drawn = rng.permuted(np.tile(ranks, (399, 1)), axis=1)[:, : len(inside)].sum(axis=1)
    return (1 + int((drawn >= first).sum())) / 400


def test_where_nothing_was_seen_no_number_is_named() -> None:
    rng = np.random.default_rng(3)
    matrix = _matrix(rng, -1.0, 6, 0.1)
    assert examples_needed(matrix, 5, 0.05) is None
    assert examples_needed(np.zeros((4, M)), 5, 0.05) is None
    assert examples_needed(_matrix(rng, 2.0, 1, 0.0), 5, 0.05) is None  # noise is not known
    assert examples_needed(_matrix(rng, 2.0, 8, 0.0), 5, 0.01) is None  # 1 / 40 is above
    low = [SlotScores(np.arange(20.0), 5)]
    assert slots_needed(low, 0.05) is None
    assert halves_needed(low, low, 0.05) is None
    # Nor are the numbers larger than what was seen bears.
    assert slots_needed([SlotScores(np.arange(20.0), 19)], 0.05) in (1, 2, 4, 8)
