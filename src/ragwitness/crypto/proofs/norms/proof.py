"""The bytes of a norm proof, and the challenges in between.

Order of one chunk's conversation; prover and verifier name these rounds in their code, and
docs/design/norms.md says why each message comes where it does:

- Round 1, statement: setup, columns, context, chunk → projections a⁽ⁱ⁾, b⁽ⁱ⁾
- Round 2, commit: hN, [A], [B] → ξ, ζ, κ, ω
- Round 3, total and sides: T*, [P], [Q] → z
- Round 4, evaluations: V_c(ξz), V_c(1/z), A, B, P, Q → weights of the openings
- Round 5, openings: three quotients, the circuit's proof
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from ragwitness.crypto.proofs.fiat_shamir import ProofTranscript
from ragwitness.crypto.proofs.groth16 import PROOF_BYTES, Proof
from ragwitness.crypto.proofs.norms.polynomials import Challenges, Projections, projection_bytes
from ragwitness.crypto.proofs.points import (
    G1,
    G1_BYTES,
    SCALAR_BYTES,
    encode_g1,
    encode_scalar,
    parse_g1,
    parse_scalar,
)
from ragwitness.crypto.proofs.setup import Shape
from ragwitness.errors import VerificationError

_DOMAIN = "ragwitness/norm/v1"
_WEIGHT_BYTES = 16
_POINTS = 7
_SCALARS = 6  # hN, T*, and one value each of A, B, P, Q


@dataclass(frozen=True, slots=True)
class Evaluations:
    """The values that the prover claims for its polynomials at ξz, z and 1/z.

    Attributes:
        upper: V_c(ξz), d numbers.
        lower: V_c(1/z), d numbers.
        a: A(z).
        b: B(1/z).
        p: P(z).
        q: Q(1/z).
    """

    upper: tuple[int, ...]
    lower: tuple[int, ...]
    a: int
    b: int
    p: int
    q: int

    @property
    def scalars(self) -> tuple[int, ...]:
        """All of them, in order."""
        return (*self.upper, *self.lower, self.a, self.b, self.p, self.q)


@dataclass(frozen=True, slots=True)
class NormProof:
    """One chunk's proof.

    Attributes:
        commitment: hN, a hash of norms, projections and the mask's constant term.
        masks: [A], [B].
        total: T*.
        sides: [P], [Q].
        evaluations: Evaluations at ξz, z and 1/z.
        quotients: KZG openings at ξz, z and 1/z.
        circuit: Groth16's, that norms and projections are small and T* is their masked sum.
    """

    commitment: int
    masks: tuple[G1, G1]
    total: int
    sides: tuple[G1, G1]
    evaluations: Evaluations
    quotients: tuple[G1, G1, G1]
    circuit: Proof

    def encode(self) -> bytes:
        """Return the one encoding: scalars, points, the circuit's proof."""
        scalars = (self.commitment, self.total, *self.evaluations.scalars)
        points = (*self.masks, *self.sides, *self.quotients)
        parts = (*map(encode_scalar, scalars), *map(encode_g1, points), self.circuit.encode())
        return b"".join(parts)

    @classmethod
    def parse(cls, data: bytes, shape: Shape) -> NormProof:
        """Return what :meth:`encode` wrote, every scalar and point checked.

        Raises:
            VerificationError: ``norm.size``, ``point.field``, ``point.curve``, ``point.subgroup``.
            MissingExtraError: py_ecc is not installed.
        """
        if len(data) != chunk_bytes(shape):
            raise VerificationError(
                "norm.size", f"A chunk's norm proof has {chunk_bytes(shape):,} bytes."
            )
        # In the order of ``encode``: scalars, then points, then the circuit's proof.
        scalars_end = (2 * shape.dimension + _SCALARS) * SCALAR_BYTES
        points_end = scalars_end + _POINTS * G1_BYTES
        commitment, total, *rest = map(parse_scalar, cut(data[:scalars_end], SCALAR_BYTES))
        first, second, third, fourth, *quotients = map(
            parse_g1, cut(data[scalars_end:points_end], G1_BYTES)
        )
        width = shape.dimension
        values = Evaluations(
            tuple(rest[:width]), tuple(rest[width : 2 * width]), *rest[2 * width :]
        )
        return cls(
            commitment,
            (first, second),
            total,
            (third, fourth),
            values,
            (quotients[0], quotients[1], quotients[2]),
            Proof.parse(data[points_end:]),
        )


