"""The provider's side of the norm proof, once per window and chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ragwitness.crypto.proofs.circuits.norm import norm_commitment
from ragwitness.crypto.proofs.fiat_shamir import ProofTranscript
from ragwitness.crypto.proofs.native import native_commit
from ragwitness.crypto.proofs.norms.polynomials import (
    MASK_COEFFICIENTS,
    EquationParts,
    Matrix,
    split_parts,
)
from ragwitness.crypto.proofs.norms.proof import (
    Conversation,
    Evaluations,
    NormProof,
    OpeningWeights,
    circuit_inputs,
)
from ragwitness.crypto.proofs.norms.verify import verify_norms
from ragwitness.crypto.proofs.opening import divide
from ragwitness.crypto.proofs.points import G1, R
from ragwitness.crypto.proofs.secret import SecretColumns, check_integer_rows
from ragwitness.errors import InputError, VerificationError

if TYPE_CHECKING:
    from ragwitness.crypto.proofs.prover_setup import ProverSetup


@dataclass(frozen=True, slots=True)
class Masks:
    """The masks of equation (1), and the salt of the circuit's commitment.

    Attributes:
        a: A's four coefficients.
        b: B's.
        salt: Salt of hN.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    salt: int

    @property
    def constant(self) -> int:
        """g₀, what they add to F's constant term in equation (1)."""
        return (self.a[1] + self.b[1]) % R


def prove_norms(setup: ProverSetup, secret: SecretColumns, context: bytes) -> bytes:
    """Return the proof that every row's norm is at most the scale.

    The three blinds of a column hide its commitment and two evaluations, those of one proof: make
    one proof for a set of commitments, and commit anew for another window. The same proof made
    again shows the same evaluations, since its masks are derived. It is verified before it is
    returned.

    Args:
        setup: With the provider's keys.
        secret: Rows and blinds of all chunks.
        context: What the proof belongs to, e.g. window and tenant.

    Raises:
        InputError: The rows do not fit the setup, or are not those that were committed to.
        MissingExtraError: zksnake is not installed.
    """
    shape = setup.verifier.shape
    # A long row would not be provable; it is refused before anything is computed.
    check_integer_rows(secret.rows, shape)
    columns = secret.public.digest
    proofs = []
    for chunk, blinds in enumerate(secret.blinds):
        talk = Conversation(shape, setup.verifier.digest, columns, context, chunk)
        rows = secret.chunk_rows(chunk).astype(np.int16)
        matrix = Matrix(rows, tuple(zip(*blinds, strict=True)))
        proofs.append(_prove_chunk(setup, talk, matrix, derive_masks(talk.seed, matrix)).encode())
    made = b"".join(proofs)
    # The provider is its own first verifier: a proof that fails could still reveal the rows.
    try:
        verify_norms(setup.verifier, secret.public, context, made)
    except VerificationError as error:
        raise InputError(
            f"The norm proof does not verify ({error.check}): rows or blinds are not those that"
            " were committed to.",
            "Commit the index again: ragwitness commit.",
        ) from error
    return made


