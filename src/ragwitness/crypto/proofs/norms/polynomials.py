"""One number that holds all norms and projections, as the constant term of a Laurent polynomial.

With the columns V_c(X) = Σ_{j<D} V[j, c] X^j, blinds in the last three rows,

    F(X) = Σ_c V_c(ξX) V_c(1/X) + κ Σ_c V_c(1/X) W_c(X),   W_c(X) = Σ_i ζ^i a⁽ⁱ⁾_c Σ_j b⁽ⁱ⁾_j X^j

has the constant term Σ_{j<D} N_j ξ^j + κ Σ_i ζ^i s_i, N_j = Σ_c V[j, c]² and s_i = b⁽ⁱ⁾ᵀVa⁽ⁱ⁾.
Masks A and B, two cubics, hide it and what else of F can be seen:

    ωF(X) + A(X)/X + X B(1/X) = T* + X P(X) + Q(1/X)/X                                     (1)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from ragwitness.crypto.proofs.points import R
from ragwitness.crypto.proofs.setup import MASKS, Shape

# Sums of integers times field elements in numpy: the field elements are cut into 16-bit pieces.
#
# Σ a · x with small integers a and 254-bit x costs sixteen products of machine numbers instead of
# one of Python's, and BLAS or numpy does them. Every function says for which sizes it is exact.

LIMBS = 16
_LIMB_BITS = 16
_BYTES = 32


def split(values: Sequence[int]) -> NDArray[np.int64]:
    """Return (m, 16) pieces, the lowest first: value = Σ_i pieces[i] 2^(16 i), each below 2¹⁶.

    Args:
        values: m integers in [0, 2²⁵⁶).
    """
    data = b"".join(value.to_bytes(_BYTES, "little") for value in values)
    return np.frombuffer(data, dtype="<u2").reshape(-1, LIMBS).astype(np.int64)


def join(pieces: NDArray[np.int64]) -> list[int]:
    """Return Σ_i pieces[:, i] 2^(16 i) modulo R, m numbers.

    Args:
        pieces: (m, 16), of any sign and size, as they come out of sums.
    """
    rows: list[list[int]] = pieces.tolist()
    found = []
    for row in rows:
        total = 0
        for piece in reversed(row):
            total = (total << _LIMB_BITS) + piece
        found.append(total % R)
    return found


def combine(matrix: NDArray[np.int16], values: Sequence[int]) -> list[int]:
    """Return matrix · values modulo R, as many numbers as the matrix has rows.

    Exact for matrices of int16 with at most 2²⁰ columns: sums stay below 2⁵¹, and floats of 64
    bits hold integers up to 2⁵³.

    Args:
        matrix: (rows, columns) of small integers.
        values: One number in [0, R) per column.
    """
    sums = matrix.astype(np.float64) @ split(values).astype(np.float64)
    return join(sums.astype(np.int64))


def powers(base: int, count: int, first: int = 1) -> list[int]:
    """Return first · base^i modulo R for i from 0 to count - 1."""
    found, value = [], first % R
    for _ in range(count):
        found.append(value)
        value = value * base % R
    return found


# Random projections of a committed matrix: small projections mean small entries, modulo R.
#
# Norms are shown as sums of squares in the field, and there a row with entries near √R or R/2 can
# have a sum of squares that wraps around to a small number. Projections exclude this first.
#
# Lemma. Let V be a matrix of integers modulo R, T > 0 with 8T ≤ R, and let V have an entry whose
# residue of least size is at least 4T. Draw a ∈ {0, 1}^d and b ∈ {0, 1}ⁿ uniformly. Then bᵀVa lies
# outside [-T, T) modulo R with probability at least 1/4.
#
# Proof. Let V[j, c] be the entry; fix all of a but a_c and all of b but b_j. Then bᵀVa is
# f(a_c, b_j) = f₀ + f₁ a_c + f₂ b_j + V[j, c] a_c b_j, and f(1,1) - f(1,0) - f(0,1) + f(0,0) is
# V[j, c]. If all four values lay in [-T, T), V[j, c] would have a residue of size at most 4T - 2.
# So one of four equally likely values lies outside, whatever was fixed.
#
# All of 309 independent pairs miss such a matrix with probability (3/4)^309 < 2⁻¹²⁸. The constant
# 1/4 is met: a single entry above T, all others 0, is caught if and only if a_c = b_j = 1.

PROJECTIONS = 309
"""Pairs of vectors: the fewest with (3/4)^m < 2⁻¹²⁸."""


@dataclass(frozen=True, slots=True)
class Projections:
    """Pairs of binary vectors.

    Attributes:
        columns: a, (309, d), 0 and 1.
        rows: b, (309, n), 0 and 1.
    """

    columns: NDArray[np.uint8]
    rows: NDArray[np.uint8]

    @classmethod
    def read(cls, data: bytes, shape: Shape) -> Projections:
        """Return the vectors that random bytes stand for, a bit per number.

        Args:
            data: :func:`projection_bytes` uniform bytes.
            shape: Gives d and n.
        """
        bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8).reshape(PROJECTIONS, -1), axis=1)
        start = 8 * _width(shape.dimension)
        return cls(bits[:, : shape.dimension], bits[:, start : start + shape.slots])

    def image(self, matrix: NDArray[np.int16]) -> list[int]:
        """Return the projections bᵀVa of a matrix of small integers, 309 numbers.

        Args:
            matrix: V, (n, d), each row of norm at most 4,096.
        """
        # Va⁽ⁱ⁾ for all i at once, then the sums over rows that b⁽ⁱ⁾ selects.
        along = matrix.astype(np.float64) @ self.columns.T.astype(np.float64)
        found: list[int] = np.einsum("nm,mn->m", along.astype(np.int64), self.rows).tolist()
        return found

    def bilinear(self, zeta: int, along: Sequence[int], across: Sequence[int]) -> int:
        """Return Σ_i ζ^i ⟨a_i, along⟩ ⟨b_i, across⟩ modulo R.

        This is Σ_c along[c] W_c(z) where ``across`` holds the powers of z: what a verifier needs
        of the polynomials W_c, in (n + d) · 309 / 2 additions.

        Args:
            zeta: Number in [0, R).
            along: d numbers in [0, R).
            across: n numbers in [0, R).
        """
        # a and b are bits, so their inner products are sums of selected numbers.
        pairs = zip(self.columns.tolist(), self.rows.tolist(), strict=True)
        weights = powers(zeta, PROJECTIONS)
        return (
            sum(
                weight * (sum(compress(along, a)) % R) * (sum(compress(across, b)) % R)
                for weight, (a, b) in zip(weights, pairs, strict=True)
            )
            % R
        )


def projection_bits(shape: Shape) -> int:
    """Return k: every projection of rows of norm at most S lies in [-T, T), T = 2^k.

    |bᵀVa| ≤ Σ_j |⟨v_j, a⟩| ≤ n · S · √d, because ‖a‖ ≤ √d. Within a shape's limits T ≤ 2³², so that
    d(4T)² stays far below R: sums of squares of entries below 4T do not wrap around.
    """
    reach = shape.slots * shape.scale * (math.isqrt(shape.dimension - 1) + 1)
    return reach.bit_length()


def projection_bytes(shape: Shape) -> int:
    """Return how many random bytes the vectors take."""
    return PROJECTIONS * (_width(shape.dimension) + _width(shape.slots))


def _width(bits: int) -> int:
    return (bits + 7) // 8


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
        # Integers by machine numbers; the three rows of blinds by Python's.
        held = powers(point, len(self.rows) + MASKS)
        last = held[len(self.rows) :]
        inner = combine(self.rows.T, held[: len(self.rows)])
        return [
            (value + sum(p * x for p, x in zip(last, column, strict=True))) % R
            for value, column in zip(inner, zip(*self.blinds, strict=True), strict=True)
        ]

    def weighted(self, weights: Sequence[int]) -> list[int]:
        """Return the D coefficients of Σ_c weights[c] V_c(X)."""
        return combine(self.rows, weights) + [dot(weights, row) for row in self.blinds]

    def coefficients(self, projections: Projections, challenges: Challenges) -> list[int]:
        """Return F's coefficients, those of X^(1-D) to X^(D-1)."""
        count = len(self.rows) + MASKS
        # Σ_c V_c(ξX) V_c(1/X), then κ Σ_c V_c(1/X) W_c(X); integers and blinds apart.
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
                total[middle + i - k] += weights[i] * dot(blind, other)
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
class EquationParts:
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


