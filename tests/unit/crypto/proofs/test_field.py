"""Numbers modulo R, against Python's own."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ragwitness.crypto.proofs.arithmetic import (
    R,
    combine,
    dot,
    interpolate,
    inverses,
    lagrange_at,
    powers,
    roots,
    transform,
    vanishing,
)

_DRAW = random.Random(1)


@pytest.mark.parametrize("most", [1, 4096, 1 << 17])
def test_small_numbers_times_long_ones(most: int) -> None:
    matrix = np.random.default_rng(1).integers(-most, most + 1, (7, 2048))
    matrix[0] = most
    values = [R - 1] * 1024 + [_DRAW.randrange(R) for _ in range(1024)]
    assert combine(matrix, values) == [dot(map(int, row), values) for row in matrix]


@pytest.mark.parametrize("slots", [4, 512, 2048])
def test_roots_of_unity_and_their_basis(slots: int) -> None:
    every = roots(slots)
    assert len(set(every)) == slots
    assert pow(every[1], slots, R) == 1 != pow(every[1], slots // 2, R)
    values = [_DRAW.randrange(R) for _ in range(slots)]
    coefficients = interpolate(values)
    assert [x % R for x in transform(coefficients, every)] == values
    point = _DRAW.randrange(R)
    assert dot(lagrange_at(slots, point), values) == dot(coefficients, powers(point, slots))
    assert sum(lagrange_at(slots, point)) % R == 1
    assert vanishing(slots, every[3]) == 0


def test_inverses_with_one_inversion() -> None:
    values = [1, 2, R - 1, *(_DRAW.randrange(1, R) for _ in range(5))]
    assert inverses(values, 7) == [7 * pow(x, -1, R) % R for x in values]
