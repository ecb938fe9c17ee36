"""The prover's side of the argument: T = F / Z, and the quotient of an opening."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragwitness.crypto.proofs.domain import RootsDomain
from ragwitness.crypto.proofs.field import GENERATOR, combine, dot, interpolate, vanishing
from ragwitness.crypto.proofs.group import Point, R


@dataclass(frozen=True, slots=True, eq=False)
class SecretGroup:
    """Columns, as their prover knows them.

    Attributes:
        values: On H, shape (n, columns): small integers, or Python's own modulo R.
        blinds: Of each column, β₀ and β₁; or β₀ alone.
    """

    values: NDArray[Any] = field(repr=False)
    blinds: Sequence[Sequence[int]] = field(repr=False)

    def commit(self, domain: RootsDomain) -> list[Point]:
        """Return all commitments."""
        pairs = zip(self.values.T, self.blinds, strict=True)
        return [domain.commit(list(c) if c.dtype == object else c, b) for c, b in pairs]

    def at(self, basis: Sequence[int], vanish: int, point: int) -> list[int]:
        """Return every column's value at a point, given L_j and Z there."""
        found = weighted(self.values.T, basis)
        pairs = zip(found, self.blinds, strict=True)
        return [(x + vanish * dot(b, (1, point)[: len(b)])) % R for x, b in pairs]

    def summed(self, weights: Sequence[int]) -> SecretColumn:
        """Return the weighted sum of all columns."""
        rows = zip_longest(*self.blinds, fillvalue=0)
        return SecretColumn(weighted(self.values, weights), [dot(weights, row) for row in rows])


@dataclass(frozen=True, slots=True, eq=False)
class SecretColumn:
    """One column of any numbers: values on H and blinds, modulo R."""

    values: list[int] = field(repr=False)
    blinds: list[int] = field(repr=False)

    @property
    def group(self) -> SecretGroup:
        """The group of this column alone."""
        return SecretGroup(np.array([self.values], object).T, [self.blinds])

    @classmethod
    def total(cls, slots: int, parts: Sequence[tuple[int, SecretColumn]]) -> SecretColumn:
        """Return Σ factor · column."""
        values, blinds = [0] * slots, [0, 0]
        for factor, part in parts:
            values = [(v + factor * x) % R for v, x in zip(values, part.values, strict=True)]
            blinds = [
                (v + factor * x) % R for v, x in zip_longest(blinds, part.blinds, fillvalue=0)
            ]
        return cls(values, blinds)


def weighted(matrix: NDArray[Any], weights: Sequence[int]) -> list[int]:
    """Return matrix · weights modulo R."""
    if matrix.dtype == object:
        return [dot(row, weights) for row in matrix.tolist()]
    return combine(matrix, weights)


class Quotient:
    """F = Σ squares + Σ products + rest, collected part by part, and T = F / Z.

    With a column P = p + βZ: P² = p² + 2pβZ + β²Z². The parts without blinds are summed on a coset
    of H, where Z is a constant; the others are multiples of Z as they stand.
    """

    def __init__(self, domain: RootsDomain) -> None:
        self._domain = domain
        self._coset = [0] * domain.slots
        self._beside = ([0] * domain.slots, [0] * domain.slots)  # on H, of X⁰·Z and X¹·Z
        self._ends = [0, 0, 0]  # of Z²
        self._rest: list[tuple[int, SecretColumn]] = []

    def squares(self, group: SecretGroup, weights: Sequence[int]) -> None:
        """Add Σ weight · P²."""
        for weight, values in zip(weights, self._domain.extend(group.values), strict=True):
            pairs = zip(self._coset, values, strict=True)
            self._coset = [held + x * x * weight for held, x in pairs]
        self._blind(group, group.values, [2 * w for w in weights])
        for weight, blinds in zip(weights, group.blinds, strict=True):
            low, high = (*blinds, 0)[:2]
            for i, value in enumerate((low * low, 2 * low * high, high * high)):
                self._ends[i] = (self._ends[i] + weight * value) % R

    def products(self, left: NDArray[Any], group: SecretGroup, weights: Sequence[int]) -> None:
        """Add Σ weight · L · P, L public polynomials by their values on H."""
        extended = zip(self._domain.extend(left), self._domain.extend(group.values), strict=True)
        for weight, (one, two) in zip(weights, extended, strict=True):
            rows = zip(self._coset, one, two, strict=True)
            self._coset = [held + x * y * weight for held, x, y in rows]
        self._blind(group, left, weights)

    def add(self, factor: int, column: SecretColumn) -> None:
        """Add factor · P."""
        self._rest.append((factor, column))

    def _blind(self, group: SecretGroup, matrix: NDArray[Any], weights: Sequence[int]) -> None:
        for held, row in zip(self._beside, zip_longest(*group.blinds, fillvalue=0), strict=False):
            scaled = [w * x % R for w, x in zip(weights, row, strict=True)]
            held[:] = [(h + x) % R for h, x in zip(held, weighted(matrix, scaled), strict=True)]

    def coefficients(self) -> list[int]:
        """Return T's coefficients, n + 3 of them; a false F has no T, and some polynomial comes."""
        domain, slots = self._domain, self._domain.slots
        rest = SecretColumn.total(slots, self._rest)
        [extended] = domain.extend(rest.group.values)
        share = pow(vanishing(slots, GENERATOR), -1, R)
        pairs = zip(self._coset, extended, strict=True)
        found = [*domain.from_coset([(x + y) * share % R for x, y in pairs]), 0, 0, 0]
        # What stands beside Z: of degree n at most, and the blinds of the rest.
        for shift, values in enumerate(self._beside):
            found[shift] += rest.blinds[shift]
            for i, value in enumerate(interpolate(values) if any(values) else (), shift):
                found[i] += value
        for i, value in enumerate(self._ends):  # times Z = Xⁿ - 1
            found[slots + i] += value
            found[i] -= value
        return [x % R for x in found]


def opening_quotient(
    domain: RootsDomain, column: SecretColumn, factor: int, quotient: Sequence[int], point: int
) -> list[int]:
    """Return the coefficients of (P + factor · T - their value) / (X - point)."""
    slots = domain.slots
    total = [*interpolate(column.values), 0, 0, 0]
    for i, blind in enumerate(column.blinds):
        total[slots + i] += blind
        total[i] -= blind
    for i, value in enumerate(quotient):
        total[i] += factor * value
    found, value = [0] * (len(total) - 1), 0
    for i in range(len(total) - 1, 0, -1):
        value = (value * point + total[i]) % R
        found[i - 1] = value
    return found
