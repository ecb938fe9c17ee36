"""One number that holds all norms and projections, as the constant term of a Laurent polynomial.

With the columns V_c(X) = Σ_{j<D} V[j, c] X^j, blinds in the last three rows,

    F(X) = Σ_c V_c(ξX) V_c(1/X) + κ Σ_c V_c(1/X) W_c(X),   W_c(X) = Σ_i ζ^i a⁽ⁱ⁾_c Σ_j b⁽ⁱ⁾_j X^j

has the constant term Σ_{j<D} N_j ξ^j + κ Σ_i ζ^i s_i, N_j = Σ_c V[j, c]² and s_i = b⁽ⁱ⁾ᵀVa⁽ⁱ⁾.
Masks A and B, two cubics, hide it and what else of F can be seen:

    ωF(X) + A(X)/X + X B(1/X) = T* + X P(X) + Q(1/X)/X                                     (1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.crypto.proofs.field import R
from ragwitness.crypto.proofs.norms.limbs import LIMBS, combine, join, powers, split
from ragwitness.crypto.proofs.norms.projection import PROJECTIONS, Projections
from ragwitness.crypto.proofs.shape import MASKS

__all__ = ["MASK_COEFFICIENTS", "Challenges", "Matrix", "Parts", "identity_holds", "split_parts"]

MASK_COEFFICIENTS = 4
"""Of A and of B each: eight in all, for the eight independent values that are seen of the four
polynomials A, B, P, Q and T* (docs/design/norms.md)."""

_BLOCK = 512


@dataclass(frozen=True, slots=True)
class Challenges:
    """What the verifier draws after the prover has committed to norms and projections.

    Attributes:
        xi: ξ, one power per row.
        zeta: ζ, one power per projection.
        kappa: κ, between the two sums.
        omega: ω, between the sum and its mask.
    """

    xi: int
    zeta: int
    kappa: int
    omega: int


@dataclass(frozen=True, slots=True)
class Matrix:
    """One chunk's secret: rows of integers, and below them rows of blinds.

    Attributes:
        rows: (n, d), each row of norm at most 4,096.
        blinds: Three times d numbers in [0, R).
    """

    rows: NDArray[np.int16]
    blinds: tuple[tuple[int, ...], ...]

    def norms(self) -> list[int]:
        """Return N_j modulo R for all D rows: squared norms, then the blinds' sums of squares."""
        exact = self.rows.astype(np.int64)
        found: list[int] = np.einsum("jc,jc->j", exact, exact).tolist()
        return found + [sum(x * x for x in row) % R for row in self.blinds]

    def at(self, point: int) -> list[int]:
        """Return V_c(point) for every column."""
        held = powers(point, len(self.rows) + MASKS)
        last = held[len(self.rows) :]
        inner = combine(self.rows.T, held[: len(self.rows)])
        return [
            (value + sum(p * x for p, x in zip(last, column, strict=True))) % R
            for value, column in zip(inner, zip(*self.blinds, strict=True), strict=True)
        ]

    def weighted(self, weights: Sequence[int]) -> list[int]:
        """Return the D coefficients of Σ_c weights[c] V_c(X)."""
        return combine(self.rows, weights) + [_dot(weights, row) for row in self.blinds]

    def coefficients(self, projections: Projections, challenges: Challenges) -> list[int]:
        """Return F's coefficients, those of X^(1-D) to X^(D-1)."""
        count = len(self.rows) + MASKS
        total = [0] * (2 * count - 1)
        for start, part in (
            (MASKS, self._squares(challenges.xi)),
            (0, self._blinded_squares(challenges.xi)),
            (MASKS, self._crossed(projections, challenges)),
            (0, self._blinded_crossed(projections, challenges)),
        ):
            for i, value in enumerate(part, start):
                total[i] += value
        return [value % R for value in total]

    def _squares(self, xi: int) -> list[int]:
        """Σ ξ^j ⟨v_j, v_l⟩ X^(j-l) over the rows of integers, from X^(1-n) on.

        Exact: a product ⟨v_j, v_l⟩ is at most 2²⁴ in size, a piece below 2¹⁶, a row count 2¹².
        """
        rows, count = self.rows.astype(np.float64), len(self.rows)
        pieces = split(powers(xi, count))
        sums = np.zeros((2 * count - 1, LIMBS), dtype=np.int64)
        for first in range(0, count, _BLOCK):
            gram = (rows[first : first + _BLOCK] @ rows[::-1].T).astype(np.int64)
            for j, products in enumerate(gram, first):
                sums[j : j + count] += products[:, None] * pieces[j]
        return join(sums)

    def _blinded_squares(self, xi: int) -> list[int]:
        """The products that a row of blinds takes part in, from X^(1-D) on."""
        count = len(self.rows)
        middle = count + MASKS - 1
        total = [0] * (2 * middle + 1)
        weights = powers(xi, count + MASKS)
        for i, blind in enumerate(self.blinds, count):
            for j, product in enumerate(combine(self.rows, blind)):
                total[middle + i - j] += weights[i] * product
                total[middle + j - i] += weights[j] * product
            for k, other in enumerate(self.blinds, count):
                total[middle + i - k] += weights[i] * _dot(blind, other)
        return total

    def _crossed(self, projections: Projections, challenges: Challenges) -> list[int]:
        """κ Σ_i ζ^i Σ b_j ⟨v_l, a⟩ X^(j-l) over the rows of integers, from X^(1-n) on.

        The 309 correlations are taken by FFT. They are integers below 2³², far below what rounds
        wrongly in floats of 64 bits; times a piece and summed they stay below 2⁵⁷.
        """
        count = len(self.rows)
        size = 2 * count - 1
        along = self.rows.astype(np.float64) @ projections.columns.T.astype(np.float64)
        spectrum = np.fft.rfft(along[::-1], size, axis=0)
        spectrum *= np.fft.rfft(projections.rows.T.astype(np.float64), size, axis=0)
        sums = np.rint(np.fft.irfft(spectrum, size, axis=0)).astype(np.int64)
        return join(sums @ split(powers(challenges.zeta, PROJECTIONS, challenges.kappa)))

    def _blinded_crossed(self, projections: Projections, challenges: Challenges) -> list[int]:
        """κ Σ_i ζ^i Σ b_j ⟨v_l, a⟩ X^(j-l) over the rows v_l of blinds, from X^(1-D) on."""
        count = len(self.rows)
        middle = count + MASKS - 1
        total = [0] * (2 * middle + 1)
        weights = powers(challenges.zeta, PROJECTIONS, challenges.kappa)
        for k, blind in enumerate(self.blinds, count):
            inner = combine(projections.columns.astype(np.int16), blind)
            scaled = [w * x % R for w, x in zip(weights, inner, strict=True)]
            for j, value in enumerate(combine(projections.rows.T.astype(np.int16), scaled)):
                total[middle + j - k] += value
        return total


