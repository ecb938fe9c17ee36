"""The verifier's side of the norm proof: the curve, and integers of Python and numpy."""

from __future__ import annotations

from collections.abc import Iterator

from ragwitness.crypto.proofs.curve import msm
from ragwitness.crypto.proofs.groth16 import terms as circuit_terms
from ragwitness.crypto.proofs.norms.polynomials import identity_holds
from ragwitness.crypto.proofs.norms.proof import (
    Conversation,
    NormProof,
    chunk_bytes,
    circuit_inputs,
)
from ragwitness.crypto.proofs.opening import Columns, Equation, first_false, opening_terms, weighted
from ragwitness.crypto.proofs.points import G1, R
from ragwitness.crypto.proofs.setup import VerifierSetup
from ragwitness.errors import VerificationError

_MEANING = {
    "norm.identity": "the sum of norms and projections is not that of the opened columns",
    "norm.opening": "the values claimed for the columns are not those that were committed to",
    "norm.rows": "norms and projections are not shown to be within their bounds",
}


def verify_norms(setup: VerifierSetup, columns: Columns, context: bytes, proof: bytes) -> None:
    """Check that every row of a committed index has a norm of at most the scale.

    Returning means that all hold, chunk by chunk, up to the errors in docs/design/norms.md.

    Args:
        setup: Made by someone the verifier trusts.
        columns: The index's commitments.
        context: What the proof has to belong to, the verifier's own.
        proof: Proof from :func:`~.prove.prove_norms`, one part per chunk.

    Raises:
        VerificationError: ``columns.size`` (commitments of another dimension), ``norm.size``,
            ``point.field``, ``point.curve``, ``point.subgroup``, ``norm.identity`` (also where
            context, columns or setup are others), ``norm.opening`` or ``norm.rows``.
        MissingExtraError: py_ecc is not installed.
    """
    # Sizes, points and scalars of all chunks first: nothing is multiplied for a malformed proof.
    parts = parse_norms(setup, columns, proof)
    digest = columns.digest
    equations: list[Equation] = []
    for chunk, part in enumerate(parts):
        talk = Conversation(setup.shape, setup.digest, digest, context, chunk)
        equations += _check_chunk(setup, talk, columns.points(chunk), part, chunk)
    # Everything that needs pairings, of all chunks together.
    found = first_false(equations)
    if found is not None:
        raise _error(found.check, found.chunk)


def parse_norms(setup: VerifierSetup, columns: Columns, proof: bytes) -> list[NormProof]:
    """Return a norm proof's parts, one per chunk of the columns.

    Raises:
        VerificationError: As :func:`verify_norms` for sizes, points and scalars.
    """
    chunks, size = len(columns.chunks), chunk_bytes(setup.shape)
    if not chunks or any(len(chunk) != setup.shape.dimension for chunk in columns.chunks):
        raise VerificationError("columns.size", "The columns are not of the setup's dimension.")
    if len(proof) != chunks * size:
        raise VerificationError(
            "norm.size",
            f"A norm proof for {chunks} chunks has {chunks * size:,} bytes, not {len(proof):,}.",
        )
    return [NormProof.parse(proof[i : i + size], setup.shape) for i in range(0, len(proof), size)]


def _check_chunk(
    setup: VerifierSetup, talk: Conversation, columns: list[G1], proof: NormProof, chunk: int
) -> Iterator[Equation]:
    """Replay one chunk's conversation, check equation (1), and yield what needs pairings."""
    held = proof.evaluations

    # Round 1, statement: ``talk`` has absorbed it and drawn the projections.
    # Round 2, commit. Challenge: ξ, ζ, κ, ω.
    challenges = talk.challenges(proof.commitment, proof.masks)
    # Round 3, total and sides. Challenge: z.
    point = talk.point(proof.total, proof.sides)
    # Round 4, evaluations. Challenge: the weights of the openings.
    weights = talk.weights(held)

    # Check: equation (1) at z, which binds T* to the columns (soundness, steps 2 to 4).
    values = proof.total, held.a, held.b, held.p, held.q
    if not identity_holds(challenges, talk.projections, point, (held.upper, held.lower), values):
        raise _error("norm.identity", chunk)

    # Round 5, openings. Check: all columns at ξz; A and P at z; columns, B and Q at 1/z.
    both = msm(columns, weights.columns)
    first, second = weights.first, weights.second
    upper, lower = (
        sum(w * x for w, x in zip(weights.columns, part, strict=True))
        for part in (held.upper, held.lower)
    )
    a, b = proof.masks
    p, q = proof.sides
    below = [(1, both), (first, b), (second, q)]
    openings = (
        ([(1, both)], challenges.xi * point % R, upper),
        ([(1, a), (first, p)], point, held.a + first * held.p),
        (below, pow(point, -1, R), lower + first * held.b + second * held.q),
    )
    terms = weighted(
        opening_terms(committed, at, value % R, quotient, setup.tau)
        for (committed, at, value), quotient in zip(openings, proof.quotients, strict=True)
    )
    yield Equation("norm.opening", 0, chunk, terms)

    # Round 5, the circuit. Check: norms and projections under hN are within their bounds, and
    # T* is their masked sum (soundness, steps 5 and 6).
    inputs = list(circuit_inputs(proof.commitment, challenges, proof.total).values())
    yield Equation("norm.rows", 0, chunk, circuit_terms(setup.norm, inputs, proof.circuit))


def _error(check: str, chunk: int) -> VerificationError:
    return VerificationError(check, f"Norm proof, chunk {chunk}: {_MEANING[check]}.")
