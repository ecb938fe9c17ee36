"""The verifier's side of the norm proof: py_ecc, and integers of Python and numpy."""

from __future__ import annotations

from collections.abc import Iterator

from ragwitness.crypto.proofs.columns import Columns
from ragwitness.crypto.proofs.curve import msm
from ragwitness.crypto.proofs.equations import Equation, first_false, weighted
from ragwitness.crypto.proofs.field import R
from ragwitness.crypto.proofs.groth16.verify import terms as circuit_terms
from ragwitness.crypto.proofs.norms.polynomials import Challenges, identity_holds
from ragwitness.crypto.proofs.norms.proof import (
    Conversation,
    NormProof,
    OpeningWeights,
    chunk_bytes,
)
from ragwitness.crypto.proofs.opening import opening_terms
from ragwitness.crypto.proofs.points import G1
from ragwitness.crypto.proofs.setup import VerifierSetup
from ragwitness.errors import VerificationError

__all__ = ["verify_norms"]

_MEANING = {
    "norm.identity": "the sum of norms and projections is not that of the opened columns",
    "norm.opening": "what is said of the columns is not what was committed to",
    "norm.rows": "norms and projections are not shown to be within their bounds",
}


def verify_norms(setup: VerifierSetup, columns: Columns, context: bytes, proof: bytes) -> None:
    """Check that every row of a committed index has a norm of at most the scale.

    Returning means that all hold, chunk by chunk, up to the errors in docs/design/norms.md.

    Args:
        setup: Made by someone the verifier trusts.
        columns: The index's commitments.
        context: What the proof has to belong to, the verifier's own.
        proof: Of :func:`~.prove.prove_norms`, one part per chunk.

    Raises:
        VerificationError: ``columns.size`` (commitments of another dimension), ``norm.size``,
            ``point.field``, ``point.curve``, ``point.subgroup``, ``norm.identity`` (also where
            context, columns or setup are others), ``norm.opening`` or ``norm.rows``.
        MissingExtraError: py_ecc is not installed.
    """
    chunks, size = len(columns.chunks), chunk_bytes(setup.shape)
    if not chunks or any(len(chunk) != setup.shape.dimension for chunk in columns.chunks):
        raise VerificationError("columns.size", "The columns are not of the setup's dimension.")
    if len(proof) != chunks * size:
        raise VerificationError(
            "norm.size",
            f"A norm proof for {chunks} chunks has {chunks * size:,} bytes, not {len(proof):,}.",
        )
    parts = [NormProof.parse(proof[i : i + size], setup.shape) for i in range(0, len(proof), size)]
    digests = setup.digest, columns.digest
    checks = [
        _Check(setup, Conversation(setup.shape, *digests, context, chunk), part, chunk)
        for chunk, part in enumerate(parts)
    ]
    equations = [
        equation for check in checks for equation in check.equations(columns.points(check.chunk))
    ]
    found = first_false(equations)
    if found is not None:
        raise _error(found.check, found.chunk)


class _Check:
    """One chunk's challenges, drawn again; making it checks equation (1) at z."""

    def __init__(
        self, setup: VerifierSetup, talk: Conversation, proof: NormProof, chunk: int
    ) -> None:
        self.chunk = chunk
        self._setup, self._proof = setup, proof
        self._challenges = talk.challenges(proof.commitment, proof.masks)
        self._point = talk.point(proof.total, proof.sides)
        held = proof.evaluations
        self._weights = talk.weights(held)
        columns = held.upper, held.lower
        rest = proof.total, held.a, held.b, held.p, held.q
        if not identity_holds(self._challenges, talk.projections, self._point, columns, rest):
            raise _error("norm.identity", chunk)

    def equations(self, columns: list[G1]) -> Iterator[Equation]:
        """Yield what needs pairings: three openings, and the circuit's proof."""
        proof, held, weights = self._proof, self._proof.evaluations, self._weights
        both = msm(columns, weights.columns)
        first, second = weights.first, weights.second
        upper, lower = (_weighted(values, weights) for values in (held.upper, held.lower))
        a, b = proof.masks
        p, q = proof.sides
        xi_point, inverse = self._challenges.xi * self._point % R, pow(self._point, -1, R)
        openings = (
            ([(1, both)], xi_point, upper),
            ([(1, a), (first, p)], self._point, held.a + first * held.p),
            (
                [(1, both), (first, b), (second, q)],
                inverse,
                lower + first * held.b + second * held.q,
            ),
        )
        terms = weighted(
            opening_terms(committed, point, value % R, quotient, self._setup.tau)
            for (committed, point, value), quotient in zip(openings, proof.quotients, strict=True)
        )
        yield Equation("norm.opening", 0, self.chunk, terms)
        inputs = _publics(proof.commitment, self._challenges, proof.total)
        terms = circuit_terms(self._setup.norm, inputs, proof.circuit)
        yield Equation("norm.rows", 0, self.chunk, terms)


def _weighted(values: tuple[int, ...], weights: OpeningWeights) -> int:
    return sum(w * x for w, x in zip(weights.columns, values, strict=True))


def _publics(commitment: int, challenges: Challenges, total: int) -> list[int]:
    return [
        commitment,
        challenges.xi,
        challenges.zeta,
        challenges.kappa,
        challenges.omega,
        total,
    ]


def _error(check: str, chunk: int) -> VerificationError:
    return VerificationError(check, f"Norm proof, chunk {chunk}: {_MEANING[check]}.")