@dataclass(frozen=True, slots=True)
class Parts:
    """Equation (1): masks, total, and the two sides' polynomials, coefficients from X⁰ on.

    Attributes:
        a: A, four.
        b: B, four.
        total: T*.
        p: P, D - 1.
        q: Q, D - 1.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    total: int
    p: tuple[int, ...]
    q: tuple[int, ...]


def split_parts(laurent: Sequence[int], omega: int, a: Sequence[int], b: Sequence[int]) -> Parts:
    """Return T*, P and Q of equation (1).

    Args:
        laurent: F's coefficients, as :meth:`Matrix.coefficients` returns them.
        omega: ω.
        a: A's four coefficients, in [0, R).
        b: B's.
    """
    middle = len(laurent) // 2
    p = [omega * value for value in laurent[middle + 1 :]]
    q = [omega * value for value in laurent[middle - 1 :: -1]]
    p[0] += a[2] + b[0]
    p[1] += a[3]
    q[0] += b[2] + a[0]
    q[1] += b[3]
    total = omega * laurent[middle] + a[1] + b[1]
    return Parts(tuple(a), tuple(b), total % R, tuple(x % R for x in p), tuple(x % R for x in q))


def identity_holds(
    challenges: Challenges,
    projections: Projections,
    point: int,
    columns: tuple[Sequence[int], Sequence[int]],
    parts: tuple[int, int, int, int, int],
) -> bool:
    """Return whether equation (1) holds at a point.

    Args:
        challenges: ξ, ζ, κ, ω.
        projections: 309 pairs of vectors.
        point: z in [1, R).
        columns: V_c(ξz) and V_c(1/z) for all c.
        parts: T*, A(z), B(1/z), P(z), Q(1/z).
    """
    inverse = pow(point, -1, R)
    total, a, b, p, q = parts
    upper, lower = columns
    squares = _dot(upper, lower)
    across = powers(point, projections.rows.shape[1])
    crossed = projections.bilinear(challenges.zeta, lower, across)
    left = challenges.omega * (squares + challenges.kappa * crossed) + a * inverse + b * point
    return (left - total - point * p - inverse * q) % R == 0


def _dot(left: Sequence[int], right: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(left, right, strict=True)) % R
