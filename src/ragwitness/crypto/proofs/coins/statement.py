"""What a proof of coins is about, its bytes, and the challenges in between.

Before the window the provider commits to numbers a_j below 2^bits, one per slot. Public numbers
p_j come after. Proved is that columns of bits hold a + p: a_j + p_j = Σ 2^i b_ij + 2^bits carry_j.
Noise is a public linear map of the bits, so its commitment is the same map of theirs.

One chunk's conversation; prover and verifier name these rounds in their code:

- Round 1, statement: hash of setup, committed numbers, public numbers, bits, context; chunk
- Round 2, columns: [B_i] for every bit, [carry], [M] → κ
- Round 3, ends: [G], [A], [B], A₁ + B₁ → ξ, ω
- Round 4, sides: [P], [Q] → z
- Round 5, evaluations: all columns at ξz and 1/z; A, B, P, Q; G(ξ) → weights of the openings
- Round 6, openings: five quotients
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragwitness.crypto.hashing import tagged_hash
from ragwitness.crypto.proofs.fiat_shamir import ProofTranscript
from ragwitness.crypto.proofs.norms.polynomials import powers
from ragwitness.crypto.proofs.norms.proof import Evaluations, OpeningWeights, cut
from ragwitness.crypto.proofs.opening import MOST_CHUNKS
from ragwitness.crypto.proofs.points import (
    G1,
    G1_BYTES,
    SCALAR_BYTES,
    R,
    encode_g1,
    encode_scalar,
    parse_g1,
    parse_scalar,
)
from ragwitness.crypto.proofs.setup import VerifierSetup
from ragwitness.errors import VerificationError

MOST_BITS = 240
"""Of a number: a + p, carry and all, stays far below R."""

LEAST_SLOTS = 4
"""Of a chunk: fewer leave the mask column no room to hide its three values and its ends."""

_DOMAIN = "ragwitness/coins/v1"
_WEIGHT_BYTES = 16
_STATEMENT_BYTES = 32
_POINTS = 10  # G, A, B, P, Q, five quotients
_SCALARS = 6  # A₁ + B₁; A, B, P, Q at z and 1/z; G(ξ)


@dataclass(frozen=True, slots=True, eq=False)
class CoinClaim:
    """The columns of a proof hold the bits of committed plus public numbers.

    Attributes:
        bits: Number of bits of a number.
        committed: Per chunk the commitment to the secret numbers, 64 bytes.
        public: Public numbers of every slot, each below 2^bits; the verifier derives them itself.
        context: What the proof is bound to besides, e.g. the hash of the log's record.
    """

    bits: int
    committed: tuple[bytes, ...]
    public: Sequence[int]
    context: bytes

    def points(self) -> list[G1]:
        """Return the commitments as points.

        Raises:
            VerificationError: ``coins.size``, ``coins.field`` or ``coins.curve``.
        """
        return [parse_g1(data, "coins") for data in self.committed]

    def digest(self, setup: bytes) -> bytes:
        """Return a hash, 32 bytes, of the claim and of the setup's digest."""
        width = (self.bits + 7) // 8
        return tagged_hash(
            "ragwitness/coins-statement/v1",
            setup,
            str(self.bits).encode(),
            b"".join(self.committed),
            b"".join(number.to_bytes(width, "little") for number in self.public),
            self.context,
        )


def check_claim(claim: CoinClaim, slots: int) -> None:
    """Check sizes and bounds: outside them the sums would not be those of integers.

    Args:
        claim: Claim of the verifier.
        slots: Number of document slots in each chunk.

    Raises:
        VerificationError: ``coins.claim``.
    """
    count = len(claim.committed)
    checks = {
        f"chunks have {slots} slots; {LEAST_SLOTS} or more are needed": slots >= LEAST_SLOTS,
        "the index has no chunks, or too many": 1 <= count <= MOST_CHUNKS,
        f"numbers have {claim.bits} bits, not 1 to {MOST_BITS}": 1 <= claim.bits <= MOST_BITS,
        "the public numbers are not one per slot": len(claim.public) == count * slots,
        "a public number has too many bits": all(0 <= p >> claim.bits < 1 for p in claim.public),
    }
    wrong = [message for message, holds in checks.items() if not holds]
    if wrong:
        raise VerificationError("coins.claim", f"What is claimed cannot be proved: {wrong[0]}.")