@dataclass(frozen=True, slots=True)
class OpeningWeights:
    """What the polynomials opened at one point are summed with, 128 bits each.

    Attributes:
        columns: One per column, the same at ξz and at 1/z.
        first: Weight of P at z, and of B at 1/z.
        second: Weight of Q at 1/z.
    """

    columns: tuple[int, ...]
    first: int
    second: int


class Conversation:
    """One chunk's transcript: the prover and the verifier call the same methods in one order.

    Args:
        shape: Sizes and bounds.
        setup: Digest of the setup.
        columns: Digest of all chunks' commitments, in hex.
        context: What the proof belongs to.
        chunk: Number from 0.
    """

    def __init__(self, shape: Shape, setup: str, columns: str, context: bytes, chunk: int) -> None:
        self._shape = shape
        self._transcript = ProofTranscript(_DOMAIN)
        # Round 1, statement. Projections that are known beforehand can be dodged by the rows, so
        # they follow from the commitments to the columns.
        self._transcript.absorb("setup", setup.encode())
        self._transcript.absorb("columns", columns.encode())
        self._transcript.absorb("context", context)
        self._transcript.absorb("chunk", chunk.to_bytes(8, "big"))
        self.seed = self._transcript.expand("projections", projection_bytes(shape))
        self.projections = Projections.read(self.seed, shape)

    def challenges(self, commitment: int, masks: tuple[G1, G1]) -> Challenges:
        """Take in hN, [A] and [B]; return ξ, ζ, κ and ω."""
        # Round 2, commit. Were ξ, ζ, κ known first, sums would be fitted instead of their terms;
        # were ω known first, the masks' constant g₀ would make up for any difference.
        self._transcript.absorb_scalars("norms", [commitment])
        self._transcript.absorb_points("masks", masks)
        return Challenges(
            *(self._transcript.nonzero(name) for name in ("xi", "zeta", "kappa", "omega"))
        )

    def point(self, total: int, sides: tuple[G1, G1]) -> int:
        """Take in T*, [P] and [Q]; return z."""
        # Round 3, total and sides. An identity of polynomials is fitted at a point known first.
        self._transcript.absorb_scalars("total", [total])
        self._transcript.absorb_points("sides", sides)
        return self._transcript.nonzero("z")

    def weights(self, evaluations: Evaluations) -> OpeningWeights:
        """Take in all evaluations; return the weights of their opening."""
        # Round 4, evaluations. Wrong ones would cancel under weights that are known first.
        self._transcript.absorb_scalars("evaluations", evaluations.scalars)
        data = self._transcript.expand("weights", (self._shape.dimension + 2) * _WEIGHT_BYTES)
        *columns, first, second = (int.from_bytes(part, "big") for part in cut(data, _WEIGHT_BYTES))
        return OpeningWeights(tuple(columns), first, second)


def circuit_inputs(commitment: int, challenges: Challenges, total: int) -> dict[str, int]:
    """Return the public inputs of the norm circuit by name, in the circuit's order."""
    return {"commitment": commitment, **asdict(challenges), "total": total}


def chunk_bytes(shape: Shape) -> int:
    """Return the size of one chunk's proof."""
    scalars = 2 * shape.dimension + _SCALARS
    return scalars * SCALAR_BYTES + _POINTS * G1_BYTES + PROOF_BYTES


def cut(data: bytes, size: int) -> Iterator[bytes]:
    """Return data in pieces of one size."""
    return (data[i : i + size] for i in range(0, len(data), size))