def _prove_chunk(setup: ProverSetup, talk: Conversation, matrix: Matrix, masks: Masks) -> NormProof:
    shape, powers = setup.verifier.shape, setup.powers

    # Round 1, statement: ``talk`` has absorbed it and drawn the projections.
    # The secret that they lead to: N_j, with the rows of blinds, and s_i = b⁽ⁱ⁾ᵀVa⁽ⁱ⁾.
    norms, image = matrix.norms(), talk.projections.image(matrix.rows)

    # Round 2, commit: hN to all N_j, s_i and g₀; [A] and [B] to the masks.
    commitment = norm_commitment(shape, norms, image, masks.constant, masks.salt)
    covers = native_commit(powers, masks.a), native_commit(powers, masks.b)
    # Challenge: ξ over rows, ζ over projections, κ between the two sums, ω before the mask.
    challenges = talk.challenges(commitment, covers)

    # Round 3, total and sides: F's constant term with its mask is T*; the powers above it are P,
    # those below it Q, equation (1).
    laurent = matrix.coefficients(talk.projections, challenges)
    parts = split_parts(laurent, challenges.omega, masks.a, masks.b)
    sides = native_commit(powers, parts.p), native_commit(powers, parts.q)
    # Challenge: z, where equation (1) is checked.
    point = talk.point(parts.total, sides)

    # Round 4, evaluations: everything in equation (1) at z.
    evaluations = evaluate(matrix.at, parts, challenges.xi, point)
    # Challenge: 128-bit weights, which make one opening of all polynomials at a point.
    weights = talk.weights(evaluations)

    # Round 5, openings: three KZG quotients, and Groth16 for what is under hN: norms and
    # projections within their bounds, and T* their masked sum.
    quotients = open_parts(powers, matrix, parts, weights, challenges.xi, point)
    public = circuit_inputs(commitment, challenges, parts.total)
    inputs = {
        **{name: [value] for name, value in public.items()},
        "norms": norms,
        "projections": [value % R for value in image],
        "mask": [masks.constant],
        "salt": [masks.salt],
    }
    return NormProof(
        commitment, covers, parts.total, sides, evaluations, quotients, setup.prove_norm(inputs)
    )


def derive_masks(seed: bytes, matrix: Matrix) -> Masks:
    """Return masks that nobody without the blinds can tell from random ones.

    They depend on all that the challenges depend on, so that no two different proofs share them,
    and on nothing else, so that a proof made again opens the columns at the same points.

    Args:
        seed: Seed of the conversation: depends on setup, columns, context and chunk.
        matrix: Its blinds are the key.
    """
    stream = ProofTranscript("ragwitness/norm-masks/v1")
    # The secret half: blinds, which nobody else has.
    for row in matrix.blinds:
        stream.absorb_scalars("blinds", row)
    # The public half: the conversation, so that another context has other masks.
    stream.absorb("seed", seed)
    drawn = [stream.challenge("mask") for _ in range(2 * MASK_COEFFICIENTS)]
    halves = tuple(drawn[:MASK_COEFFICIENTS]), tuple(drawn[MASK_COEFFICIENTS:])
    return Masks(*halves, stream.challenge("salt"))


def evaluate(
    columns: Callable[[int], Iterable[int]], parts: EquationParts, xi: int, point: int
) -> Evaluations:
    """Return the polynomials of equation (1) at ξz, z and 1/z; ``columns`` gives V_c's values."""
    inverse = pow(point, -1, R)
    return Evaluations(
        tuple(columns(xi * point % R)),
        tuple(columns(inverse)),
        divide(parts.a, point)[0],
        divide(parts.b, inverse)[0],
        divide(parts.p, point)[0],
        divide(parts.q, inverse)[0],
    )


def open_parts(
    powers: Sequence[Any],
    matrix: Matrix,
    parts: EquationParts,
    weights: OpeningWeights,
    xi: int,
    point: int,
) -> tuple[G1, G1, G1]:
    """Return the openings of weighted sums at ξz, z and 1/z: all columns; A, P; columns, B, Q."""
    # One set of weights serves the columns at both points: it is drawn after all values.
    columns = matrix.weighted(weights.columns)
    middle = summed([(1, parts.a), (weights.first, parts.p)])
    lower = summed([(1, columns), (weights.first, parts.b), (weights.second, parts.q)])
    opened = (columns, xi * point % R), (middle, point), (lower, pow(point, -1, R))
    upper, between, last = (native_commit(powers, divide(poly, at)[1]) for poly, at in opened)
    return upper, between, last


def summed(parts: Sequence[tuple[int, Sequence[int]]]) -> list[int]:
    """Return the coefficients of a weighted sum of polynomials."""
    total = [0] * max(len(poly) for _, poly in parts)
    for weight, poly in parts:
        for i, value in enumerate(poly):
            total[i] += weight * value
    return [value % R for value in total]