@dataclass(frozen=True, slots=True)
class CoinChunk:
    """The prover's messages about one chunk.

    Attributes:
        columns: [B_i] for every bit, [carry], [M].
        ends: [G], what blinds leave behind the slots.
        masks: [A], [B].
        constant: A₁ + B₁.
        sides: [P], [Q].
        values: Columns at ξz and 1/z; A(z), B(1/z), P(z), Q(1/z).
        end: G(ξ).
        quotients: Quotients of the openings at ξz, 1/z, z; of the sum at z; of G at ξ.
    """

    columns: tuple[G1, ...]
    ends: G1
    masks: tuple[G1, G1]
    constant: int
    sides: tuple[G1, G1]
    values: Evaluations
    end: int
    quotients: tuple[G1, ...]

    def encode(self) -> bytes:
        """Return the one encoding: points, then scalars."""
        points = (*self.columns, self.ends, *self.masks, *self.sides, *self.quotients)
        scalars = (self.constant, self.end, *self.values.scalars)
        return b"".join((*map(encode_g1, points), *map(encode_scalar, scalars)))

    @classmethod
    def parse(cls, data: bytes, bits: int) -> CoinChunk:
        """Return what :meth:`encode` wrote, every scalar and point checked.

        Raises:
            VerificationError: ``point.field`` or ``point.curve``.
        """
        width = bits + 2
        ends_at = (width + _POINTS) * G1_BYTES
        points = [parse_g1(part) for part in cut(data[:ends_at], G1_BYTES)]
        constant, end, *rest = map(parse_scalar, cut(data[ends_at:], SCALAR_BYTES))
        g, a, b, p, q, *quotients = points[width:]
        values = Evaluations(
            tuple(rest[:width]), tuple(rest[width : 2 * width]), *rest[2 * width :]
        )
        columns = tuple(points[:width])
        return cls(columns, g, (a, b), constant, (p, q), values, end, tuple(quotients))


@dataclass(frozen=True, slots=True)
class CoinProof:
    """A whole proof.

    Attributes:
        statement: Hash of what is claimed, 32 bytes; it gives a failure its name.
        chunks: One part per chunk.
    """

    statement: bytes
    chunks: tuple[CoinChunk, ...]

    def encode(self) -> bytes:
        """Return 32 bytes and :func:`chunk_bytes` for each chunk."""
        return self.statement + b"".join(chunk.encode() for chunk in self.chunks)

    def mapped(self, coefficients: Sequence[int]) -> tuple[tuple[tuple[int, G1], ...], ...]:
        """Return per chunk what commits to a linear map of the bits: scalars and points.

        Args:
            coefficients: What each bit adds.
        """
        return tuple(
            tuple(zip(coefficients, chunk.columns[: len(coefficients)], strict=True))
            for chunk in self.chunks
        )

    @classmethod
    def parse(cls, data: bytes, bits: int, chunks: int) -> CoinProof:
        """Return what :meth:`encode` wrote.

        Raises:
            VerificationError: ``coins.size``, ``point.field`` or ``point.curve``.
        """
        size = chunk_bytes(bits)
        due = _STATEMENT_BYTES + chunks * size
        if len(data) != due:
            raise VerificationError(
                "coins.size",
                f"A proof of {bits} coins a slot for {chunks} chunks has {due:,} bytes, not"
                f" {len(data):,}.",
            )
        parts = cut(data[_STATEMENT_BYTES:], size)
        return cls(data[:_STATEMENT_BYTES], tuple(CoinChunk.parse(part, bits) for part in parts))


