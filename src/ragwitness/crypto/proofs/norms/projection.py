"""Random projections of a committed matrix: small projections mean small entries, modulo R.

Norms are shown as sums of squares in the field, and there a row with entries near √R or R/2 can
have a sum of squares that wraps around to a small number. Projections exclude this first.

Lemma. Let V be a matrix of integers modulo R, T > 0 with 8T ≤ R, and let V have an entry whose
residue of least size is at least 4T. Draw a ∈ {0, 1}^d and b ∈ {0, 1}ⁿ uniformly. Then bᵀVa lies
outside [-T, T) modulo R with probability at least 1/4.

Proof. Let V[j, c] be the entry; fix all of a but a_c and all of b but b_j. Then bᵀVa is
f(a_c, b_j) = f₀ + f₁ a_c + f₂ b_j + V[j, c] a_c b_j, and f(1,1) - f(1,0) - f(0,1) + f(0,0) is
V[j, c]. If all four values lay in [-T, T), V[j, c] would have a residue of size at most 4T - 2.
So one of four equally likely values lies outside, whatever was fixed.

All of 309 independent pairs miss such a matrix with probability (3/4)^309 < 2⁻¹²⁸. The constant
1/4 is met: a single entry above T, all others 0, is caught if and only if a_c = b_j = 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from ragwitness.crypto.proofs.field import R
from ragwitness.crypto.proofs.norms.limbs import powers
from ragwitness.crypto.proofs.shape import Shape

__all__ = ["PROJECTIONS", "Projections", "projection_bits", "projection_bytes"]

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
        along = matrix.astype(np.float64) @ self.columns.T.astype(np.float64)
        found: list[int] = np.einsum("nm,mn->m", along.astype(np.int64), self.rows).tolist()
        return found

    def bilinear(self, zeta: int, along: Sequence[int], across: Sequence[int]) -> int:
        """Return Σ_i ζ^i ⟨a_i, along⟩ ⟨b_i, across⟩ modulo R.

        This is Σ_c along[c] W_c(z) where ``across`` holds the powers of z: what a verifier needs
        of the polynomials W_c, in (n + d) · 309 / 2 additions.

        Args:
            zeta: In [0, R).
            along: d numbers in [0, R).
            across: n numbers in [0, R).
        """
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
