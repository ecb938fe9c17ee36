"""Every row of a committed index is a vector of integers of norm at most the scale: the verifier.

In every row of H, per chunk (docs/design/norms.md):

- the bits N_i of S² minus a row's squared norm, and the bits P_i of projections, are 0 or 1
- Σ_c V_c² + Σ 2^i N_i = S²
- G(wX) - G = Σ_i ξ^i b⁽ⁱ⁾ Y⁽ⁱ⁾ - ξ-column · (Σ 2^i P_i - T), Y⁽ⁱ⁾ = Σ_c a⁽ⁱ⁾_c V_c

Summed over H, the last states that Σ ξ^i (b⁽ⁱ⁾ᵀVa⁽ⁱ⁾ - s_i) = 0, where row i of P holds s_i + T in
[0, 2T). So all 309 random projections are small, all entries are small, and squares are of
integers.

Rounds; prover and verifier name them in their code:

- Round 1, statement: hash of shape, columns, context, chunk → projections a⁽ⁱ⁾, b⁽ⁱ⁾
- Round 2, bits: every N_i and P_i → ξ
- Round 3, running sum: [G] → κ
- Round 4, quotient: [T] → ζ
- Round 5, values: V_c, N_i, P_i at ζ; G(wζ) → μ
- Round 6, openings: π at ζ, and G's at wζ
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragwitness.core.errors import VerificationError
from ragwitness.crypto.hashing import tagged_hash
from ragwitness.crypto.proofs.argument import (
    ColumnOpening,
    Columns,
    Proof,
    ProofForm,
    cut,
    first_false,
    opened,
)
from ragwitness.crypto.proofs.arithmetic import (
    ProofTranscript,
    R,
    Shape,
    combine,
    dot,
    lagrange_at,
    powers,
    roots,
    vanishing,
)

DOMAIN = "ragwitness/norm/v2"

# Random projections of a committed matrix: small projections mean small entries, modulo R.
#
# Norms are sums of squares in the field. There a row with entries near √R or R/2 can have a sum of
# squares that wraps around to a small number. Projections exclude this first.
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
            data: :meth:`size` uniform bytes.
            shape: Gives d and n.
        """
        bits = np.unpackbits(np.frombuffer(data, np.uint8).reshape(PROJECTIONS, -1), axis=1)
        return cls(bits[:, : shape.dimension], bits[:, -shape.slots :])

    @staticmethod
    def size(shape: Shape) -> int:
        """Return how many random bytes the vectors take."""
        return PROJECTIONS * ((shape.dimension + 7) // 8 + shape.slots // 8)


def projection_bits(shape: Shape) -> int:
    """Return k: every projection of rows of norm at most S lies in [-T, T), T = 2^k.

    |bᵀVa| ≤ Σ_j |⟨v_j, a⟩| ≤ n · S · √d, because ‖a‖ ≤ √d. Within a shape's limits T ≤ 2³¹, so that
    d(4T)² stays far below R: sums of squares of entries below 4T do not wrap around.
    """
    reach = shape.slots * shape.scale * (math.isqrt(shape.dimension - 1) + 1)
    return reach.bit_length()


def bit_counts(shape: Shape) -> tuple[int, int]:
    """Return the bits of a difference S² - ‖v‖², and of a projection plus T."""
    return (shape.scale**2).bit_length(), projection_bits(shape) + 1


def norm_form(shape: Shape) -> ProofForm:
    """Return the form of one chunk's proof."""
    width = sum(bit_counts(shape))
    return ProofForm("norm", 32, width + 4, shape.dimension + width + 1)


@dataclass(frozen=True, slots=True)
class NormChallenges:
    """The challenges, in the transcript's order."""

    xi: int
    kappa: int
    zeta: int
    mu: int


class NormConversation:
    """One chunk's transcript: the prover and the verifier call the same methods in one order.

    Args:
        shape: Shape of the window's proofs.
        columns: All chunks' commitments.
        context: Window and tenant of the proof.
        chunk: Number from 0.
    """

    def __init__(self, shape: Shape, columns: Columns, context: bytes, chunk: int) -> None:
        # Round 1, statement. The projections follow from the commitments to the columns: rows could
        # be fitted to projections that are known first.
        statement = (shape.digest, columns.encode(), context, str(chunk).encode())
        self.head = tagged_hash("ragwitness/norm-statement/v2", *statement)
        self._talk = ProofTranscript(DOMAIN, self.head)
        drawn = self._talk.expand("projections", Projections.size(shape))
        self.projections = Projections.read(drawn, shape)

    def bits(self, points: Sequence[bytes]) -> int:
        """Absorb all bits' columns; return ξ."""
        # Round 2, bits. Were ξ known first, the sum would be fitted instead of its terms.
        self._talk.absorb_points("bits", points)
        return self._talk.challenge("xi")

    def running(self, point: bytes) -> int:
        """Absorb [G]; return κ."""
        # Round 3, running sum. Were κ known first, errors of two equations would cancel.
        self._talk.absorb_points("running", [point])
        return self._talk.challenge("kappa")

    def quotient(self, point: bytes) -> int:
        """Absorb [T]; return ζ."""
        # Round 4, quotient. An identity of polynomials is fitted at a point known first.
        self._talk.absorb_points("quotient", [point])
        return self._talk.challenge("zeta")

    def values(self, values: Sequence[int]) -> int:
        """Absorb all values; return μ."""
        # Round 5, values. Wrong ones would cancel under weights that are known first.
        self._talk.absorb_scalars("values", values)
        return self._talk.challenge("mu")


def row_weights(shape: Shape, kappa: int) -> list[int]:
    """Return κ's powers: one per bit's column, of the squares' equation and of the sums'."""
    return powers(kappa, sum(bit_counts(shape)) + 2)


def linear_weights(shape: Shape, weights: Sequence[int]) -> list[int]:
    """Return each bit column's factor in F, besides those of its square and of P·ξ."""
    *bit_weights, squares, _ = weights
    small, _ = bit_counts(shape)
    return [(-w + (squares << i if i < small else 0)) % R for i, w in enumerate(bit_weights)]


def norm_factors(
    shape: Shape, drawn: Projections, held: NormChallenges, values: Sequence[int]
) -> tuple[int, int, int]:
    """Return the constant, and the factors of G and T, of the sum that must be 0 at ζ.

    Args:
        shape: Shape of the window's proofs.
        drawn: The projections.
        held: All challenges.
        values: V_c, N_i and P_i at ζ, then G(wζ).

    Raises:
        VerificationError: ``norm.opening``; ζ lies in H.
    """
    vanish, dimension = vanishing(shape.slots, held.zeta), shape.dimension
    if not vanish:
        raise VerificationError("norm.opening", "The challenge is a root of unity.")
    basis = lagrange_at(shape.slots, held.zeta)
    *at_zeta, turned = values
    columns, bits = at_zeta[:dimension], at_zeta[dimension:]
    weights = row_weights(shape, held.kappa)
    *bit_weights, squares, sums = weights
    small, _ = bit_counts(shape)
    # The random weights of projections.
    xis = powers(held.xi, PROJECTIONS)
    # Bits, norms, and G(wζ) - G - Σ ξ^i b Y + ξ-column · (Σ 2^i P_i - T).
    constant = dot(bit_weights, (v * v for v in bits)) + dot(linear_weights(shape, weights), bits)
    constant += squares * (dot(columns, columns) - shape.scale**2)
    rows, inner = combine(drawn.rows, basis), combine(drawn.columns, columns)
    crossed = dot(xis, (x * y for x, y in zip(rows, inner, strict=True)))
    projected = sum(v << i for i, v in enumerate(bits[small:])) - (1 << projection_bits(shape))
    constant += sums * (turned - crossed + dot(xis, basis[:PROJECTIONS]) * projected)
    last = pow(held.mu, len(at_zeta), R)
    return last * constant % R, -last * sums % R, -last * vanish % R


def verify_norms(shape: Shape, columns: Columns, context: bytes, proof: bytes) -> None:
    """Check that every row of a committed index has a norm of at most the scale.

    Returning means that all hold, chunk by chunk, up to the errors in docs/design/norms.md.

    Args:
        shape: Shape of the window's proofs, by its policy.
        columns: The index's commitments.
        context: Window and tenant of the proof, the verifier's own.
        proof: Proof from :func:`~.prove_norms.prove_norms`, one part per chunk.

    Raises:
        VerificationError: ``columns.…`` (of another dimension, or not points), ``norm.size``,
            ``point.…``, ``norm.statement`` (made for other columns, or another shape or context) or
            ``norm.opening`` (the argument does not hold).
        MissingExtraError: The curve's package is not installed.
    """
    # Sizes first; no point has been read.
    form, chunks = norm_form(shape), len(columns.chunks)
    if {*map(len, columns.chunks)} != {shape.dimension}:
        raise VerificationError("columns.size", "The columns are not of the policy's dimension.")
    if len(proof) != chunks * form.size:
        raise VerificationError(
            "norm.size",
            f"A norm proof for {chunks} chunks has {chunks * form.size:,} bytes, not"
            f" {len(proof):,}.",
        )
    # Replay every chunk, then check all openings together.
    openings = []
    for chunk, data in enumerate(cut(proof, form.size)):
        talk = NormConversation(shape, columns, context, chunk)
        openings.append(_openings(shape, talk, columns, Proof.parse(data, form), chunk))
    wrong = first_false(openings)
    if wrong is not None:
        raise VerificationError(
            "norm.opening",
            f"Norm proof, chunk {wrong}: the rows are not shown to be integers within the scale.",
        )


def _openings(
    shape: Shape, talk: NormConversation, columns: Columns, proof: Proof, chunk: int
) -> list[ColumnOpening]:
    """Replay one chunk's conversation; return the sums that must be 0 at ζ and at wζ."""
    # Round 1, statement. The hash gives a failure its name.
    if proof.head != talk.head:
        raise VerificationError(
            "norm.statement", f"Norm proof, chunk {chunk}: it was made for another index or window."
        )
    *bits, running, quotient, first, second = proof.read()
    sent, values = proof.points, proof.scalars
    # Rounds 2 to 5. Challenge: ξ; κ; ζ; μ.
    xi, kappa = talk.bits(sent[: len(bits)]), talk.running(sent[-4])
    zeta = talk.quotient(sent[-3])
    challenges = NormChallenges(xi, kappa, zeta, talk.values(values))
    # Round 6, openings. Check: all values, and F = Z·T, at ζ; G(wζ).
    constant, at_running, at_quotient = norm_factors(shape, talk.projections, challenges, values)
    terms, below, _ = opened([*columns.points[chunk], *bits], values[:-1], challenges.mu)
    terms += [(running, at_running), (quotient, at_quotient)]
    turned = zeta * roots(shape.slots)[1] % R
    return [
        ColumnOpening(terms, constant + below, zeta, first),
        ColumnOpening([(running, 1)], -values[-1], turned, second),
    ]