def split_parts(
    laurent: Sequence[int], omega: int, a: Sequence[int], b: Sequence[int]
) -> EquationParts:
    """Return T*, P and Q of equation (1).

    Args:
        laurent: F's coefficients, as :meth:`Matrix.coefficients` returns them.
        omega: ω.
        a: A's four coefficients, in [0, R).
        b: B's.
    """
    middle = len(laurent) // 2
    # ωF, its powers above 0 and below.
    p = [omega * value for value in laurent[middle + 1 :]]
    q = [omega * value for value in laurent[middle - 1 :: -1]]
    # A(X)/X reaches the powers -1 to 2, X·B(1/X) 1 to -2.
    p[0] += a[2] + b[0]
    p[1] += a[3]
    q[0] += b[2] + a[0]
    q[1] += b[3]
    total = omega * laurent[middle] + a[1] + b[1]
    return EquationParts(
        tuple(a), tuple(b), total % R, tuple(x % R for x in p), tuple(x % R for x in q)
    )


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
    # Left: ωF(z) + A(z)/z + z·B(1/z). Right: T* + z·P(z) + Q(1/z)/z.
    inverse = pow(point, -1, R)
    total, a, b, p, q = parts
    upper, lower = columns
    squares = dot(upper, lower)
    across = powers(point, projections.rows.shape[1])
    crossed = projections.bilinear(challenges.zeta, lower, across)
    left = challenges.omega * (squares + challenges.kappa * crossed) + a * inverse + b * point
    return (left - total - point * p - inverse * q) % R == 0


def dot(left: Sequence[int], right: Sequence[int]) -> int:
    """Return Σ left · right modulo R."""
    return sum(x * y for x, y in zip(left, right, strict=True)) % R