def chunk_bytes(bits: int) -> int:
    """Return the size of one chunk's proof."""
    width = bits + 2
    return (width + _POINTS) * G1_BYTES + (2 * width + _SCALARS) * SCALAR_BYTES


@dataclass(frozen=True, slots=True)
class CoinConversation:
    """One chunk's transcript: prover and verifier call the same methods in one order."""

    transcript: ProofTranscript
    width: int

    @classmethod
    def begin(cls, setup: VerifierSetup, claim: CoinClaim, chunk: int) -> CoinConversation:
        """Take in what is claimed."""
        # Round 1, statement: the public numbers precede the columns, the columns all challenges.
        transcript = ProofTranscript(_DOMAIN)
        transcript.absorb("statement", claim.digest(setup.digest_bytes))
        transcript.absorb("chunk", chunk.to_bytes(8, "big"))
        return cls(transcript, claim.bits + 2)

    def weight(self, columns: Iterable[G1]) -> int:
        """Take in all columns; return κ."""
        # Round 2, columns. Were κ known first, errors of two columns would be fitted to cancel.
        self.transcript.absorb_points("columns", columns)
        return self.transcript.nonzero("kappa")

    def point(self, ends: G1, masks: tuple[G1, G1], constant: int) -> tuple[int, int]:
        """Take in [G], [A], [B] and A₁ + B₁; return ξ and ω."""
        # Round 3, ends. G(ξ) could make up for any error were ξ known before [G], and A₁ + B₁
        # likewise were ω known before it.
        self.transcript.absorb_points("ends", [ends, *masks])
        self.transcript.absorb_scalars("constant", [constant])
        return self.transcript.nonzero("xi"), self.transcript.nonzero("omega")

    def place(self, sides: tuple[G1, G1]) -> int:
        """Take in [P] and [Q]; return z."""
        # Round 4, sides. An identity of polynomials is fitted at a point known first.
        self.transcript.absorb_points("sides", sides)
        return self.transcript.nonzero("z")

    def weights(self, values: Evaluations, end: int) -> OpeningWeights:
        """Take in all evaluations; return the weights of their opening."""
        # Round 5, evaluations. Wrong ones would cancel under weights that are known first.
        self.transcript.absorb_scalars("evaluations", [*values.scalars, end])
        data = self.transcript.expand("weights", (self.width + 2) * _WEIGHT_BYTES)
        *columns, first, second = (int.from_bytes(part, "big") for part in cut(data, _WEIGHT_BYTES))
        return OpeningWeights(tuple(columns), first, second)


def total_of(xi: int, omega: int, slots: int, end: int, constant: int) -> int:
    """Return T* = ω ξⁿ G(ξ) + A₁ + B₁: what the identity's constant term is if all are bits."""
    return (omega * pow(xi, slots, R) * end + constant) % R


def identity_holds(
    challenges: tuple[int, int, int, int], slots: int, values: Evaluations, total: int
) -> bool:
    """Return whether the identity holds at z.

    Args:
        challenges: κ, ξ, ω, z.
        slots: n, of a chunk.
        values: Values of all columns, M last; of A, B, P, Q.
        total: T*.
    """
    kappa, _, omega, z = challenges
    inverse = pow(z, -1, R)
    down = powers(inverse, slots + 3)
    ones, tail = sum(down[:slots]) % R, sum(down[slots:]) % R
    weights = powers(kappa, len(values.upper))
    # F(z) = Σ κ^i B_i(ξz)(B_i(1/z) - 1(1/z)) + κ^last M(ξz)·tail(1/z).
    *columns, (last, mask, _) = zip(weights, values.upper, values.lower, strict=True)
    found = sum(w * u * (v - ones) for w, u, v in columns) + last * mask * tail
    # ωF + A/X + X·B(1/X) = T* + X·P + Q(1/X)/X.
    left = omega * found + values.a * inverse + values.b * z
    return (left - total - z * values.p - inverse * values.q) % R == 0
