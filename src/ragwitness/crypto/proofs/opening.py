"""Evaluations of committed polynomials (KZG), and the proof that a mask is nothing but a mask.

*Opening* (Kate, Zaverucha and Goldberg 2010, §3.2): C commits to Y with Y(r) = e if and only if
X - r divides Y(X) - e; with W = [(Y(τ) - e) / (τ - r)], e(C - e[1] + rW, [1]₂) = e(W, [τ]₂).

*Mask* (Okamoto 1992): knowledge of m with C = Σ m_i [τ^(n+i)], i = 0, 1, 2. Without it a provider
could add to the scores' commitment any change of any score.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ragwitness.crypto.proofs.curve import Term, product_holds
from ragwitness.crypto.proofs.points import (
    G1,
    G1_BYTES,
    G1_GENERATOR,
    G2,
    G2_GENERATOR,
    R,
    parse_g1,
)
from ragwitness.crypto.proofs.setup import Shape
from ragwitness.errors import VerificationError


def divide(coefficients: Sequence[int], point: int) -> tuple[int, list[int]]:
    """Return Y(point) and the coefficients of (Y(X) - Y(point)) / (X - point).

    Args:
        coefficients: Coefficients of Y, the constant first, at least one.
        point: Element of the field.
    """
    # Horner's scheme gives the value and the quotient at once.
    quotient = [0] * (len(coefficients) - 1)
    value = coefficients[-1] % R
    for i in range(len(coefficients) - 2, -1, -1):
        quotient[i] = value
        value = (value * point + coefficients[i]) % R
    return value, quotient


def opening_terms(
    committed: Sequence[tuple[int, G1]], point: int, value: int, quotient: G1, tau: G2
) -> list[Term]:
    """Return the factors whose product is 1 if Σ scalar · commitment opens to ``value``.

    Args:
        committed: Scalars and commitments whose sum is opened.
        point: Where, r.
        value: What is claimed there, e.
        quotient: W.
        tau: [τ]₂.
    """
    # e(Σ scalar · C - e[1] + rW, [1]₂) · e(-W, [τ]₂) = 1.
    return [
        *(Term(scalar, held, G2_GENERATOR) for scalar, held in committed),
        Term(-value, G1_GENERATOR, G2_GENERATOR),
        Term(point, quotient, G2_GENERATOR),
        Term(-1, quotient, tau),
    ]


def mask_responses(masks: Sequence[int], nonces: Sequence[int], challenge: int) -> tuple[int, ...]:
    """Return nonce + challenge · mask for each mask; a nonce serves once."""
    return tuple((k + challenge * m) % R for k, m in zip(nonces, masks, strict=True))


def mask_terms(
    mask: G1, first: G1, challenge: int, responses: Sequence[int], bases: Sequence[G1]
) -> list[Term]:
    """Return the factors whose product is 1 if first + challenge · mask = Σ response · base.

    Args:
        mask: C_m.
        first: Σ nonce · base, sent before the challenge.
        challenge: Element of the field.
        responses: One per base.
        bases: [τⁿ], [τⁿ⁺¹], [τⁿ⁺²].
    """
    # A_m + c·C_m - Σ response · base = 0.
    held = [(1, first), (challenge, mask)]
    held += [(-response, base) for response, base in zip(responses, bases, strict=True)]
    return [Term(scalar, point, G2_GENERATOR) for scalar, point in held]


# Many products of pairings checked as one; where that fails, which of them is false.

_WEIGHT_BITS = 128


@dataclass(frozen=True, slots=True)
class Equation:
    """Π e(scalar · g1, g2) = 1.

    Attributes:
        check: Name of the check that fails without it.
        place: Place of the proof in a sequence, from 0.
        chunk: Number of the chunk in the index, from 0.
        terms: The factors.
    """

    check: str
    place: int
    chunk: int
    terms: Sequence[Term]


def first_false(equations: Sequence[Equation]) -> Equation | None:
    """Return None if all equations hold, else the first that does not.

    They are multiplied, each but the first with a random weight of 128 bits of the verifier's own:
    false ones pass with probability 2⁻¹²⁸. Only where the product is not 1 is each checked alone.

    Raises:
        MissingExtraError: py_ecc is not installed.
    """
    # All at once; then, only where that fails, one by one, to name the false one.
    if not equations or product_holds(weighted(found.terms for found in equations)):
        return None
    return next(found for found in equations if not product_holds(found.terms))


def weighted(groups: Iterable[Sequence[Term]]) -> list[Term]:
    """Return the factors of one product for many, each but the first with a random weight."""
    found = []
    for number, group in enumerate(groups):
        weight = secrets.randbits(_WEIGHT_BITS) if number else 1
        found += [replace(term, scalar=term.scalar * weight) for term in group]
    return found


# Commitments to an index, one per chunk and column: KZG, blinded (the paper's R6).
#
# A chunk's column c is the polynomial V_c(X) = Σ_j V[j, c] X^j + ρ₀ Xⁿ + ρ₁ Xⁿ⁺¹ + ρ₂ Xⁿ⁺², and its
# commitment the point [V_c(τ)]. Each commitment is uniform whatever the column is; three blinds,
# because the norm proof shows two evaluations of each column besides (docs/design/norms.md).

MOST_CHUNKS = 1 << 10
"""Chunks of one index, here and in everything that reads a length from them."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The public side of an index.

    Attributes:
        chunks: Per chunk and column the commitment, 64 bytes, checked to be a point.
    """

    chunks: tuple[tuple[bytes, ...], ...]

    def encode(self) -> bytes:
        """Return the file: chunk after chunk, column after column."""
        return b"".join(b"".join(chunk) for chunk in self.chunks)

    @property
    def digest(self) -> str:
        """SHA-256 of :meth:`encode` in hex."""
        return hashlib.sha256(self.encode()).hexdigest()

    def points(self, chunk: int) -> list[G1]:
        """Return a chunk's commitments as points.

        Raises:
            VerificationError: ``columns.field`` or ``columns.curve``: made by hand, not parsed.
        """
        return [parse_g1(data, "columns") for data in self.chunks[chunk]]

    @classmethod
    def parse(cls, data: bytes, shape: Shape) -> Columns:
        """Return what :meth:`encode` wrote, every point checked.

        Raises:
            VerificationError: ``columns.size`` (not a whole number of chunks from 1 to 1,024),
                ``columns.field`` or ``columns.curve``.
        """
        size = shape.dimension * G1_BYTES
        chunks, rest = divmod(len(data), size)
        if rest or not 1 <= chunks <= MOST_CHUNKS:
            raise VerificationError(
                "columns.size",
                f"{shape.dimension} columns take {size:,} bytes per chunk, for 1 to"
                f" {MOST_CHUNKS:,} chunks; there are {len(data):,}.",
            )
        points = [data[i : i + G1_BYTES] for i in range(0, len(data), G1_BYTES)]
        for point in points:
            parse_g1(point, "columns")
        width = shape.dimension
        return cls(tuple(tuple(points[i * width : (i + 1) * width]) for i in range(chunks)))
