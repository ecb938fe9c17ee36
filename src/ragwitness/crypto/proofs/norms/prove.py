"""The provider's side of the norm proof, once per window and chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ragwitness.crypto.proofs.circuits.norm import norm_commitment
from ragwitness.crypto.proofs.fiat_shamir import Transcript
from ragwitness.crypto.proofs.field import R
from ragwitness.crypto.proofs.norms.polynomials import (
    MASK_COEFFICIENTS,
    Challenges,
    Matrix,
    Parts,
    split_parts,
)
from ragwitness.crypto.proofs.norms.proof import (
    Conversation,
    Evaluations,
    NormProof,
    OpeningWeights,
)
from ragwitness.crypto.proofs.norms.verify import verify_norms
from ragwitness.crypto.proofs.opening import divide
from ragwitness.crypto.proofs.points import G1
from ragwitness.crypto.proofs.secret import SecretColumns, check_rows
from ragwitness.errors import InputError, VerificationError

if TYPE_CHECKING:
    from ragwitness.crypto.proofs.prover_setup import ProverSetup

__all__ = ["Masks", "commit", "derive_masks", "evaluate", "open_parts", "prove_norms"]


@dataclass(frozen=True, slots=True)
class Masks:
    """What hides the rest.

    Attributes:
        a: A's four coefficients.
        b: B's.
        salt: Of hN.
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
    check_rows(secret.rows, shape)
    columns = secret.public.digest
    proofs = []
    for chunk, blinds in enumerate(secret.blinds):
        talk = Conversation(shape, setup.verifier.digest, columns, context, chunk)
        rows = secret.chunk_rows(chunk).astype(np.int16)
        matrix = Matrix(rows, tuple(zip(*blinds, strict=True)))
        proofs.append(_prove_chunk(setup, talk, matrix, derive_masks(talk.seed, matrix)).encode())
    made = b"".join(proofs)
    try:  # what does not verify could still tell of the rows
        verify_norms(setup.verifier, secret.public, context, made)
    except VerificationError as error:
        raise InputError(
            f"The norm proof does not verify ({error.check}): rows or blinds are not those that"
            " were committed to.",
            "Commit the index again: ragwitness commit.",
        ) from error
    return made


def _prove_chunk(setup: ProverSetup, talk: Conversation, matrix: Matrix, masks: Masks) -> NormProof:
    shape = setup.verifier.shape
    norms, image = matrix.norms(), talk.projections.image(matrix.rows)
    commitment = norm_commitment(shape, norms, image, masks.constant, masks.salt)
    covers = commit(setup.powers, masks.a), commit(setup.powers, masks.b)
    challenges = talk.challenges(commitment, covers)
    laurent = matrix.coefficients(talk.projections, challenges)
    parts = split_parts(laurent, challenges.omega, masks.a, masks.b)
    sides = commit(setup.powers, parts.p), commit(setup.powers, parts.q)
    point = talk.point(parts.total, sides)
    evaluations = evaluate(matrix, parts, challenges.xi, point)
    weights = talk.weights(evaluations)
    quotients = open_parts(setup.powers, matrix, parts, weights, challenges.xi, point)
    inputs = {
        **_publics(commitment, challenges, parts.total),
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
        seed: Of the conversation: depends on setup, columns, context and chunk.
        matrix: Its blinds are the key.
    """
    stream = Transcript("ragwitness/norm-masks/v1")
    for row in matrix.blinds:
        stream.absorb_scalars("blinds", row)
    stream.absorb("seed", seed)
    drawn = [stream.challenge("mask") for _ in range(2 * MASK_COEFFICIENTS)]
    halves = tuple(drawn[:MASK_COEFFICIENTS]), tuple(drawn[MASK_COEFFICIENTS:])
    return Masks(*halves, stream.challenge("salt"))


def commit(powers: Sequence[Any], coefficients: Sequence[int]) -> G1:
    """Return a polynomial's commitment.

    Args:
        powers: The setup's, as zksnake's points, at least as many as coefficients.
        coefficients: From X⁰ on.
    """
    from ragwitness.crypto.proofs.native import from_native_g1, native_msm

    return from_native_g1(native_msm(powers[: len(coefficients)], coefficients))


def evaluate(matrix: Matrix, parts: Parts, xi: int, point: int) -> Evaluations:
    """Return the polynomials of equation (1) at ξz, z and 1/z."""
    inverse = pow(point, -1, R)
    return Evaluations(
        tuple(matrix.at(xi * point % R)),
        tuple(matrix.at(inverse)),
        divide(parts.a, point)[0],
        divide(parts.b, inverse)[0],
        divide(parts.p, point)[0],
        divide(parts.q, inverse)[0],
    )


def open_parts(
    powers: Sequence[Any],
    matrix: Matrix,
    parts: Parts,
    weights: OpeningWeights,
    xi: int,
    point: int,
) -> tuple[G1, G1, G1]:
    """Return the openings of weighted sums at ξz, z and 1/z: all columns; A, P; columns, B, Q."""
    columns = matrix.weighted(weights.columns)
    middle = _sum([(1, parts.a), (weights.first, parts.p)])
    lower = _sum([(1, columns), (weights.first, parts.b), (weights.second, parts.q)])
    opened = (columns, xi * point % R), (middle, point), (lower, pow(point, -1, R))
    upper, between, last = (commit(powers, divide(poly, at)[1]) for poly, at in opened)
    return upper, between, last


def _sum(parts: Sequence[tuple[int, Sequence[int]]]) -> list[int]:
    total = [0] * max(len(poly) for _, poly in parts)
    for weight, poly in parts:
        for i, value in enumerate(poly):
            total[i] += weight * value
    return [value % R for value in total]


def _publics(commitment: int, challenges: Challenges, total: int) -> dict[str, list[int]]:
    return {
        "commitment": [commitment],
        "xi": [challenges.xi],
        "zeta": [challenges.zeta],
        "kappa": [challenges.kappa],
        "omega": [challenges.omega],
        "total": [total],
    }
