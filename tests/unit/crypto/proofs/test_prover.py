"""T = F / Z and openings, against polynomials multiplied by definition."""

from __future__ import annotations

import random

import numpy as np

from ragwitness.crypto.proofs.arithmetic import R, dot, interpolate, lagrange_at, powers, vanishing
from ragwitness.crypto.proofs.prover import (
    Quotient,
    SecretColumn,
    SecretGroup,
    ceremony_domain,
    draw_scalars,
    opening_quotient,
)

SLOTS = 512


def _at(values: list[int], blinds: list[int], point: int) -> int:
    inner = dot(lagrange_at(SLOTS, point), [v % R for v in values])
    hidden = dot(blinds, powers(point, len(blinds))) if blinds else 0
    return (inner + vanishing(SLOTS, point) * hidden) % R


def test_t_times_z_is_f_at_any_point() -> None:
    """Squares, products with a public polynomial, and a rest that makes F vanish on H."""
    draw, domain = random.Random(1), ceremony_domain(SLOTS)
    matrix = np.array([[draw.randrange(-9, 10) for _ in range(3)] for _ in range(SLOTS)])
    group = SecretGroup(matrix, [draw_scalars(2) for _ in range(3)])
    public = np.array([[draw.randrange(2)] for _ in range(SLOTS)])
    other = SecretColumn(draw_scalars(SLOTS), draw_scalars(2))
    weights, factor = draw_scalars(3), draw_scalars(1)
    rest = [
        (-sum(w * int(x) ** 2 for w, x in zip(weights, row, strict=True))
         - factor[0] * int(p[0]) * y) % R
        for row, p, y in zip(matrix, public, other.values, strict=True)
    ]  # fmt: skip
    told = SecretColumn(rest, draw_scalars(2))
    made = Quotient(domain)
    made.squares(group, weights)
    made.products(public, other.group, factor)
    made.add(1, told)
    found = made.coefficients()
    for point in draw_scalars(3):
        values = group.at(lagrange_at(SLOTS, point), vanishing(SLOTS, point), point)
        assert values[1] == _at(matrix[:, 1].tolist(), group.blinds[1], point)
        total = dot(weights, (v * v for v in values))
        total += (
            factor[0]
            * _at(public[:, 0].tolist(), [], point)
            * _at(other.values, other.blinds, point)
        )
        total += _at(told.values, told.blinds, point)
        assert total % R == vanishing(SLOTS, point) * dot(found, powers(point, len(found))) % R
    # One number off, and nothing of this degree fits.
    told.values[7] += 1
    made = Quotient(domain)
    made.squares(group, weights)
    made.products(public, other.group, factor)
    made.add(1, told)
    wrong, [point] = made.coefficients(), draw_scalars(1)
    assert dot(wrong, powers(point, len(wrong))) != dot(found, powers(point, len(found)))


def test_an_opening_s_quotient() -> None:
    domain, [point, at] = ceremony_domain(SLOTS), draw_scalars(2)
    column, quotient = SecretColumn(draw_scalars(SLOTS), draw_scalars(2)), draw_scalars(SLOTS + 3)
    found = opening_quotient(domain, column, 5, quotient, point)

    def value(x: int) -> int:
        return (_at(column.values, column.blinds, x) + 5 * dot(quotient, powers(x, SLOTS + 3))) % R

    assert (value(at) - value(point)) % R == (at - point) * dot(found, powers(at, len(found))) % R


def test_columns_add_up() -> None:
    one, two = SecretColumn([1] * SLOTS, [3]), SecretColumn([2] * SLOTS, [5, 7])
    found = SecretColumn.total(SLOTS, [(2, one), (-1, two)])
    assert (found.values[0], found.blinds) == (0, [1, R - 7])
    group = SecretGroup(np.array([[1, 2]] * SLOTS), [[3], [5, 7]])
    assert group.summed([2, R - 1]).blinds == [1, R - 7]
    assert interpolate(group.summed([1, 1]).values)[:2] == [3, 0]
